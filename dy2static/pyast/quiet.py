"""Compiling the user's code again without the warnings that Python gave when it was compiled first."""

from __future__ import annotations

import contextlib
import warnings
from typing import Iterator


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Inside, nothing warns: Python's compiler does so of doubtful code, also where warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
