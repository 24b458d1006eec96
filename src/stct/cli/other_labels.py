"""``stct correct`` for labels that are no classes: several for a row, or numbers."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stct.data.inputs import Inputs


def are_classes(separator: str | None, *, numeric: bool, **classes_only: bool) -> bool:
    """Tell whether labels are classes; if not, refuse options that belong to them."""
    if separator is None and not numeric:
        return True
    if separator is not None and numeric:
        raise ValueError("give --multi-label or --numeric, not both")
    option = "--numeric" if numeric else "--multi-label"
    for name, given in classes_only.items():
        if given:
            raise ValueError(f"--{name.replace('_', '-')} does not go with {option}")
    return False


def correct(
    inputs: "Inputs",
    separator: str | None,
    min_odds: float,
    output: Path,
    start: float,
    *,
    overwrite: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Correct rows with several labels, or check numbers if there is no separator."""
    from stct import MultiLabelCorrector, NumericLabelChecker
    from stct.console import progress, show_label_sets, show_numeric
    from stct.data import other_labels
    from stct.data.outputs import whole_folder
    from stct.data.summary import as_json as to_json

    estimator: Any = NumericLabelChecker()
    write: Any = other_labels.write_numeric
    if separator is not None:
        text = None if separator == other_labels.LISTS else separator
        estimator = MultiLabelCorrector(text, min_odds=min_odds)
        write = other_labels.write_label_sets
        labels: Any = other_labels.sets_of(inputs, separator)
    else:
        labels = other_labels.numbers_of(inputs)
    silent = quiet or as_json
    started = time.perf_counter()
    with progress("Fitting", quiet=silent) as report:
        try:
            estimator.fit(
                inputs.embeddings, labels, locked=inputs.locked, progress=report
            )
        except ValueError as error:
            raise ValueError(f"{other_labels.place_of(inputs)}: {error}") from error
    seconds = time.perf_counter() - started
    with (
        progress("Writing", quiet=silent),
        whole_folder(output, overwrite=overwrite) as folder,
    ):
        summary = write(folder, inputs, estimator, seconds=seconds)
    if as_json:
        print(to_json(summary), end="")
    elif not quiet:
        show = show_numeric if separator is None else show_label_sets
        show(summary, output, time.perf_counter() - start)
