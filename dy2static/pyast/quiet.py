"""Compiles the user's code again without repeating the warnings of the first time."""

from __future__ import annotations

import contextlib
import warnings
from typing import Iterator


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress warnings inside: Python's compiler warns of doubtful code, even where warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
