"""A column of lists of numbers as features: they are taken as they are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from stct.data.embeddings import load_embeddings
from stct.data.tables import Table


@dataclass(frozen=True)
class ListsRecipe:
    """The name of the column that holds an embedding of every row."""

    kind: ClassVar[str] = "lists"
    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return (self.column,)

    @property
    def settings(self) -> dict[str, Any]:
        """For JSON."""
        return {"column": self.column}

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Nothing is learnt."""
        return {}

    @classmethod
    def from_plain(cls, settings: Mapping[str, Any], _: Any) -> Self:
        """Make it again."""
        return cls(str(settings["column"]))

    def transform(
        self,
        table: Table,
        path: Path,
        progress: Callable[[float], None] | None = None,
        cache_dir: Path | None = None,
    ) -> NDArray[np.float32]:
        """Give the embeddings (n, d) of a table's rows."""
        del progress, cache_dir  # takes no time
        X, _ = load_embeddings(  # noqa: N806
            table, path, file=None, column=self.column, id_column=None
        )
        return np.asarray(X, dtype=np.float32)
