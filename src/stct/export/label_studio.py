"""Label Studio: tasks with predictions (tasks.json) and the labelling interface.

The tasks are in Label Studio's JSON format: ``data`` holds the row, ``predictions``
one result of type ``choices``. ``label_config.xml`` is the interface they fit.
"""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from stct.data.corrected import Corrected
from stct.export.rows import image_column, plain_columns, text_column

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_tasks(corrected: Corrected, folder: Path, images: Path | None) -> str:
    """Write tasks.json and label_config.xml; say how to import them."""
    names = [corrected.encoded(label) for label in corrected.classes]
    for name in names:
        if _NOT_XML.search(name):
            raise ValueError(
                f"label {name!r} has a control character, which Label Studio's "
                "interface (XML) cannot hold"
            )
    picture = image_column(corrected, images)
    shown = ("image", "Image") if picture else ("text", "Text")
    tasks = _tasks(corrected, names, picture, shown[0])
    text = json.dumps(tasks, ensure_ascii=False, allow_nan=False, indent=1)
    (folder / "tasks.json").write_text(text, encoding="utf-8")
    (folder / "label_config.xml").write_text(_interface(names, *shown), "utf-8")
    return (
        "In Label Studio: Settings, Labeling Interface, Code: paste "
        "{output}/label_config.xml; then Import {output}/tasks.json"
    )


def _interface(names: list[str], data: str, tag: str) -> str:
    choices = "\n".join(f"    <Choice value={quoteattr(name)}/>" for name in names)
    return (
        "<View>\n"
        f'  <{tag} name="{data}" value="${data}"/>\n'
        f'  <Choices name="label" toName="{data}" choice="single">\n'
        f"{choices}\n"
        "  </Choices>\n"
        '  <Header value="Given label:"/>\n'
        '  <Text name="given" value="$given"/>\n'
        "</View>\n"
    )


def _tasks(
    corrected: Corrected, names: list[str], picture: str | None, shown: str
) -> list[dict[str, Any]]:
    own = plain_columns(corrected)
    if picture is None:
        column = text_column(corrected)
        show = own[column] if column else corrected.ids
        show = ["" if value is None else str(value) for value in show]
    else:
        show = [_address(v) for v in {**own, "id": corrected.ids}[picture]]
    version = f"stct {corrected.summary.get('versions', {}).get('stct', '')}".strip()
    tasks = []
    for row, name in enumerate(corrected.ids):
        given, label = int(corrected.given[row]), int(corrected.label[row])
        sure = round(float(corrected.confidence[row]), 6)
        data = {column: values[row] for column, values in own.items()}
        data |= {
            "id": name,
            "given": names[given] if given >= 0 else "",
            "action": str(corrected.action[row]),
            "confidence": sure,
            shown: show[row],
        }
        task: dict[str, Any] = {"data": data}
        if label >= 0:
            result = {
                "id": f"stct-{row}",
                "from_name": "label",
                "to_name": shown,
                "type": "choices",
                "value": {"choices": [names[label]]},
            }
            task["predictions"] = [
                {"model_version": version, "score": sure, "result": [result]}
            ]
        tasks.append(task)
    return tasks


def _address(path: Any) -> str:
    """Give a path as Label Studio's local storage serves it; addresses as they are."""
    text = "" if path is None else str(path)
    if not text or re.match("[a-z][a-z0-9+.-]+:", text, re.IGNORECASE):
        return text
    return f"/data/local-files/?d={quote(text.lstrip('/'))}"
