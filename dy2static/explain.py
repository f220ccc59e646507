"""The report of `StaticFunction.explain`: each source line with what became of it."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

from .pyast.source import fetch
from .world.aborts import CaptureAborted


def report(function: Any, events: Sequence[Any], stop: Optional[CaptureAborted]) -> str:
    """Lines of the function with marks: ``graph``, ``opaque``, ``host`` or nothing (plain Python at capture)."""
    source = fetch(function)
    lines: Dict[int, List[str]] = {}
    other: Dict[str, List[str]] = {}
    for event in events:
        text = f"{_WORDS[event.kind]}: {event.text}"
        if event.at is not None and event.at.file == source.file and \
                source.first_line <= event.at.line < source.first_line + len(source.text.splitlines()):
            lines.setdefault(event.at.line, []).append(text)
        elif event.at is not None:
            other.setdefault(str(event.at), []).append(text)
    if stop is not None and stop.at is not None:
        lines.setdefault(stop.at.line, []).append(f"EAGER: {stop.reason}" + (f" ({stop.hint})" if stop.hint else ""))
    found = [f"{function.__qualname__} ({source.file}:{source.first_line})"]
    if stop is not None:
        found.append(f"this call runs eagerly: {stop.reason}")
    for number, text in enumerate(source.text.splitlines(), source.first_line):
        marks = list(dict.fromkeys(lines.get(number, [])))
        found.append(f"{number:5d} {text:<60} {'| ' + '; '.join(marks) if marks else ''}".rstrip())
    for place, marks in other.items():
        found.append(f"  in {place}: {'; '.join(dict.fromkeys(marks))}")
    return "\n".join(found)


_WORDS = {"staged": "graph", "opaque": "graph, kept whole", "host": "host, at every call", "python": "Python"}
