"""What a call writes to the standard streams and logs: recorded, and passed on or not."""
from __future__ import annotations

import contextlib
import functools
import logging
import sys
import threading
import warnings
from typing import Any, Callable, Iterator, List, NamedTuple, Optional

from ...errors import Location
from ...heap.locations import user_location
from ...threads.replaced import replaced
from .compare import same_text


class Said(NamedTuple):
    """One text: where it went, what it was, and the user's line that wrote it."""

    where: str
    text: str
    at: Optional[Location]


class _Recording:
    """What one thread says in a block."""

    def __init__(self, silent: bool):
        self.said: List[Said] = []
        self._silent, self._thread, self._is_over, self._logging = silent, threading.get_ident(), False, 0

    def takes(self, where: str, text: str) -> bool:
        """Take down a text if it is this thread's.  Returns whether it is not to be shown."""
        if not self._is_here() or self._logging:        # what a handler of the log writes is taken down as a record
            return False
        self.said.append(Said(where, text, user_location()))
        return self._silent

    def handle(self, handle: Callable[..., None], logger: logging.Logger, record: logging.LogRecord) -> None:
        """``logging.Logger.handle``."""
        if not self._is_here():
            handle(logger, record)
            return
        self.said.append(Said(f"the log {logger.name}", record.getMessage(), user_location()))
        if not self._silent:
            self._logging += 1
            try:
                handle(logger, record)
            finally:
                self._logging -= 1

    def show(self, show: Callable[..., None], *warning: Any) -> None:
        """``warnings.showwarning`` in a silent block."""
        if not self._is_here():
            show(*warning)

    def end(self) -> None:
        """From now on everything is passed on."""
        self._is_over = True

    def _is_here(self) -> bool:
        return threading.get_ident() == self._thread and not self._is_over


class _Stream:
    """A stream that a recording listens to."""

    def __init__(self, recording: _Recording, name: str, stream: Any):
        self._recording, self._name, self._stream = recording, name, stream

    def write(self, text: str) -> Any:
        return len(text) if self._recording.takes(f"the {self._name} output", text) else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _NoWarning(Warning):
    """No warning is of this kind."""


@contextlib.contextmanager
def recorded(silent: bool) -> Iterator[List[Said]]:
    """A list that fills with what this thread prints and logs inside the block; ``silent``: it is not shown, nor are warnings."""
    recording = _Recording(silent)
    with contextlib.ExitStack() as stack:
        for stream, name in (("stdout", "standard"), ("stderr", "error")):
            stack.enter_context(replaced(sys, stream, functools.partial(_Stream, recording, name)))
        stack.enter_context(replaced(logging.Logger, "handle", lambda handle: (
            lambda logger, record: recording.handle(handle, logger, record))))
        if silent:
            stack.callback(_forget_shown)
            stack.enter_context(replaced(warnings, "showwarning", functools.partial(functools.partial, recording.show)))
        stack.callback(recording.end)
        yield recording.said


def _forget_shown() -> None:
    """Let warnings that are shown once be shown, although they have come up in a silent block: a change of filters does that."""
    warnings.simplefilter("ignore", _NoWarning, append=True)
    filters: Any = warnings.filters
    filters.pop(next(place for place, item in enumerate(filters) if item[2] is _NoWarning))


def first_difference(eager: List[Said], compiled: List[Said]) -> Any:
    """The first text that only one run wrote, or both differently, as (what, the user's line); None if there is none."""
    wheres = dict.fromkeys(said.where for said in (*eager, *compiled))
    for where in wheres:
        one, other = ([said for said in run if said.where == where] for run in (eager, compiled))
        if same_text("".join(said.text for said in one), "".join(said.text for said in other)):
            continue
        written = ""
        whole = "".join(said.text for said in other)
        for said in one:
            written += said.text
            if not same_text(written, whole[:len(written)]):
                break
        return f"{where} gets {_short(one)} eagerly, and {_short(other)} compiled", said.at if one else None
    return None


def _short(run: List[Said]) -> str:
    text = repr("".join(said.text for said in run))
    return text if len(text) <= 80 else f"{text[:77]}..."
