"""One-way imports, light imports, and a small public surface."""

import ast
from pathlib import Path

import stct

SOURCE = Path(stct.__file__).parent

# A module imports only from modules of lower rank.
RANK = {
    "blocks": 0,
    "linear": 0,
    "leverage": 0.5,
    "noise": 0,
    "labels": 0,
    "options": 0,
    "console": 0,
    "rows": 0,
    "scratch": 0,
    "engine": 0.5,
    "on_ray": 0.7,
    "centred": 0.7,
    "ridge": 1,
    "transition": 1,
    "probabilities": 1.5,
    "descent": 1.5,
    "seen": 1.5,
    "checks": 2,
    "correction": 2,
    "forward": 2,
    "hardness": 2,
    "lift": 2,
    "twins": 2,
    "views": 2,
    "decision": 2.5,
    "copies": 2.5,
    "given_labels": 2.5,
    "score_space": 1,
    "score_fit": 2.7,
    "choice": 3,
    "scoring": 3,
    "innocence": 3.5,
    "judgement": 3.5,
    "log_odds": 3.5,
    "doubt": 3.7,
    "leave_one_out": 4,
    "many_classes": 4.5,
    "nmc": 5,
    "estimator": 6,
    "command_cost": 6,
    "plan": 6.5,
    "__init__": 7,
    "data": 8,
    "bench": 9,
    "encoders": 9,
    "report": 9,
    "export": 10,
    "demo": 10,
    "train": 11,
    "cli": 12,
    "__main__": 13,
}


def name_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[0] == "stct":
                yield from [parts[1]] if parts[1:] else [a.name for a in node.names]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("stct."):
                    yield alias.name.split(".")[1]


def test_every_module_has_a_rank():
    assert {name_of(path) for path in SOURCE.rglob("*.py")} == set(RANK)


def test_imports_go_one_way():
    for path in SOURCE.rglob("*.py"):
        module = name_of(path)
        for other in imported(path):
            other = other if other in RANK else "__init__"
            assert module == other or RANK[other] < RANK[module], (path.name, other)


def test_public_names():
    assert sorted(stct.__all__) == ["LabelCorrector", "__version__"]
