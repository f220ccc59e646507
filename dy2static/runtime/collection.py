"""Python's garbage collector while a program is made."""
from __future__ import annotations

import contextlib
import gc
from typing import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """No collections inside: nearly all that a compilation makes stays, and is looked at in vain each time (a tenth of it)."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
