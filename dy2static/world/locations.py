"""Which line of the user's is running."""
from __future__ import annotations

import os
import sys
import sysconfig
from typing import Any, Iterable, Optional

import chainer
import numpy

from ..errors import Location

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = os.path.normpath(sysconfig.get_paths()["stdlib"]) + os.sep
_LIBRARIES = tuple(os.path.dirname(os.path.abspath(module.__file__)) + os.sep for module in (chainer, numpy))


def is_user_file(file: str) -> bool:
    """Whether a file is neither ours nor a library's."""
    if file.startswith("<"):
        return file.startswith("<ipython") or file.startswith("<doctest")
    if file.startswith(_OURS) or file.startswith(_LIBRARIES):
        return False
    return not file.startswith(_STDLIB) or "site-packages" in file


def _location(frame: Any, line: int) -> Location:
    code = frame.f_code
    return Location(code.co_filename, line, 0, getattr(code, "co_qualname", code.co_name))


def user_location() -> Optional[Location]:
    """The innermost running line that is the user's; None outside user code."""
    frame = sys._getframe(1)
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            return _location(frame, frame.f_lineno)
        frame = frame.f_back
    return None


def caller_depth() -> int:
    """The ``stacklevel`` at which a warning of ours names the line that called us."""
    depth, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        depth, frame = depth + 1, frame.f_back
    return depth


def error_location(error: BaseException) -> Optional[Location]:
    """The innermost line of the user's that an exception passed through."""
    found = None
    for frame, line in _walk(error.__traceback__):
        if is_user_file(frame.f_code.co_filename):
            found = _location(frame, line)
    return found


def _walk(traceback: Any) -> Iterable:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next
