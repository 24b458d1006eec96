"""Settings as text: ``--set NAME=VALUE``, dictionaries of JSON and TOML."""

import difflib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

from stct.train.config import Config


def override(config: Config, assignments: Sequence[str]) -> Config:
    """Change settings by texts such as ``srl.steps=500``."""
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(
                f"--set {text}: write it as name=value, e.g. srl.steps=500"
            )
        config = _set(config, name.strip().split("."), value.strip(), text)
    return config


def _set(part: Any, path: Sequence[str], value: str, text: str) -> Any:
    hints = get_type_hints(type(part))
    name, *rest = path
    if name not in hints or bool(rest) != is_dataclass(hints[name]):
        known = settings(Config())
        near = difflib.get_close_matches(text.partition("=")[0], known, n=3, cutoff=0.4)
        hint = "near names: " + ", ".join(near) if near else "all: " + ", ".join(known)
        raise ValueError(f"--set {text}: there is no such setting; {hint}")
    if rest:
        return replace(part, **{name: _set(getattr(part, name), rest, value, text)})
    return replace(part, **{name: _parse(value, hints[name], text)})


def _parse(value: str, kind: type, text: str) -> Any:
    if kind is str:
        return value
    try:
        parsed = json.loads(value.lower())
    except ValueError:
        parsed = None
    fits = isinstance(parsed, kind) and (kind is bool or not isinstance(parsed, bool))
    if kind is float and isinstance(parsed, int) and not isinstance(parsed, bool):
        return float(parsed)
    if not fits:
        words = {bool: "true or false", int: "a whole number", float: "a number"}
        raise ValueError(f"--set {text}: must be {words[kind]}")
    return parsed


def read_toml(path: Path, config: Config) -> Config:
    """Change settings by a TOML file, such as a run's config.toml.

    A table is a part of the settings: ``[srl]`` with ``steps = 500``.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path}: there is no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not a TOML file ({error})") from None
    assignments = []
    for name, value in values.items():
        inner = value.items() if isinstance(value, dict) else [(None, value)]
        for part, setting in inner:
            dotted = name if part is None else f"{name}.{part}"
            is_text = isinstance(setting, str)
            text = setting if is_text else json.dumps(setting, default=str)
            assignments.append(f"{dotted}={text}")
    try:
        return override(config, assignments)
    except ValueError as error:
        raise ValueError(f"{path}: {str(error).removeprefix('--set ')}") from None


def to_toml(config: Config, preset: str) -> str:
    """Write all settings as TOML that `read_toml` reads."""
    lines = [f"# The settings of a run of stct train; it began with --preset {preset}."]
    parts: list[str] = []
    for name, value in asdict(config).items():
        if isinstance(value, dict):
            inner = [f"{key} = {json.dumps(v)}" for key, v in value.items()]
            parts += ["", f"[{name}]", *inner]
        else:
            lines.append(f"{name} = {json.dumps(value)}")
    return "\n".join([*lines, *parts]) + "\n"


def settings(config: Config) -> dict[str, Any]:
    """Give every setting by its dotted name."""
    flat: dict[str, Any] = {}
    for name, value in asdict(config).items():
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": v for inner, v in value.items()}
        else:
            flat[name] = value
    return flat


def from_dict(values: Mapping[str, Any]) -> Config:
    """Rebuild what ``dataclasses.asdict`` took apart; unknown names are an error.

    What an older version did not write is set to what it did.
    """
    return _build(Config, values)  # type: ignore[no-any-return]


def _build(kind: Any, values: Any) -> Any:
    if not isinstance(values, Mapping):
        raise ValueError(f"settings of another version: {values!r} does not fit")
    hints = get_type_hints(kind)
    known = {f.name for f in fields(kind)}
    values = {**_before(kind), **values}
    if odd := sorted(set(values) ^ known):
        raise ValueError(f"settings of another version: {odd[0]!r} does not fit")
    return kind(
        **{
            name: _build(hints[name], value)
            if is_dataclass(hints[name])
            else _checked(hints[name], value, name)
            for name, value in values.items()
        }
    )


def _checked(kind: type, value: Any, name: str) -> Any:
    """Refuse a setting of another type; a whole number may stand for a number."""
    fits = type(value) is kind or (kind is float and type(value) is int)
    if not fits:
        raise ValueError(f"{name} is {value!r}, not {kind.__name__}")
    return value


def as_first_written(config: Config) -> dict[str, Any]:
    """Give the settings as the version wrote them that knew the fewest of them.

    Settings that came later are left out where they say what was done before, so a
    checkpoint of an old run is still known by its settings.
    """
    return _without_later(config)


def _without_later(part: Any) -> dict[str, Any]:
    before = _before(type(part))
    values = {f.name: getattr(part, f.name) for f in fields(part)}
    return {
        name: _without_later(value) if is_dataclass(value) else value
        for name, value in values.items()
        if name not in before or value != before[name]
    }


def _before(kind: Any) -> dict[str, Any]:
    """Give the settings that came later, and what was done before they came."""
    return {
        f.name: f.metadata["before"] for f in fields(kind) if "before" in f.metadata
    }
