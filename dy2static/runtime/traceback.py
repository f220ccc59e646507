"""The user's lines in tracebacks of compiled code: an entry for each, as if it had been running."""
from __future__ import annotations

import os
import types
from itertools import islice
from typing import Any, Callable, Collection, List, Mapping, Optional, Sequence, Set, Tuple, TypeVar

from .. import config
from ..errors import Dy2StaticError, InternalError, Location, RunError
from ..pyast.loader import is_placed, line_in_text
from .frames import is_ours, is_standing, standing_at

#: The code of functions of ours that call a function as it was written: arguments that it does not take are the user's mistake.
_CALLERS: Set[types.CodeType] = set()

Function = TypeVar("Function", bound=Callable[..., Any])

#: Where an expression begins and ends: line, column, line, column.
Span = Tuple[int, int, int, int]

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def show_user_line(error: BaseException, code: types.CodeType, origins: Mapping[int, Location]) -> BaseException:
    """The error with entries for the user's line and its callers after that of the generated function ``code``.

    origins: the user's place for every line of the generated function.  The error keeps its type, its arguments and
    all its entries, but for those of this package below the user's line.  An error of ours names that line, too.
    """
    entries: List[Any] = []
    step, hidden = error.__traceback__, False
    while step is not None:
        hidden = hidden or step.tb_frame.f_code is code and not isinstance(error, Dy2StaticError)
        place = None
        if step.tb_frame.f_code is code and not _stands_below(step.tb_next):
            place = origins.get(line_in_text(code, step.tb_lasti, step.tb_lineno))
        if not (step.tb_frame.f_code is code and is_placed(code) or hidden and step.tb_frame.f_code.co_filename.startswith(_OURS)):
            entries.append((step.tb_frame, step.tb_lasti, step.tb_lineno))
        if place is not None:
            if isinstance(error, RunError) and error.at is None:
                error.at = place
            entries += [_entry(line) for line in (*place.callers, place)]
        step = step.tb_next
    return error.with_traceback(_chained(entries))


def calls_as_written(function: Function) -> Function:
    """Mark a function of ours that calls a function of the user's with the arguments of a call."""
    _CALLERS.add(function.__code__)                     # type: ignore[attr-defined]
    return function


def hide_internals(error: BaseException) -> None:
    """Take the entries of this package and of generated code out of the traceback of an error that leaves a compiled call.

    All stay under ``DY2STATIC_FULL_TRACEBACK=1``, and where the error seems to be a mistake of ours: it was raised in a line
    of ours, and is no error that is meant for the user.
    """
    entries: List[Any] = []
    step: Any = error.__traceback__
    while step is not None:
        entries.append((step.tb_frame, step.tb_lasti, step.tb_lineno))
        step = step.tb_next
    if config.FULL_TRACEBACK.value or not entries or isinstance(error, InternalError) or \
            is_ours(entries[-1][0].f_code) and not isinstance(error, Dy2StaticError) and not (
                isinstance(error, TypeError) and entries[-1][0].f_code in _CALLERS):
        return
    error.__traceback__ = _chained([entry for entry in entries if not is_ours(entry[0].f_code)])


def traceback_at(places: Sequence[Location]) -> Optional[types.TracebackType]:
    """The traceback of what was raised at the last of the user's places and passed through the others; None without places."""
    return _chained([_entry(place) for place in places])


def _chained(entries: Sequence[Any]) -> Optional[types.TracebackType]:
    rebuilt: Optional[types.TracebackType] = None
    for frame, last, line in reversed(entries):
        rebuilt = types.TracebackType(rebuilt, frame, last, line)
    return rebuilt


