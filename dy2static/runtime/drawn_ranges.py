"""Draws of the module `random` from the numbers of a range, for programs in which the ends of the range are values."""
from __future__ import annotations

from typing import Any, Callable

import numpy as np


def drawn_number(draw: Callable, start: int, stop: int) -> int:
    """What ``draw`` gives of a range."""
    return int(draw(range(start, stop)))


def drawn_numbers(draw: Callable, start: int, stop: int, *args: Any, **kwargs: Any) -> np.ndarray:
    """The list that ``draw`` gives of a range, as an array: (number of draws,) int64."""
    return np.array(draw(range(start, stop), *args, **kwargs), np.int64)
