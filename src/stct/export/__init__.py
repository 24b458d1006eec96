"""Hand a correction over to other tools, in the formats that they import."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from stct.data.corrected import Corrected, read_corrected
from stct.data.outputs import whole_folder
from stct.export.argilla import write_records
from stct.export.cleanlab import write_issues
from stct.export.hugging_face import write_dataset
from stct.export.label_studio import write_tasks
from stct.report.ranking import find_rivals

ALL_ROWS = ("cleanlab", "huggingface")
Writer = Callable[[Corrected, Path, Path | None], str]
WRITERS: dict[str, Writer] = {
    "label-studio": write_tasks,
    "cleanlab": write_issues,
    "huggingface": write_dataset,
    "argilla": write_records,
}


def export_folder(
    folder: Path,
    to: str,
    output: Path,
    *,
    images: Path | None = None,
    top: int | None = None,
) -> str:
    """Write the correction in ``folder`` for another tool; say how to load it.

    Parameters
    ----------
    folder : Path
        Output folder of a correction.
    to : {"label-studio", "cleanlab", "huggingface", "argilla"}
    output : Path
        Folder to make; it must not exist.
    images : Path, optional
        Folder from which the paths in the table's image column are seen.
    top : int, optional
        Only so many rows, those with the most to gain from a look first.
    """
    corrected = read_corrected(folder)
    if top is not None:
        if to in ALL_ROWS:
            raise ValueError(f"--top does not go with {to}, which takes all rows")
        gain = find_rivals(corrected).gain
        corrected = corrected.take(np.argsort(-gain, kind="stable")[:top])
    if images is not None and not images.is_dir():
        raise ValueError(f"{images}: there is no such folder")
    with whole_folder(output, overwrite=False) as temporary:
        hint = WRITERS[to](corrected, temporary, images)
    return hint.format(output=output)
