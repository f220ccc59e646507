"""Where the user's code built an operation: found out when somebody asks."""
from __future__ import annotations

import sys
import types
from typing import Any, Dict, Optional, Sequence, Tuple

from ..errors import Location
from ..pyast.loader import module_of
from ..runtime.frames import caller_at
from ..runtime.traceback import traceback_at
from .calls import Caller, plainly


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
    return None if node.code is None else _location(node.code, node.last)


def _location(code: types.CodeType, last: int) -> Location:
    return Location(code.co_filename, line_of(code, last), 0, getattr(code, "co_qualname", code.co_name))


#: The callers that stand where nodes were built, with the code whose id they are found by.
_callers: Dict[Tuple[int, int], Tuple[types.CodeType, Caller]] = {}
_MOST_CALLERS = 4096


def caller_of(node: Any) -> Caller:
    """What calls NumPy from the line that built a node, so that warnings name it."""
    return plainly if node.code is None else _caller(node.code, node.last)


def caller_at_line(frame: Any) -> Caller:
    """What calls NumPy from the line at which a frame is now."""
    return _caller(frame.f_code, frame.f_lasti)


def _caller(code: types.CodeType, last: int) -> Caller:
    key = (id(code), last)
    found = _callers.get(key)
    if found is None:
        if len(_callers) >= _MOST_CALLERS:
            _callers.clear()
        place: Any = _location(code, last)
        space = vars(sys.modules[module_of(code.co_filename)])
        found = _callers[key] = code, caller_at([(place, space)])       # type: ignore[assignment]
    return found[1]


def show_builder(error: BaseException, structure: Any, nodes: Sequence[Any]) -> BaseException:
    """The error of a structure's function with the user's line that built the failing operation: see `show_place`."""
    return show_place(error, _failing(error, structure, nodes))


def show_place(error: BaseException, place: Optional[Location]) -> BaseException:
    """The error with a line of the user's at the end of its traceback, and in a note."""
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
