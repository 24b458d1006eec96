"""Write the reference of the command line from the options themselves.

python docs/command_reference.py OUT.md
"""

import re
import sys
import typing
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any

import typer.main

from stct.cli import COMMANDS, app

HEADER = """# Command line

Every command and option, written from the help texts: `stct COMMAND --help` says the
same. The exit code is 0, 2 with one line on stderr for bad input, and 130 or 143
after an interrupt.
"""
Function = Callable[..., None]


def write_reference(path: Path) -> None:
    """Write the page, if it would change."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    functions = {function.__name__.rstrip("_"): function for function in COMMANDS}
    parts = [describe(command, functions[name]) for name, command in commands.items()]
    text = "\n".join([HEADER, *parts])
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def describe(command: Any, function: Function) -> str:
    """Give a command as a section."""
    hints = typing.get_type_hints(function)
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    options = [p for p in options if p.name in hints]  # not --help
    names = [p.metavar if p.required else f"[{p.metavar}]" for p in arguments]
    usage = " ".join(["stct", command.name, *names, "[OPTIONS]"])
    lines = [f"## stct {command.name}", "", "```text", usage, "```", ""]
    lines += [words(command.help), ""]
    for title, parameters in {"argument": arguments, "option": options}.items():
        if parameters:
            lines += [f"| {title} | meaning |", "|---|---|"]
            lines += [row(parameter, hints) for parameter in parameters]
            lines.append("")
    return "\n".join(lines)


def row(parameter: Any, hints: dict[str, Any]) -> str:
    """Give an argument or option with its help and default as a row."""
    if parameter.param_type_name == "argument":
        name = f"`{parameter.metavar}`"
    else:
        name = ", ".join(f"`{text}`" for text in parameter.opts)
        name += value_of(parameter, hints[parameter.name])
    default = default_of(parameter)
    more = f" Default: {default}." if default else ""
    return f"| {name} | {plain(parameter.help or '')}{more} |".replace("\n", " ")


def value_of(option: Any, hint: Any) -> str:
    """Say what follows an option."""
    if option.is_flag:
        return ""
    kinds = [kind for kind in typing.get_args(hint) if kind is not NoneType] or [hint]
    if isinstance(kinds[0], type) and issubclass(kinds[0], Enum):
        *names, last = [f"`{choice.value}`" for choice in kinds[0]]
        return f" {', '.join(names)} or {last}"
    name = option.metavar or {int: "N", float: "X"}.get(kinds[0], "TEXT")
    return f" `{name.replace('|', '/')}`"


def default_of(parameter: Any) -> str:
    """Give the default, nothing where there is none to tell."""
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    value = getattr(parameter.default, "value", parameter.default)
    if value is None or value is False or value == [] or parameter.required:
        return ""
    return f"`{value}`"


def words(text: str) -> str:
    """Give the paragraphs of a help text; its examples are commands."""
    lines: list[str] = []
    examples: list[str] = []
    for paragraph in [*text.split("\n\n"), ""]:
        if paragraph.startswith("stct "):
            examples.append(paragraph.replace("\\[", "["))
            continue
        if examples:
            lines += ["```sh\n" + "\n".join(examples) + "\n```", ""]
            examples = []
        lines += [plain(paragraph), ""]
    return "\n".join(lines).rstrip()


def plain(text: str) -> str:
    """Turn the terminal's markup into Markdown."""
    text = text.replace("\\[", "[").replace("|", "\\|").replace("*", "\\*")
    text = re.sub(r"\[bold\](.*?)\[/bold\]", r"**\1**", text)
    text = re.sub(r"\[/?(dim|italic|cyan|green|yellow)\]", "", text)
    return re.sub(r"(?<![\w`])(--[a-z][a-z-]*)", r"`\1`", text)


if __name__ == "__main__":
    write_reference(Path(sys.argv[1]))
