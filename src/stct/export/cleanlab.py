"""cleanlab: a table like the one of ``CleanLearning.get_label_issues()``.

``label_issues.csv`` has its columns, with classes as whole numbers as cleanlab wants
them, and the id beside them; ``classes.csv`` says which label each number is.
"""

from pathlib import Path

import numpy as np

from stct.data.corrected import Corrected
from stct.data.tables import Table, write_table
from stct.report.ranking import find_rivals


def write_issues(corrected: Corrected, folder: Path, images: Path | None) -> str:
    """Write label_issues.csv and classes.csv; say how to load them."""
    missing = int(np.sum(corrected.given < 0))
    if missing:
        raise ValueError(
            f"{missing} rows have no given label, and cleanlab takes none; fill them "
            "in first ('stct apply' the patch) and correct again"
        )
    rivals = find_rivals(corrected)
    better = rivals.p_other > rivals.p_given
    predicted = np.where(better, rivals.other, corrected.given)
    columns = {
        "is_label_issue": (corrected.action == "relabel").tolist(),
        "label_quality": rivals.p_given.astype(float).round(6).tolist(),
        "given_label": corrected.given.tolist(),
        "predicted_label": predicted.tolist(),
        "id": corrected.ids,
    }
    table = Table("csv", columns, len(corrected.ids))
    write_table(folder / "label_issues.csv", table)
    names = [corrected.encoded(label) for label in corrected.classes]
    classes = {"number": list(range(len(names))), "label": names}
    write_table(folder / "classes.csv", Table("csv", classes, len(names)))
    return (
        "In Python: issues = pandas.read_csv('{output}/label_issues.csv'), then "
        "CleanLearning(model).fit(X, issues['given_label'], label_issues=issues)"
    )
