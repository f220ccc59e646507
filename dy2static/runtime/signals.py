"""Handlers of signals that come while a call is captured: they run as if no capture did."""
from __future__ import annotations

import _signal
import contextlib
import signal
import threading
from typing import Any, Iterator, List

from .hooks import stage

#: What `signal` has of these names looks for an enum of each number first, and for one of each handler.
_NUMBERS, _handler_of = tuple(_signal.valid_signals()), _signal.getsignal


class RaisedByHandler(BaseException):
    """A handler has raised an exception: ``error``.  Unlike that, it is taken for no mistake in what is captured."""

    def __init__(self, error: Exception):
        super().__init__(error)
        self.error = error


class _Outside:
    """Called in place of a handler of the user's."""

    def __init__(self, number: int, handler: Any):
        self.number, self.handler, self.is_over = number, handler, False

    def __call__(self, number: int, frame: Any) -> None:
        if self.is_over:
            self.handler(number, frame)
            return
        saved = stage.capture, stage.observer
        stage.capture = stage.observer = None
        try:
            self.handler(number, frame)
        except Exception as error:                      # of any kind: the handler is the user's
            raise RaisedByHandler(error) from None
        finally:
            stage.capture, stage.observer = saved


@contextlib.contextmanager
def handled_outside() -> Iterator[None]:
    """In the block, let handlers of signals run outside of the capture.

    A handler computes with Chainer in eager mode then.  Raises `RaisedByHandler` for an exception of a handler (that of an alarm
    which ends what takes too long, for example).  Other threads than the main thread handle no signals.
    """
    made: List[_Outside] = []
    try:
        if threading.current_thread() is threading.main_thread():
            for number in _NUMBERS:
                handler = _handler_of(number)
                if callable(handler) and handler is not signal.default_int_handler and type(handler) is not _Outside:
                    made.append(_Outside(number, handler))
                    signal.signal(number, made[-1])
        yield
    finally:
        for outside in made:
            outside.is_over = True
            if _handler_of(outside.number) is outside:     # else the user has set another one meanwhile
                signal.signal(outside.number, outside.handler)
