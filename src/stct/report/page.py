"""The page: template, style, script and data in one file that needs no network.

Labels, ids and texts come from strangers. They are in the page only as JSON inside a
block that no browser runs, and the script puts them on the screen as text, never as
HTML. A content-security policy allows exactly our own script and style, by hash, and
no request at all.
"""

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

_PAGE = files("stct.report") / "page"
_STYLES = ("base.css", "charts.css", "review.css", "audit.css")
_SCRIPTS = (
    "data.js",
    "dom.js",
    "decisions.js",
    "overview.js",
    "charts.js",
    "annotators.js",
    "map.js",
    "curves.js",
    "review.js",
    "cards.js",
    "exports.js",
    "audit.js",
    "main.js",
)


def render(payload: dict[str, Any]) -> str:
    """Give the whole page as text."""
    style = "\n".join(_read(name) for name in _STYLES)
    script = "(() => {\n'use strict';\n" + "\n".join(map(_read, _SCRIPTS)) + "\n})();"
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; "
        f"style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = _read("template.html")
    parts = {
        "policy": policy,
        "style": style,
        "script": script,
        "data": as_data_block(payload),
    }
    # One pass from left to right: what was put in is not searched again.
    pieces = []
    for name in ("policy", "style", "data", "script"):
        before, page = page.split("{{" + name + "}}", 1)
        pieces += [before, parts[name]]
    return "".join([*pieces, page])


def as_data_block(payload: Any) -> str:
    """Write JSON that cannot end the script element it stands in."""
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False)  # ASCII only
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _read(name: str) -> str:
    return (_PAGE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
