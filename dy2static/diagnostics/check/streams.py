"""What a call writes to the standard streams and logs: recorded, and passed on or not."""
from __future__ import annotations

import contextlib
import logging
import sys
import threading
import warnings
from typing import Any, Iterator, List, NamedTuple, Optional

from ...errors import Location
from ...heap.locations import user_location
from .compare import same_text


class Said(NamedTuple):
    """One text: where it went, what it was, and the user's line that wrote it."""

    where: str
    text: str
    at: Optional[Location]


class _Stream:
    """A stream that records what one thread writes, except what a handler of the log writes."""

    def __init__(self, stream: Any, name: str, said: List[Said], silent: bool, logging_: List[Any]):
        self._stream, self._name, self._said, self._silent, self._logging = stream, name, said, silent, logging_
        self._thread = threading.get_ident()

    def write(self, text: str) -> Any:
        if threading.get_ident() == self._thread and not self._logging:
            self._said.append(Said(self._name, text, user_location()))
            if self._silent:
                return len(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def recorded(silent: bool) -> Iterator[List[Said]]:
    """A list that fills with what this thread prints and logs inside the block; ``silent``: it is not shown."""
    said: List[Said] = []
    handled_now: List[Any] = []
    streams, handle, thread = (sys.stdout, sys.stderr), logging.Logger.handle, threading.get_ident()

    def handled(logger: logging.Logger, record: logging.LogRecord) -> None:
        if threading.get_ident() == thread:
            said.append(Said(f"the log {logger.name}", record.getMessage(), user_location()))
            if silent:
                return
            handled_now.append(record)
            try:
                handle(logger, record)
            finally:
                handled_now.pop()
        else:
            handle(logger, record)
    sys.stdout, sys.stderr = (_Stream(stream, f"the {name} output", said, silent, handled_now)
                              for stream, name in zip(streams, ("standard", "error")))
    logging.Logger.handle = handled                     # type: ignore[method-assign,assignment]
    try:
        with warnings.catch_warnings(record=True) if silent else contextlib.nullcontext():
            yield said
    finally:
        logging.Logger.handle = handle                  # type: ignore[method-assign]
        sys.stdout, sys.stderr = streams


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
