"""The command of a run, so that its report can print the one for the next round."""

from enum import Enum
from typing import Any

import typer

_OWN = {  # what the next round has values of its own for
    *("output", "overwrite", "quiet", "json_output"),
    *("locked", "audit", "since"),
}


def command_of(context: typer.Context) -> list[str]:
    """Give the words of this command without what the next round changes."""
    words = ["stct", str(context.info_name)]
    for parameter in context.command.params:
        name = str(parameter.name)
        value = context.params.get(name)
        if name in _OWN or value is None or value == parameter.default:
            continue
        text = str(value.value if isinstance(value, Enum) else value)
        if parameter.param_type_name == "argument":
            words.append(text)
        else:
            words += _option(parameter, value, text)
    return words


def _option(parameter: Any, value: Any, text: str) -> list[str]:
    flag = max(parameter.opts, key=len)
    return [flag] if value is True else [flag, text]
