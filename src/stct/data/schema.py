"""What the fields of a file must be: checked when it is read, in one line."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

Fits = Callable[[Any], bool]


class Field(NamedTuple):
    """One entry of a JSON object."""

    allowed: str  # in words
    fits: Fits
    required: bool = True


def check_fields(values: Any, fields: Mapping[str, Field], path: Path) -> None:
    """Raise when an entry is missing or is not what it must be; more may be there."""
    if not isinstance(values, dict):
        raise ValueError(f"{path}: must be a JSON object")
    for name, field in fields.items():
        if name not in values:
            if field.required:
                raise ValueError(f"{path}: {name!r} is missing")
        elif not field.fits(values[name]):
            raise ValueError(f"{path}: {name!r} must be {field.allowed}")


def is_text(value: Any) -> bool:
    """Tell whether a value is text."""
    return isinstance(value, str)


def is_count(value: Any) -> bool:
    """Tell whether a value is a whole number from 0 that fits into 64 bits."""
    return type(value) is int and 0 <= value < 2**63


def is_number(value: Any) -> bool:
    """Tell whether a value is a finite number."""
    return type(value) in (int, float) and abs(value) < 1e300 and math.isfinite(value)


def is_share(value: Any) -> bool:
    """Tell whether a value is a number from 0 to 1, give or take rounding."""
    return is_number(value) and -1e-6 <= value <= 1.0 + 1e-6


def maybe(fits: Fits) -> Fits:
    """Allow null, too."""
    return lambda value: value is None or fits(value)


def list_of(fits: Fits, length: int | None = None) -> Fits:
    """Require a list of such values, of one length where it is given."""
    return lambda value: (
        isinstance(value, list)
        and length in (None, len(value))
        and all(map(fits, value))
    )


def object_of(fits: Fits, *names: str) -> Fits:
    """Require an object whose values, or those with these names, are such."""
    return lambda value: (
        isinstance(value, dict)
        and all(name in value for name in names)
        and all(fits(v) for k, v in value.items() if not names or k in names)
    )