def expressions(error: BaseException, places: Sequence[Location]) -> List[Optional[Span]]:
    """Where the expressions stand that were evaluated at some lines, each called from that before it, when an error was raised.

    None where Python does not tell; before Python 3.11, it never does.
    """
    steps: List[Any] = []
    trace: Any = error.__traceback__
    while trace is not None:
        steps.append(trace)
        trace = trace.tb_next
    found: List[Optional[Span]] = []
    for place in reversed(places):
        while steps and (steps[-1].tb_frame.f_code.co_filename, steps[-1].tb_lineno) != (place.file, place.line):
            steps.pop()
        found.append(_span(steps.pop()) if steps else None)
    return found[::-1]


def outermost(error: BaseException, file: str, lines: Collection[int]) -> Optional[Tuple[int, Optional[Span]]]:
    """Which of some lines of a file an error came to last, and the expression there, as `expressions` gives it."""
    trace: Any = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file and trace.tb_lineno in lines:
            return trace.tb_lineno, _span(trace)
        trace = trace.tb_next
    return None


def _span(step: Any) -> Optional[Span]:
    """Where the expression stands that was evaluated in a frame."""
    code = step.tb_frame.f_code
    if not hasattr(code, "co_positions"):
        return None
    line, end_line, col, end_col = next(islice(code.co_positions(), step.tb_lasti // 2, None))
    return None if None in (line, end_line, col, end_col) else (line, col, end_line, end_col)


def hide_calls(error: BaseException, code: types.CodeType, calls: Collection[Span]) -> None:
    """Make the traceback of an error, and of those that led to it, what it is without parts.

    code: of a function that calls its parts at these places.  Its entry goes where one of the part follows, and so do the
    entries of this package below the user's first line.
    """
    seen, pending = set(), [error]
    while pending:
        found = pending.pop()
        if id(found) not in seen:
            seen.add(id(found))
            found.__traceback__ = _without_calls(found.__traceback__, code, calls)
            pending += [other for other in (found.__cause__, found.__context__) if other is not None]


def _without_calls(trace: Any, code: types.CodeType, calls: Collection[Span]) -> Any:
    steps = []
    while trace is not None:
        steps.append(trace)
        trace = trace.tb_next
    if not any(step.tb_frame.f_code is code for step in steps):
        return steps[0] if steps else None
    kept: List[Any] = []
    first = next((i for i, step in enumerate(steps) if step.tb_frame.f_code is code), 0)
    for number, step in enumerate(steps):
        is_ours = number > first and step.tb_frame.f_code.co_filename.startswith(_OURS)
        if not is_ours and not _calls_a_part(steps, number, code, calls):
            kept.append((step.tb_frame, step.tb_lasti, step.tb_lineno))
    return _chained(kept)


def _calls_a_part(steps: List[Any], number: int, code: types.CodeType, calls: Collection[Span]) -> bool:
    """Whether an entry is the call of a part whose own entry follows."""
    step = steps[number]
    if step.tb_frame.f_code is not code:
        return False
    span = _span(step)
    if step.tb_lineno not in {call[0] for call in calls} if span is None else span not in calls:
        return False
    below = next((other for other in steps[number + 1:] if not other.tb_frame.f_code.co_filename.startswith(_OURS)), None)
    return below is not None and (below.tb_frame.f_code.co_filename, below.tb_frame.f_code.co_name) == (
        code.co_filename, code.co_name)


def _stands_below(step: Any) -> bool:
    """Whether the user's lines have entries already: they follow, behind those of this package and of generated code."""
    while step is not None and is_ours(step.tb_frame.f_code):
        step = step.tb_next
    return step is not None and is_standing(step.tb_frame.f_code)


def _stopped() -> None:
    _dy_call = None                                     # noqa: F841  (by this name `is_standing` knows it)
    raise LookupError


def _entry(place: Location) -> Any:
    """Frame, instruction and line of a frame that stands at a place of the user's file."""
    code = standing_at(_stopped.__code__, place, 2)
    try:
        types.FunctionType(code, {"LookupError": LookupError})()
    except LookupError as found:
        step = found.__traceback__.tb_next              # type: ignore[union-attr]
        return step.tb_frame, step.tb_lasti, place.line
    raise AssertionError("unreachable")
