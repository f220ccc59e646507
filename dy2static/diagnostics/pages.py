"""What notebooks show of an explanation and of a compiled function."""
from __future__ import annotations

from typing import Any, Dict, List

from ..markup import cell, escaped, folded, heading, page_part, preformatted, table

_CLASSES = {"graph": "graph", "opaque": "graph", "host": "python", "cut": "python", "eager": "eager", "part": "graph"}


def explanation_page(explanation: Any) -> str:
    """The lines with their marks in colour, and below them what splits and limits the program."""
    _, head, *_ = [*str(explanation).split("\n", 2), ""]
    parts = [heading(head)]
    for listing in explanation.listings:
        rows = [[cell(line.number, "number dim"), cell(f"<pre>{escaped(line.text)}</pre>"),
                 cell("<br>".join([_mark(mark) for mark in line.marks]))] for line in listing.lines]
        parts.append(folded(f"{listing.name} ({listing.file})", table((), rows), is_open=True))
    for title, texts in (("stored Variables that split the gradients", explanation.split_by),
                         ("made for calls with", explanation.depends)):
        if texts:
            parts.append(folded(title, preformatted("\n".join(texts))))
    return page_part(*parts)


def _mark(mark: Any) -> str:
    kind = _CLASSES.get(mark.kind, "dim")
    return f"<span class='{kind}'>{escaped(mark)}</span>"


def program_rows(programs: Any) -> List[List[str]]:
    """For each program its signature, and how many nodes, guards, FunctionNodes and bytes it has."""
    return [[cell(escaped(program.signature)), *(cell(f"{number:,}", "number") for number in (
        program.counts.get("nodes", 0), len(program.guards), len(program.segments), program.nbytes)),
        cell("C" if program.native_code else "NumPy")] for program in programs]


def function_page(name: str, programs: Any, info: Dict[str, Any], reasons: Any, cuts: Any) -> str:
    """A compiled function: its programs, counts, cuts, and why calls run eagerly."""
    parts = [heading(f"{name}: compiled by dy2static"),
             table(("program for", "nodes", "guards", "FunctionNodes", "bytes", "runs on"), program_rows(programs)),
             f"<p>{escaped(', '.join(f'{key} {value}' for key, value in info.items()))}</p>"]
    for title, texts in (("cuts: lines that run as Python", cuts), ("calls that run eagerly", reasons)):
        if texts:
            parts.append(folded(title, preformatted("\n".join(map(str, texts))), is_open=True))
    return page_part(*parts)
