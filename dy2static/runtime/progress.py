"""One line on the terminal while a compilation takes long."""
from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import Any, Iterator, Optional

from .. import config

#: After so many seconds the line is shown, and then written again so often.
AFTER, EVERY = 2.0, 0.5

_ERASE = "\r\x1b[2K"
_only_one = threading.Lock()


@contextlib.contextmanager
def shown(what: str) -> Iterator[None]:
    """While the block runs, a terminal shows what is done, and for how long; nothing stays of it.

    Nothing is shown, and no thread is started, where standard error is no terminal, in the blocks inside of this one and beside it.
    """
    stream = _terminal()
    if stream is None or not _only_one.acquire(blocking=False):
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(stream, what, done), name="dy2static progress", daemon=True)
    try:
        thread.start()
        yield
    finally:
        done.set()
        thread.join()
        _only_one.release()


def _terminal() -> Optional[Any]:
    """Standard error, if that is a terminal on which a line can be erased, and progress is wanted."""
    stream = sys.stderr
    if not config.PROGRESS.value or stream is None or stream.closed or not stream.isatty() or config.is_dumb_terminal():
        return None
    return stream


def _show(stream: Any, what: str, done: threading.Event) -> None:
    begin, is_there = time.monotonic(), False
    wait = AFTER
    with contextlib.suppress(OSError, ValueError):      # the terminal is gone, or the stream was closed
        while not done.wait(wait):
            text = f"dy2static: {what} ({time.monotonic() - begin:.0f} s)"
            stream.write(_ERASE + text[:_width(stream) - 1])
            stream.flush()
            is_there, wait = True, EVERY
        if is_there:
            stream.write(_ERASE)
            stream.flush()


def _width(stream: Any) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):       # a stream without a file
        return 80
