"""Where the user's code built an operation: found out when somebody asks."""
from __future__ import annotations

import types
from typing import Any, Optional, Sequence

from ..errors import Location
from ..runtime.traceback import traceback_at


def line_of(code: types.CodeType, last: int) -> int:
    """The line of an instruction."""
    lines = getattr(code, "co_lines", None)
    if lines is not None:
        found = next((line for start, end, line in lines() if start <= last < end), None)
        return code.co_firstlineno if found is None else found
    line, at = code.co_firstlineno, 0                   # Python 3.9
    for step, change in zip(code.co_lnotab[::2], code.co_lnotab[1::2]):
        at += step
        if at > last:
            break
        line += change - 256 if change > 127 else change
    return line


def site_of(node: Any) -> Optional[Location]:
    """The line that built a node; None of one that has been computed."""
    code = node.code
    if code is None:
        return None
    return Location(code.co_filename, line_of(code, node.last), 0, getattr(code, "co_qualname", code.co_name))


def show_builder(error: BaseException, structure: Any, nodes: Sequence[Any]) -> BaseException:
    """The error with the user's line that built the failing operation at the end of its traceback, and in a note."""
    place = _failing(error, structure, nodes)
    if place is None:
        return error
    if hasattr(error, "add_note"):
        error.add_note(f"in the lazy operation built at {place}: {place.text().strip()}")
    return error.with_traceback(traceback_at((place,)))


def _failing(error: BaseException, structure: Any, nodes: Sequence[Any]) -> Optional[Location]:
    step = error.__traceback__
    place = None
    while step is not None:
        if step.tb_frame.f_code.co_filename == structure.file and step.tb_lineno in structure.lines:
            place = site_of(nodes[structure.lines[step.tb_lineno]]) or place
        step = step.tb_next
    return place
