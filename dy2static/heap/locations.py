"""Which line of the user's is running."""
from __future__ import annotations

import functools
import linecache
import os
import sys
import sysconfig
import types
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import chainer
import numpy

from ..errors import Location
from ..pyast.loader import is_generated

OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = os.path.normpath(sysconfig.get_paths()["stdlib"]) + os.sep
_LIBRARIES = tuple(os.path.dirname(os.path.abspath(module.__file__)) + os.sep for module in (chainer, numpy))

#: What Python, IPython and `doctest` call what has no file: the text of `python -c` is "<string>", like that of any `exec`.
_TYPED = ("<ipython", "<doctest", "<lazy_", "<stdin>", "<python-input", "<timed exec>")

#: The code that runs blocks of a converted function, as functions of their own.
_STAGING = (os.path.join(OURS, "runtime", "dy.py"), os.path.join(OURS, "control_flow") + os.sep)

#: What runs blocks of statements there, which are where a bare ``raise`` may stand.
_OF_STATEMENTS = ("cond", "while_", "for_")

#: Where a capture begins: what is on the stack above is not part of the program.
_START = os.path.join(OURS, "pipeline.py")

#: Files that are no user's, as far as they have been met.
_OTHERS = {_START}

#: What `user_location` has found, by the instructions that run, and the code of these, so that nothing else gets its ids.
_found: Dict[Tuple[int, ...], Tuple[Optional[Location], List[types.CodeType]]] = {}
_MOST_FOUND = 4096


@functools.lru_cache(maxsize=4096)
def is_user_file(file: str) -> bool:
    """Whether a file is neither ours nor a library's."""
    if file.startswith("<"):
        return file.startswith(_TYPED) or file == "<string>" and sys.argv[:1] == ["-c"]
    if file.startswith(OURS) or file.startswith(_LIBRARIES):
        return False
    return not file.startswith(_STDLIB) or "site-packages" in file


def is_standard(file: str) -> bool:
    """Whether a file is of Python's own library."""
    return file.startswith(_STDLIB) and "site-packages" not in file


def is_installed(file: str) -> bool:
    """Whether a file is of an installed package, whose lines the user does not edit."""
    return not {"site-packages", "dist-packages"}.isdisjoint(file.split(os.sep))


def is_user_code(code: types.CodeType) -> bool:
    """Whether code is of a file that is neither ours nor a library's, and was not generated for lines of such a file."""
    return is_user_file(code.co_filename) and not is_generated(code)


def user_location() -> Optional[Location]:
    """The innermost running line that is the user's, and those that led to it; None outside user code."""
    codes, steps, frame = [], [], sys._getframe(1)      # type: List[types.CodeType], List[int], Any
    while frame is not None:                            # as in `_user_frames`, and fast: each operation asks for its line
        code, runner = frame.f_code, frame.f_back
        file = code.co_filename
        if file in _OTHERS:
            if file == _START:
                break
        elif is_user_file(file):
            codes += code, code if runner is None else runner.f_code
            steps.append(frame.f_lasti)
        elif not file.startswith("<"):
            _OTHERS.add(file)
        frame = runner
    key = (*map(id, codes), *steps)
    known = _found.get(key)
    if known is None:
        if len(_found) >= _MOST_FOUND:
            _found.clear()
        known = _found[key] = _place(_outwards(sys._getframe(1))), codes
    return known[0]


def error_location(error: BaseException) -> Optional[Location]:
    """The innermost line of the user's that an exception passed through, and those that led to it."""
    steps = list(_walk(error.__traceback__))
    if not steps:
        return None
    start = next((i for i in reversed(range(len(steps))) if steps[i][0].f_code.co_filename == _START), None)
    if start is not None:
        return _place(reversed(steps[start + 1:]))
    around = _outwards(steps[0][0].f_back) if _is_captured(steps[0][0]) else ()
    return _place([*reversed(steps), *around], _raising_again(steps))


def passed_lines(error: BaseException) -> Tuple[Location, ...]:
    """The user's lines that an exception passed through until it was caught, outermost first."""
    steps = list(_walk(error.__traceback__))
    if not steps:
        return ()
    again = _raising_again(steps)
    passed = len(_lines(reversed(steps), again))
    found = _lines([*reversed(steps), *_outwards(steps[0][0].f_back)], again)[:passed]  # those around tell whose block it is
    return tuple([Location(file, line, 0, name) for file, line, name, _ in reversed(found)])


