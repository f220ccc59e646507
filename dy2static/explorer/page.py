"""The page as one HTML file without anything from elsewhere: data as JSON, a style and a script."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

from ..markup import escaped

_FOLDER = Path(__file__).parent


class Page(str):
    """The HTML as a text; notebooks show it in a frame of its own."""

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escaped(self)}" style="width:100%;height:700px;border:0" title="dy2static explorer"></iframe>'

    def save(self, path: Any) -> None:
        """Write it into a file.  Raises OSError."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self)


def page(data: Dict[str, Any]) -> str:
    """The HTML of what `gathered` gives."""
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    parts = {"TITLE": escaped(data["name"]), "STYLE": _read("explorer.css"), "SCRIPT": _read("explorer.js"), "DATA": text}
    html = _read("explorer.html")
    for name in ("TITLE", "STYLE", "SCRIPT", "DATA"):   # the data last: nothing is put into it
        html = html.replace(f"%{name}%", parts[name])
    return html


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
