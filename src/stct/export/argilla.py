"""Argilla: a dataset on disk with suggestions, for ``rg.Dataset.from_disk``.

The layout is that of Argilla 2's own ``to_disk``: ``.argilla/dataset.json`` and
``.argilla/settings.json`` describe the dataset, ``records.json`` has the rows. It is
written without the package, whose classes need a running server.
"""

import base64
import json
import mimetypes
from pathlib import Path
from typing import Any

from stct.data.corrected import Corrected
from stct.export.rows import image_column, plain_columns, text_column


def write_records(corrected: Corrected, folder: Path, images: Path | None) -> str:
    """Write settings and records; say how to load them."""
    names = [corrected.encoded(label) for label in corrected.classes]
    picture = image_column(corrected, images)
    own = plain_columns(corrected)
    column = picture or text_column(corrected)
    shown = {**own, "id": corrected.ids}[column] if column else corrected.ids
    field = "image" if picture else "text"
    settings = {
        "guidelines": "Which label is right? The given one is in the metadata.",
        "allow_extra_metadata": False,
        "distribution": {"strategy": "overlap", "min_submitted": 1},
        "fields": [_field(field)],
        "questions": [_question(names)],
        "metadata": [
            _metadata("given", {"type": "terms"}),
            _metadata("action", {"type": "terms"}),
            _metadata("confidence", {"type": "float"}),
        ],
        "vectors": [],
    }
    (folder / ".argilla").mkdir()
    _write(folder / ".argilla" / "settings.json", settings)
    _write(folder / ".argilla" / "dataset.json", {"name": "stct"})
    records = []
    for row, name in enumerate(corrected.ids):
        given, label = int(corrected.given[row]), int(corrected.label[row])
        sure = round(float(corrected.confidence[row]), 6)
        value = "" if shown[row] is None else str(shown[row])
        if picture and images is not None:
            value = _inside(images / value)
        suggestion = {"value": names[label], "score": sure, "agent": "stct"}
        records.append(
            {
                "id": name,
                "fields": {field: value},
                "metadata": {
                    "given": names[given] if given >= 0 else "",
                    "action": str(corrected.action[row]),
                    "confidence": sure,
                },
                "suggestions": {"label": suggestion} if label >= 0 else {},
                "responses": {},
                "vectors": {},
                "status": "pending",
            }
        )
    _write(folder / "records.json", records)
    return (
        "In Python, with a server: argilla.Dataset.from_disk('{output}', "
        "name='stct', workspace='argilla', client=client)"
    )


def _inside(path: Path) -> str:
    """Give an image file as an address that holds it; other paths as they are."""
    kind = mimetypes.guess_type(path.name)[0]
    if kind is None or not path.is_file():
        return str(path)
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def _field(name: str) -> dict[str, Any]:
    kind = {"type": name} | ({"use_markdown": False} if name == "text" else {})
    return {"name": name, "title": name, "required": True, "settings": kind}


def _question(names: list[str]) -> dict[str, Any]:
    options = [{"value": n, "text": n, "description": None} for n in names]
    settings = {
        "type": "label_selection",
        "options": options,
        "visible_options": min(max(len(names), 3), 20),
    }
    return {
        "name": "label",
        "title": "Label",
        "description": None,
        "required": True,
        "settings": settings,
    }


def _metadata(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "title": name,
        "settings": settings,
        "visible_for_annotators": True,
    }


def _write(path: Path, value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)
    path.write_text(text, encoding="utf-8")
