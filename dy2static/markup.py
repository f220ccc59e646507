"""Texts of reports, and HTML for notebooks and reports: pieces, tables and lists, escaped; no script, no files from elsewhere."""
from __future__ import annotations

import html
from typing import Any, Iterable, Sequence

_STYLE = ("<style>.dy2static pre{line-height:1.35;margin:0;white-space:pre;text-align:left}"
          ".dy2static table{border-collapse:collapse}"
          ".dy2static td,.dy2static th{padding:1px 8px;text-align:left!important;vertical-align:top}"
          ".dy2static td.number{text-align:right!important;font-variant-numeric:tabular-nums}"
          ".dy2static .dim{opacity:.65}.dy2static .graph{color:#1a7f37}.dy2static .python{color:#9a6700}"
          ".dy2static .eager{color:#cf222e}"
          ".dy2static .bar{display:inline-block;height:.8em;background:#4c8dd6}</style>")


def counted(count: int, what: str) -> str:
    """A number with a noun: "1 call", "2,000 calls"."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def escaped(text: Any) -> str:
    """The text of something, safe between tags and in attributes."""
    return html.escape(str(text), quote=True)


def page_part(*parts: str) -> str:
    """Pieces of HTML as what `_repr_html_` gives: one element with its style."""
    return f"<div class='dy2static'>{_STYLE}{''.join(parts)}</div>"


def heading(text: str) -> str:
    """A line in bold."""
    return f"<p><b>{escaped(text)}</b></p>"


def preformatted(text: str) -> str:
    """A text with its lines and spaces."""
    return f"<pre>{escaped(text)}</pre>"


def folded(title: str, content: str, is_open: bool = False) -> str:
    """HTML that opens with a click on its title."""
    return f"<details{' open' if is_open else ''}><summary>{escaped(title)}</summary>{content}</details>"


def cell(content: Any, kind: str = "") -> str:
    """A cell of a table: a text, or HTML that `table` takes as it is."""
    return f"<td{f' class={chr(39)}{kind}{chr(39)}' if kind else ''}>{content}</td>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells made by `cell`."""
    head = "".join(f"<th scope='col'>{escaped(text)}</th>" for text in header)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if header else ''}<tbody>{body}</tbody></table>"
