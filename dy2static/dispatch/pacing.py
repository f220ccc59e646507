"""Functions that are faster as Python: whether a compiled function that only computes on arrays and numbers pays for its calls."""
from __future__ import annotations

import contextlib
import logging
import statistics
import sys
import time
from typing import Any, Callable, Iterator, List, Mapping, Optional, Tuple

from .. import config
from ..program.hotpath import is_coming
from ..runtime.hooks import stage, values
from ..runtime.program import MISS, Program
from ..runtime.traceback import calls_as_written
from .pace import Pace
from .paying import has_functions

log = logging.getLogger("dy2static")

#: A function is measured after so many calls, and after a few where it has been measured before.
_BEFORE, _BEFORE_AGAIN = 64, 4

#: So many seconds longer takes a compiled call on its way through this module while it is measured, and later one of Python's.
_AROUND = 1e-6

#: Calls run as Python so often before they are measured again, and then so many times as often, and so on.
_FIRST_TURN, _LONGER = 512, 4

#: Of so many calls as Python, one is timed.  Where some in a row take so many times as long as compiled ones took, they are
#: measured at once: arrays have grown.  What takes less than this time, in seconds, does not count.
_TIMED, _STRIKES, _MUCH, _LEAST = 8, 2, 4, 1e-5

#: A function that stays compiled is measured again when there are more programs: so often at most.
_MOST_TIMES = 6


class Pacing:
    """Whether the calls of one function from outside run as Python, because that is faster.

    So may those do that have no function of Chainer's and leave no gradients: everything that they do is done when they return.
    dispatcher: that of the function.
    """

    def __init__(self, dispatcher: Any):
        self._dispatcher, self._cache = dispatcher, dispatcher.cache
        options = dispatcher.options
        self._is_out = bool(not dispatcher.has_python or options.strict or options.check or options.input_spec
                            or options.rng != "eager" or options.is_inner)
        self.clear()

    def clear(self) -> None:
        """Forget what was measured."""
        self._calls = self._times = 0
        self._captures, self._turn = -1, _FIRST_TURN
        self._pace: Optional[Pace] = None
        self._now: Optional[_Turn] = None
        self._cache.show(None)

    def missed(self) -> None:
        """There was no program for a call: what there will be is measured in the next ones."""
        if self._is_out or not config.PACE.value or self._cache.front is not None or self._times >= _MOST_TIMES:
            return
        if self._captures != self._dispatcher.captures:
            self._begin(_BEFORE)

    def _begin(self, calls: int) -> None:
        self._captures = self._dispatcher.captures
        self._cache.show(_Measured(self, calls))

    def may_begin(self) -> bool:
        """Whether native code that is being made is there by now."""
        return not is_coming() and not any(each.tiers.is_coming for each in self._dispatchers())

    @property
    def has_parts(self) -> bool:
        """Whether calls run in parts."""
        return bool(self._dispatcher.in_parts.is_used)

    def may_be_slow(self) -> bool:
        """Whether the programs only compute on arrays and numbers of the CPU."""
        return all(map(_only_computes, [program for each in self._dispatchers() for program in each.programs]))

    def _dispatchers(self) -> List[Any]:
        return [self._dispatcher, *self._dispatcher.in_parts.dispatchers()]

    def settle(self, pace: Optional[Pace]) -> None:
        """Choose: by what has been measured, or compiled calls where nothing can be."""
        self._pace, self._times = pace, self._times + 1
        self._captures = self._dispatcher.captures
        if pace is None or not pace.is_slow:
            self._cache.show(None)
            return
        limit = max(_MUCH * statistics.median(pace.compiled), _LEAST)
        self._calls += self._turn
        self._now = _Turn(self, self._turn, limit)
        self._cache.show(self._now.call())
        self._turn = min(self._turn * _LONGER, sys.maxsize)
        if self._dispatcher.options.verbosity_now >= 1:
            log.warning("%s: %s", self._dispatcher.function.__qualname__, self.reason)

    def again(self, turn: "_Turn") -> None:
        """Measure once more."""
        if self._now is turn:                           # another thread may have been faster
            self._calls, self._now = self.calls, None
            self._times -= 1
            self._begin(_BEFORE_AGAIN)

    @property
    def calls(self) -> int:
        """How many calls have run as Python because that was faster."""
        return self._calls - (0 if self._now is None else self._now.left)

    @property
    def reason(self) -> str:
        """Why calls run as Python now; "" where they do not."""
        if self._now is None or self._pace is None:
            return ""
        python, compiled = [statistics.median(seconds) * 1e6 for seconds in (self._pace.python, self._pace.compiled)]
        return f"calls run as Python, which is faster: {python:.1f} µs, compiled {compiled:.1f} µs (measured)"

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Have calls compiled inside of a ``with`` block, for what looks at them."""
        front, is_out = self._cache.front, self._is_out
        self._is_out = True
        self._cache.show(None)
        try:
            yield
        finally:
            self._is_out = is_out
            self._cache.show(front)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """A call as if nothing were measured."""
        return self._dispatcher.run(args, kwargs)

    @property
    def function(self) -> Callable[..., Any]:
        """The user's."""
        function: Callable[..., Any] = self._dispatcher.function
        return function


