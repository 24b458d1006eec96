"""The report: one HTML file to look at a correction, review it and take it along."""

from stct.report.write import (
    REPORT_FILES,
    ask_for_labels,
    labels_are_safe,
    rebuild_report,
    rows_worth_checking,
    write_report,
)

__all__ = [
    "REPORT_FILES",
    "ask_for_labels",
    "labels_are_safe",
    "rebuild_report",
    "rows_worth_checking",
    "write_report",
]
