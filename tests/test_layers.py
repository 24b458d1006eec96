"""One-way imports and a small public surface."""

import ast
from pathlib import Path

import stct

SOURCE = Path(stct.__file__).parent

# From the bottom up: a module imports only from its own package and from lower layers.
LAYERS = [
    {"numeric"},
    {"containers"},
    {"noise", "labels", "console"},
    {"comparison", "displays", "label_kinds", "label_sets"},
    {"noise_model"},
    {"correction"},
    {"annotations", "audit", "checks", "corrector_file", "inspection", "notes"},
    {"several"},
    {"estimator", "multi_label", "numeric_labels"},
    {"__init__"},
    {"planning"},
    {"data"},
    {"bench", "encoders", "report"},
    {"export", "demo", "features"},
    {"train"},
    {"cli"},
    {"__main__"},
]
LAYER = {name: layer for layer, names in enumerate(LAYERS) for name in names}


def name_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path):
    """Top-level names that a module imports from the package, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name}: imports are absolute"
            for alias in node.names:
                yield from inside(f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield from inside(alias.name)


def inside(dotted):
    package, _, rest = dotted.partition(".")
    if package == "stct":
        name = rest.split(".")[0]
        yield name if name in LAYER else "__init__"


def test_every_module_has_a_layer():
    assert {name_of(path) for path in SOURCE.rglob("*.py")} == set(LAYER)


def test_imports_go_one_way():
    for path in SOURCE.rglob("*.py"):
        module = name_of(path)
        for other in imported(path):
            assert module == other or LAYER[other] < LAYER[module], (path.name, other)


def test_public_names():
    assert sorted(stct.__all__) == [
        "LabelCorrector",
        "MultiLabelCorrector",
        "NumericLabelChecker",
        "__version__",
    ]
