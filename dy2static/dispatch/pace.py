"""Whether calls are faster compiled or as Python, by the time that some of both take."""
from __future__ import annotations

import statistics
import time
from typing import Any, Callable, List, Mapping, Optional, Tuple

#: So many calls of each kind are measured.
MEASURED = 8

#: Python is preferred if it takes less than this share of the time.
_SHARE = 0.97


class Pace:
    """Whether calls are faster compiled than in Python.

    is_slow: None while that is not known.  compiled, python: the seconds that calls took.
    """

    def __init__(self) -> None:
        self.is_slow: Optional[bool] = None
        self.compiled: List[float] = []
        self.python: List[float] = []

    @property
    def is_for_python(self) -> bool:
        """Whether the next call is to be one of Python.

        Calls may come in a rhythm, as of two functions by turns, or training and tests: so the order is that of Thue and Morse.
        """
        count = len(self.python) + len(self.compiled)
        return bool(count % 2) != bool(bin(count // 2).count("1") % 2)

    def call(self, compiled: Callable[..., Any], python: Callable[..., Any], args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        """One call, in one way or the other."""
        function, seconds = (python, self.python) if self.is_for_python else (compiled, self.compiled)
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            seconds.append(time.perf_counter() - start)
            if len(self.python) >= MEASURED and len(self.compiled) >= MEASURED:
                self.is_slow = all([of(self.python) < _SHARE * of(self.compiled) for of in (statistics.median, _mean)])


def _mean(seconds: List[float]) -> float:
    """The mean of all but the longest, in which something else may have run."""
    return (sum(seconds) - max(seconds)) / (len(seconds) - 1)
