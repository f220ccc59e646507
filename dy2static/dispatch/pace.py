"""Whether calls are faster compiled or as Python, by the time that some of both take."""
from __future__ import annotations

import statistics
import time
from typing import Any, Callable, List, Mapping, Optional, Tuple

#: So many calls of each kind are measured.
MEASURED = 8

#: So many where these do not agree, because something else has run.
_MOST = 24

#: Python is preferred if it takes less than this share of the time.
_SHARE = 0.97


class Pace:
    """Whether calls are faster compiled than in Python.

    is_slow: None while that is not known.  compiled, python: the seconds that calls took.
    around: the seconds that a compiled call takes more while it is measured, and one of Python's later.
    """

    def __init__(self, around: float = 0.0) -> None:
        self._around = around
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
                found = [of(self.python) + self._around < _SHARE * of(self.compiled) for of in (min, statistics.median, _mean)]
                if len(set(found)) == 1 or len(self.python) >= _MOST:
                    self.is_slow = all(found)


def _mean(seconds: List[float]) -> float:
    """The mean of all but the longest quarter, in which something else may have run."""
    return statistics.mean(sorted(seconds)[:-len(seconds) // 4])
