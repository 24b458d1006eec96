"""Recipes as plain data: JSON and arrays in one .npz file, never a pickle.

recipe = read_recipe(folder / "features.npz")
X_new = recipe.transform(read_table(path), path)
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from stct.data.arrays import read_arrays
from stct.data.outputs import WRITTEN_BY
from stct.data.tables import Table
from stct.features.columns import TableRecipe
from stct.features.lists import ListsRecipe
from stct.features.text import EncoderRecipe, TfidfRecipe

Array = NDArray[Any]

_VERSION = 1
_RECIPES: tuple[Any, ...] = (TfidfRecipe, EncoderRecipe, TableRecipe, ListsRecipe)
_KINDS = {recipe.kind: recipe for recipe in _RECIPES}


class Recipe(Protocol):
    """What has been learnt from the columns of one table."""

    kind: ClassVar[str]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""

    @property
    def settings(self) -> dict[str, Any]:
        """All of it that is no array, for JSON."""

    @property
    def arrays(self) -> dict[str, Array]:
        """The rest."""

    def transform(
        self,
        table: Table,
        path: Path,
        progress: Callable[[float], None] | None = None,
        cache_dir: Path | None = None,
    ) -> NDArray[np.float32]:
        """Give the embeddings (n, d) of a table's rows; ``path`` is for messages."""


def as_arrays(recipe: Recipe) -> dict[str, Array]:
    """Write a recipe as named arrays, of which one is JSON."""
    about = {
        "written_by": WRITTEN_BY,
        "version": _VERSION,
        "kind": recipe.kind,
        "settings": recipe.settings,
    }
    text = json.dumps(about, ensure_ascii=False, allow_nan=False)
    return {"recipe": np.frombuffer(text.encode(), np.uint8), **recipe.arrays}


def from_arrays(arrays: Mapping[str, Array], where: str) -> Recipe:
    """Make a recipe of what `as_arrays` gave."""
    try:
        about = json.loads(np.asarray(arrays["recipe"], np.uint8).tobytes())
        if (about["written_by"], about["version"]) != (WRITTEN_BY, _VERSION):
            raise ValueError("another version of stct wrote it")
        recipe: Recipe = _KINDS[about["kind"]].from_plain(about["settings"], arrays)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ValueError(f"{where}: not a recipe of features: {error}") from error
    return recipe


def read_recipe(path: Path) -> Recipe:
    """Read the features.npz that 'stct correct' wrote beside its result."""
    if not path.exists():
        raise ValueError(f"{path}: there is no such file")
    return from_arrays(read_arrays(path), str(path))
