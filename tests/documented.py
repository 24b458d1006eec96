"""The code blocks of a Markdown page, and how to run them as a reader would.

    python tests/documented.py README.md docs/start.md

runs these pages, each from an empty folder, with the stct of this Python.
"""

import doctest
import io
import os
import re
import shlex
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import typer.main
from reader import write_files

from stct import cli

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<why>[^>]+?) -->\n+)?"
    r"^```(?P<kind>.*)\n(?P<text>(?:.*\n)*?)```$",
    re.MULTILINE,
)
SHOWN = {
    "",
    "text",
    "json",
    "csv",
    "{toctree}",
    "{eval-rst}",
}  # kinds that nothing runs


class Block(NamedTuple):
    kind: str
    text: str
    why: str | None  # it is not run
    line: int


def blocks_of(page):
    """The fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(m["kind"], m["text"], m["why"], text.count("\n", 0, m.start("kind")) + 1)
        for m in BLOCK.finditer(text)
    ]


def commands_of(block):
    """The command lines of a block, each with the output that is shown below it.

    Of ``console`` commands stand after a $, and all other lines are output.
    """
    found = []
    for line in block.text.replace("\\\n", " ").splitlines():
        typed = block.kind == "sh" or line.startswith("$ ")
        if typed and (words := shlex.split(line.removeprefix("$ "), comments=True)):
            found.append((words, []))
        elif not typed and line.strip() not in ("", "..."):
            found[-1][1].append(line)
    return found


def run_page(page):
    """Run all blocks of a page, in order, in the current folder."""
    names = {"__name__": "__main__"}
    for block in blocks_of(page):
        where = f"{page.name}, line {block.line}"
        if block.kind == "python":
            if block.why is None:
                run_python(block, names, where)
        elif block.kind in ("sh", "console"):
            for words, shown in commands_of(block):
                run_command(words, shown, block.why is None, where)
        else:
            assert block.kind in SHOWN, f"{where}: a block of kind {block.kind!r}"
            typed = re.search(r"^(\$|>>>|stct|pip) .*", block.text, re.MULTILINE)
            assert typed is None, f"{where}: not run: {typed[0]}"


def run_python(block, names, where):
    if ">>> " not in block.text:
        exec(compile("\n" * block.line + block.text, where, "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(block.text, names, where, where, 0)
    said = io.StringIO()
    runner = doctest.DocTestRunner()
    runner.run(test, out=said.write, clear_globs=False)
    names.update(test.globs)
    assert not runner.failures, said.getvalue()


def run_command(words, shown, really, where):
    """Run a stct command in this process; look at the others without running them.

    The lines that are shown must be among what it says, whatever the numbers are.
    """
    if words[0] == "stct" and really:
        code, said, errors = run_stct(words[1:])
        assert code == 0, f"{where}: {shlex.join(words)}\n{errors}"
        lines = {without_numbers(line) for line in said.splitlines()}
        for line in shown:
            assert without_numbers(line) in lines, f"{where}: not said: {line}\n{said}"
    elif words[0] == "stct":
        look_at_options(words[1:], where)
    elif words[0] == "make":
        made = (ROOT / "Makefile").read_text()
        assert f"\n{words[1]}:" in made, f"{where}: make has no {words[1]}"
    elif words[:2] == ["pip", "install"]:
        known = (ROOT / "pyproject.toml").read_text()
        for extra in re.findall(r"\[([\w,]+)\]", " ".join(words)):
            for name in extra.split(","):
                assert f"\n{name} = [" in known, f"{where}: there is no extra {name}"
    else:
        assert not really, f"{where}: {words[0]} is not run; say why in a comment"


def without_numbers(line):
    return " ".join(re.sub(r"[+-]*[\d.,]*\d\*?", "#", line).split())


def run_stct(arguments):
    """The command in this process: its exit code, and what it says."""
    said, errors = io.StringIO(), io.StringIO()
    old, sys.argv = sys.argv, ["stct", *arguments]
    try:
        with redirect_stdout(said), redirect_stderr(errors):
            cli.main()
    except SystemExit as end:
        return end.code or 0, said.getvalue(), errors.getvalue()
    finally:
        sys.argv = old
    raise AssertionError("main ends the process")


def look_at_options(arguments, where):
    """Read the options of a command without running it."""
    commands = typer.main.get_command(cli.app).commands
    name, *rest = arguments
    assert name in commands, f"{where}: there is no stct {name}"
    try:
        commands[name].make_context(name, list(rest))
    except Exception as error:
        if type(error).__name__ != "Exit":
            said = getattr(error, "message", error)
            raise AssertionError(f"{where}: stct {name}: {said}") from error


if __name__ == "__main__":
    for given in [Path(name).resolve() for name in sys.argv[1:]]:
        with tempfile.TemporaryDirectory() as empty:
            os.chdir(empty)
            write_files(Path(empty))
            run_page(given)
            os.chdir(ROOT)