class _Measured:
    """Called in place of the programs while calls of both kinds are measured.  left: so many come before.

    is_python: whether a call of Python's is on its way: what that calls is a part of it.
    """

    def __init__(self, pacing: Pacing, left: int):
        self._pacing, self._left, self._pace, self._is_python, self._is_busy = pacing, left, Pace(_AROUND), False, False
        self._has_waited = False

    @calls_as_written
    def __call__(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        pacing = self._pacing
        if _is_special(args, kwargs):
            return MISS
        if self._is_busy:
            return pacing.function(*args, **kwargs) if self._is_python else pacing.run(*args, **kwargs)
        if not self._left and pacing.has_parts and not self._has_waited:
            self._left, self._has_waited = _BEFORE, True            # in which the parts themselves are measured
        if self._left or not pacing.may_begin():
            self._left -= bool(self._left)
            return pacing.run(*args, **kwargs)
        if not pacing.may_be_slow():
            pacing.settle(None)
            return pacing.run(*args, **kwargs)
        self._is_busy, self._is_python = True, self._pace.is_for_python
        try:
            return self._pace.call(pacing.run, pacing.function, args, kwargs)
        finally:
            self._is_busy = False
            if self._pace.is_slow is not None:
                pacing.settle(self._pace)


class _Turn:
    """A while in which calls run as Python.  left: so many calls before it is measured again."""

    def __init__(self, pacing: Pacing, left: int, limit: float):
        self.left, self._pacing, self._limit, self._strikes = left, pacing, limit, 0

    def call(self) -> Callable[..., Any]:
        """What is called in place of the programs; a function, which takes less time than a method."""
        function, timed = self._pacing.function, self._timed

        @calls_as_written
        def as_python(args: Tuple, kwargs: Mapping[str, Any]) -> Any:
            if stage.capture is not None or values and _is_special(args, kwargs):
                return MISS
            self.left = left = self.left - 1
            return function(*args, **kwargs) if left % _TIMED else timed(args, kwargs)
        return as_python

    @calls_as_written
    def _timed(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        start = time.perf_counter()
        result = self._pacing.function(*args, **kwargs)
        self._strikes = self._strikes + 1 if time.perf_counter() - start > self._limit else 0
        if self.left <= 0 or self._strikes >= _STRIKES:
            self._pacing.again(self)
        return result


def _is_special(args: Tuple, kwargs: Mapping[str, Any]) -> bool:
    """Whether a call is one of a capture, or has arguments that stand for arrays."""
    return stage.capture is not None or bool(values) and not values.keys().isdisjoint(map(type, (*args, *kwargs.values())))


def _only_computes(program: Program) -> bool:
    """Whether a program has no function of Chainer's, leaves no gradients, and runs on the CPU."""
    return not program.segments and not program.recipe.outcome.device and not has_functions(program)
