"""Warns once per process of each thing that native code has to do without."""
from __future__ import annotations

import contextlib
import os
import sys
import warnings
from typing import Set

import chainer

from ..errors import FallbackWarning
from ..pyast.loader import is_generated

#: Files between the user's line and ours: of this package, of Chainer, whose `backward` calls us, and of decorators.
_BETWEEN = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,
            os.path.dirname(chainer.__file__) + os.sep, contextlib.__file__)
_said: Set[str] = set()


def announce(what: str, message: str) -> None:
    """Warn at the user's line that something falls back; later calls with the same ``what`` say nothing."""
    if what in _said:
        return
    _said.add(what)
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and (
            frame.f_code.co_filename.startswith(_BETWEEN) or is_generated(frame.f_code)):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, FallbackWarning, stacklevel=depth)


def forget() -> None:
    """Forget which warnings have been given: for tests."""
    _said.clear()
