"""The report: one HTML file to look at a correction, review it and take it along."""

from stct.report.write import (
    REPORT_FILES,
    labels_are_safe,
    rebuild_report,
    write_report,
)

__all__ = ["REPORT_FILES", "labels_are_safe", "rebuild_report", "write_report"]
