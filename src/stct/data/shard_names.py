"""The files of a folder of shards: which, in which order, and whether one is missing.

Shards are taken in the order of their names, numbers in them by value.
"""

import re
from itertools import count
from pathlib import Path


def list_shards(folder: Path) -> list[Path]:
    """Give the files of a folder in order, but those that begin with . or _."""
    inside = [path for path in folder.iterdir() if path.name[0] not in "._"]
    folders = sorted(path.name for path in inside if path.is_dir())
    if folders:
        raise ValueError(
            f"{folder}: has a folder in it ({folders[0]}); all shards must be files of "
            "one folder"
        )
    return sorted(inside, key=lambda path: _natural(path.name))


def check_numbers(folder: Path, paths: list[Path]) -> None:
    """Find a shard that is missing by the numbers in the names, where they count.

    With a total (``-of-10``) they do. Without, they do if they begin at 0 or 1 and few
    are missing; others may be row numbers or dates.
    """
    matches = [re.fullmatch(r"(.*?)(\d+)(-of-(\d+))?\.\w+", p.name) for p in paths]
    found = [m for m in matches if m]
    if len(found) < len(paths) or len({(m[1], m[4]) for m in found}) != 1:
        return
    numbers = {int(m[2]) for m in found}
    first, last = min(numbers), max(numbers)
    if found[0][4]:
        total = int(found[0][4])
        first = 1 if total in numbers else 0
        counts = True
    else:
        total = last - first + 1
        counts = first <= 1 and total - len(numbers) <= len(numbers) // 2
    if len(numbers) >= total or not counts:
        return
    missing = str(next(i for i in count(first) if i not in numbers))
    if found[0][4] and not numbers & {0, total}:  # counted from 0, or from 1?
        missing = f"0 or {total}"
    raise ValueError(
        f"{folder}: shard {missing} is missing ({paths[0].name} to {paths[-1].name}, "
        f"{len(paths)} of {total} files)"
    )


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key: numbers in a name by value."""
    pieces = re.split(r"(\d+)", name)
    return [(1, int(p), "") if p.isdecimal() else (0, 0, p) for p in pieces if p]