def _raising_again(steps: Sequence[Tuple[Any, int]]) -> List[Any]:
    """Our frames that ran blocks in which an exception was raised again by a bare ``raise``.

    That gives a function no line in the traceback: the frame of such a block is not among the steps.
    """
    found = []
    for (runner, _), (inner, _) in zip(steps, steps[1:]):
        file, name = runner.f_code.co_filename, runner.f_code.co_name
        if inner.f_back not in (None, runner) and file.startswith(_STAGING) and (file != _STAGING[0] or name in _OF_STATEMENTS):
            found.append(runner)
    return found


def definition(function: types.FunctionType) -> Optional[Location]:
    """Where a function begins: its ``def`` line, below its decorators; None where its text cannot be read."""
    code = function.__code__
    line = code.co_firstlineno
    while linecache.getline(code.co_filename, line).lstrip().startswith("@"):
        line += 1
    place = Location(code.co_filename, line, 0, function.__qualname__)
    return place if place.text() else None


def _outwards(frame: Any) -> Iterator[Tuple[Any, int]]:
    """The running frames of the user's files, and their lines, from one to where the capture began, innermost first."""
    for each in _user_frames(frame):
        yield each, each.f_lineno                       # Python has to search for the line


def _user_frames(frame: Any) -> Iterator[Any]:
    """The running frames of the user's files, from one to where the capture began, innermost first."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file not in _OTHERS:
            if is_user_file(file):
                yield frame
            elif not file.startswith("<"):              # texts that are generated have ever new names
                _OTHERS.add(file)
        elif file == _START:
            return
        frame = frame.f_back


def _is_captured(frame: Any) -> bool:
    while frame is not None and frame.f_code.co_filename != _START:
        frame = frame.f_back
    return frame is not None


def user_lines() -> List[Tuple[Location, dict]]:
    """The running lines of the user's since the capture began, outermost first, with the globals of their functions."""
    lines = _lines(_outwards(sys._getframe(1)))
    return [(Location(file, line, 0, name), getattr(space, "real", space)) for file, line, name, space in reversed(lines)]


def _place(steps: Iterable[Tuple[Any, int]], again: Sequence[Any] = ()) -> Optional[Location]:
    """The first of these lines that is the user's, with the others as its callers."""
    found = _lines(steps, again)
    return _location(tuple([each[:3] for each in found])) if found else None


@functools.lru_cache(maxsize=1024)
def _location(lines: Tuple[Tuple[str, int, str], ...]) -> Location:
    """The first of these lines, with the others as its callers: one object for all operations of a line."""
    callers = [Location(file, line, 0, name) for file, line, name in reversed(lines[1:])]
    file, line, name = lines[0]
    return Location(file, line, 0, name, tuple(callers))


def _lines(steps: Iterable[Tuple[Any, int]], again: Sequence[Any] = ()) -> List[Tuple[str, int, str, dict]]:
    """File, line, function and globals of the frames that are the user's; a block counts as its function.

    again: frames of ours that run blocks of functions which have no line.
    """
    found: List[Optional[Tuple[str, int, str, dict]]] = []
    owners: List[Any] = []      # for each, the frame of the function, as far as it is known
    block: Any = None           # a frame that runs a block of the function it is defined in, in place of that one
    has_line = True
    for frame, line in steps:
        code = frame.f_code
        if not is_user_code(code):
            has_line = has_line and not any(frame is other for other in again)
            continue
        name = getattr(code, "co_qualname", code.co_name)
        if block is not None and block.f_code in code.co_consts:
            for k, entry in enumerate(found):
                if owners[k] is block:
                    owners[k], found[k] = frame, entry and (*entry[:2], name, frame.f_globals)
        else:
            found.append((code.co_filename, line, name, frame.f_globals) if has_line else None)
            owners.append(frame)
        has_line = True
        runner = "" if frame.f_back is None else frame.f_back.f_code.co_filename
        block = frame if runner.startswith(_STAGING) else None
    return [entry for entry in found if entry is not None]


def caller_depth() -> int:
    """The ``stacklevel`` at which a warning of ours names the user's line that called us, perhaps through Chainer.

    If no line belongs to the user, the line that called this package.
    """
    depth, frame, called = 1, sys._getframe(1), 0
    while frame is not None:
        code = frame.f_code
        if is_user_code(code):
            return depth
        called = called or (0 if code.co_filename.startswith(OURS) or is_generated(code) else depth)
        depth, frame = depth + 1, frame.f_back
    return called or depth


def _walk(traceback: Any) -> Iterable:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next
