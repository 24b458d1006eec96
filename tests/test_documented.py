"""What README and documentation tell people to type works, from an empty folder."""

import doctest
import importlib.util
import inspect
import re
import signal
import tomllib

import pytest
from documented import ROOT, blocks_of, commands_of, run_page
from reader import write_files

import stct.train
from stct import __version__

PAGES = [
    ROOT / "README.md",
    *sorted(
        path
        for path in (ROOT / "docs").glob("*.md")
        if path.name not in ("log.md", "api.md")
    ),
]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|src(?:set)?=\"([^\"]+)\"")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where a reader would work who has only the light install."""
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    monkeypatch.setattr("stct.cli.trying.missing", lambda *names: list(names))
    monkeypatch.setenv("STCT_CACHE", str(tmp_path / "cache"))
    before = signal.getsignal(signal.SIGTERM)
    yield tmp_path
    signal.signal(signal.SIGTERM, before)  # the command sets its own


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_a_page_runs(page, folder):
    run_page(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    made = ("gallery/", "generated/")  # by the build of the site
    for found in LINK.finditer(text):
        target = next(group for group in found.groups() if group).partition("#")[0]
        if target and "://" not in target and not target.startswith(made):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_tables_of_pages_are_those_of_the_results():
    # There is a module of this name in experiments/, too.
    spec = importlib.util.spec_from_file_location(
        "docs_tables", ROOT / "docs/tables.py"
    )
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    for page in tables.PAGES:
        assert "<!-- table: " in page.read_text("utf-8")
        assert page.read_text("utf-8") == tables.filled(page), (
            f"{page.name} is older than benchmarks/results: python docs/tables.py"
        )


def test_readme_is_short_and_every_page_is_in_the_navigation():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120
    listed = set()
    for page in (ROOT / "docs").glob("*.md"):
        for block in blocks_of(page):
            if block.kind == "{toctree}":
                listed |= set(re.findall(r"[^\s<>]+", block.text))
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages <= listed


def test_public_names_are_in_the_reference():
    text = (ROOT / "docs" / "api.md").read_text("utf-8")
    for package in (stct, stct.train):
        for name in (name for name in package.__all__ if not name.startswith("_")):
            _, found, after = text.partition(f":: {package.__name__}.{name}\n")
            assert found, name
            listed = set(re.split(r"[,\s]+", after.partition("\n\n")[0]))
            if inspect.isclass(getattr(package, name)):
                methods = inspect.getmembers(getattr(package, name), inspect.isroutine)
                ours = {
                    name
                    for name, method in methods
                    if not name.startswith("_")
                    and str(getattr(method, "__module__", "")).startswith("stct")
                }
                assert ours <= listed, ours - listed


def test_every_module_is_in_the_tree():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for path in (ROOT / "src" / "stct").iterdir():
        if path.is_dir() and list(path.glob("*.py")):
            assert f" {path.name}/" in text, path.name
        elif path.suffix == ".py" and not path.name.startswith("__"):
            assert path.name in text, path.name


def test_every_extra_is_in_the_table():
    text = (ROOT / "docs" / "start.md").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for extra in set(project["optional-dependencies"]) - {"dev", "docs"}:
        assert f"\n| `{extra}` |" in text, extra


def test_one_version_everywhere():
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\n## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_commands_are_in_the_reference(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    reference = importlib.import_module("command_reference")
    reference.write_reference(tmp_path / "made" / "commands.md")
    text = (tmp_path / "made" / "commands.md").read_text("utf-8")
    commands = re.findall(r"^## stct (\w+)$", text, re.MULTILINE)
    assert {"correct", "apply", "revert", "report", "train"} <= set(commands)
    assert "| `--seed` `N` |" in text
    assert "| `--method` `loo`, `split` or `paper` |" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    sorted(
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for path in (ROOT / "src").rglob("*.py")
        if ">>> " in path.read_text("utf-8")
    ),
)
def test_examples_of_docstrings(module, folder):
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted
    assert not result.failed


def test_blocks_are_found_and_broken_ones_are_named(tmp_path, folder):
    page = tmp_path / "page.md"
    page.write_text("```sh\nstct correct --no-such-option\n```\n")
    with pytest.raises(AssertionError, match=r"page.md, line 1: stct correct"):
        run_page(page)
    page.write_text(
        "<!-- not run: slow -->\n```console\n$ stct train a --bad\nout\n```\n"
    )
    (block,) = blocks_of(page)
    assert commands_of(block) == [(["stct", "train", "a", "--bad"], ["out"])]
    with pytest.raises(AssertionError, match="--bad"):
        run_page(page)
    page.write_text("```sh\npip install '.[nothing]'\n```\n")
    with pytest.raises(AssertionError, match="no extra nothing"):
        run_page(page)
    page.write_text("```console\n$ stct --version\nstct 9.9.9\n...\nanother\n```\n")
    with pytest.raises(AssertionError, match="not said: another"):
        run_page(page)
