"""The three doors from the run time back to the compiler; `pipeline.install` fills them, nothing else does."""
from __future__ import annotations

import threading
from typing import Any, Callable, Optional


def _not_installed(*_: Any, **__: Any) -> Any:
    raise RuntimeError("dy2static.runtime was used before dy2static.pipeline.install()")


#: ``convert(function)`` gives the staged form of a Python function.
convert: Callable[..., Any] = _not_installed

#: ``compile_backward(segment, targets, given, again)`` gives a `runtime.segment.BackwardProgram`.
compile_backward: Callable[..., Any] = _not_installed


class Staging(threading.local):
    """The capture that runs on this thread, if any."""

    capture: Optional[Any] = None


#: ``stage.capture`` is asked by `dy` for everything that may be symbolic.
stage = Staging()
