"""Whether captures pay: an account per function of its captures, and of the calls that used their programs."""
from __future__ import annotations

import enum
import sys
from typing import Any, Callable, Dict, Mapping, Tuple

from ..threads.locks import lock
from .cache import Cache
from .ledger import Bill, Ledger, clock
from .program import MISS, Program

#: A program costs one unit, plus one for each `_NODES` nodes, up to `_MOST_UNITS`; a capture that stops costs one unit.
_NODES, _MOST_UNITS = 400, 3

#: The units that a function may owe; half of `Cache.limit` if that is more.
_CREDIT = 16

#: A program that is called so many misses after its capture has shown that such calls come back.
_LATER = 8

#: So many calls pay for a program, however soon they come.
_USES = 50

#: A function that owes too much is captured again at this miss, and then whenever the number of misses has doubled.
_FIRST_TRIAL = 40

#: The units that may then be spent.
_TRIAL = 4

#: While captures are paused, a program that no call has used for so many misses is dropped.
_PATIENCE = 64


#: Captures are rarely useful if one of so many gave a program that was needed again, or fewer.
_RARELY = 4

#: So many units, and so many programs, of which no call has used any, are enough to look for what could be left to Python.
_SUSPICIOUS, _FEWEST = 6, 3


class Verdict(enum.Enum):
    """What happens to a call for which there is no program."""

    CAPTURE = "it is captured"
    PAUSE = "it runs eagerly, and so do the next ones"
    SHORT = "it runs eagerly, and so do the next ones: captures of the function and its parts have taken long enough"
    EAGER = "it runs eagerly"
    TRIAL = "it is captured, to see whether that pays by now"


class CaptureBudget:
    """The account of one function.

    misses: how many calls found no program.  spent: units that nothing pays back: captures that stopped, and programs that had
    to go before they had paid.  Each program of the cache owes its units until a call shows that it is needed again.
    Everything is counted at misses, and in the first calls of a program (`_Paying`).
    ledger: of the seconds that captures take, shared with the parts of the function, which each have a budget.
    """

    def __init__(self, cache: Cache, ledger: Ledger):
        self.cache, self.ledger, self._lock = cache, ledger, lock()
        cache.gone = self._gone
        self.clear()

    def clear(self) -> None:
        """Forget everything but the seconds."""
        self.misses, self.spent, self.lent = 0, 0.0, float(max(_CREDIT, self.cache.limit // 2))
        self.captures = self.useful = 0
        self.paused, self._news, self._next = False, False, max(_FIRST_TRIAL, self.cache.limit)
        self._is_short = False
        self._sweep = sys.maxsize
        self._charges: Dict[Program, "_Paying"] = {}

    def begin_again(self) -> "Dict[Program, _Paying]":
        """Take out the programs that are not known to be needed again, and forget everything else but the seconds."""
        taken = {program: paying for program, paying in list(self._charges.items())
                 if not paying.needed and self.cache.take_out(program)}
        self.clear()
        return taken

    def go_on(self, taken: "Dict[Program, _Paying]") -> None:
        """Count programs that were taken out again: calls that such programs serve have come back."""
        with self._lock:
            self.spent = 0.0
            self.captures += len(taken)
            self._charges.update(taken)
            for paying in taken.values():
                paying.born = self.misses - _LATER
                if paying.left < _USES:
                    self._note_needed(paying)

    @property
    def remaining(self) -> int:
        """How many further misses run eagerly before a capture is tried, unless a program is found to be needed; 0 now."""
        return max(self._next - self.misses, int(self._is_short)) if self.paused or self._is_short else 0

    @property
    def is_hopeless(self) -> bool:
        """Whether it is clear enough that captures do not pay to warn the user."""
        return not self.useful or self.misses >= 2 * _FIRST_TRIAL

    @property
    def is_rarely_useful(self) -> bool:
        """Whether few of the captures gave programs that were needed again."""
        return self.useful * _RARELY <= self.captures

    @property
    def is_suspicious(self) -> bool:
        """Whether there are some programs, and each has served the call only that it was made for."""
        charged = list(self._charges.values())
        return len(charged) >= _FEWEST and sum([paying.units for paying in charged]) >= _SUSPICIOUS and \
            all([paying.left >= _USES for paying in charged])

    def ask(self) -> Verdict:
        """Count one more call that found no program, and decide what happens to it."""
        self.misses += 1
        if self.paused and not self._news and self.misses < min(self._next, self._sweep):
            return Verdict.EAGER
        with self._lock:
            if self.misses >= self._sweep:
                self._drop_unused()
            was_paused, was_short, self._news = self.paused, self._is_short, False
            owed, is_due = self._owed(), self.misses >= self._next
            self._is_short = self.ledger.is_spent and not (is_due and self.is_hopeless and self.ledger.take_last())
            if self._is_short:
                self._sweep = min(self._sweep, self.misses + _PATIENCE)
                return Verdict.EAGER if was_short else Verdict.SHORT
            while self._next <= self.misses:
                self._next *= 2
            self.paused = owed >= self.lent
            if not self.paused:
                return Verdict.TRIAL if was_short and is_due else Verdict.CAPTURE
            if was_paused and is_due:
                self.paused, self.lent = False, owed + _TRIAL
                return Verdict.TRIAL
            if not was_paused:
                self._sweep = min(self._sweep, self.misses + _PATIENCE)
            return Verdict.EAGER if was_paused else Verdict.PAUSE

    def charge(self, program: Program, bill: Bill) -> None:
        """Count a capture that gave this program."""
        self.captures += 1
        for segment in program.segments:
            segment.bill = bill
        with self._lock:
            self._charges[program] = _Paying(self, min(1 + program.counts["nodes"] // _NODES, _MOST_UNITS), bill)

    def watched(self, program: Program, call: Callable) -> Callable:
        """What to call for a program until it has paid."""
        paying = self._charges.get(program)
        if paying is None:
            return call
        paying.call = call
        return paying

    def stopped(self) -> None:
        """Count a capture that gave no program."""
        self.spent += 1

    def refund(self, captures: int) -> None:
        """Take back the cost of captures that gave no program, because one that followed did."""
        self.spent -= captures

    def paid(self, program: Program) -> None:
        """Settle the account of a program that has been called often."""
        with self._lock:
            paying = self._charges.pop(program, None)
            if paying is not None and not paying.needed:
                self._note_needed(paying)

    def _drop_unused(self) -> None:
        """Drop the programs that only the call they were made for has used: every eager call tries each of them in vain."""
        unused = [(program, paying.born + _PATIENCE) for program, paying in self._charges.items() if paying.left >= _USES]
        self._sweep = min([end for _, end in unused if end > self.misses], default=sys.maxsize)
        for program, end in unused:
            if end <= self.misses:
                self.cache.forget(program)

    def _owed(self) -> float:
        for program, paying in list(self._charges.items()):
            if paying.left <= 0:
                self.paid(program)
        return self.spent + sum([paying.units for paying in self._charges.values() if not paying.needed])

    def _gone(self, program: Program) -> None:
        with self._lock:
            paying = self._charges.pop(program, None)
            if paying is not None and paying.left > 0:
                self.spent += paying.units * min(paying.left / _USES, 1)
                self.lent -= paying.units if paying.needed else 0

    def _note_needed(self, paying: "_Paying") -> None:
        """A program is needed again: the function may owe as many units more."""
        paying.needed, self._news = True, True
        paying.bill.needed(paying.seconds)
        self.lent += paying.units
        self.useful += 1


class _Paying:
    """Called for a program that has not paid yet: counts the calls, and then steps aside.

    needed: whether one of them came late enough to show that such calls come back.  seconds: what the last one took.
    """

    __slots__ = ("budget", "units", "bill", "left", "needed", "born", "call", "seconds")

    def __init__(self, budget: CaptureBudget, units: int, bill: Bill):
        self.budget, self.units, self.bill, self.needed, self.born = budget, units, bill, False, budget.misses
        self.left = _USES + 1                           # the call that it was made for does not count
        self.call: Any = None
        self.seconds = 0.0

    def count(self, seconds: float) -> None:
        """Count a call that took so long."""
        self.left, self.seconds = self.left - 1, seconds
        self.bill.used(seconds)

    def __call__(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        begun = clock.now()
        result = self.call(args, kwargs)
        if result is not MISS:
            self.count(clock.now() - begun)
            if not self.needed and self.budget.misses - self.born >= _LATER:
                self.budget._note_needed(self)
            if self.left <= 0:
                self.budget.cache.replace(self, self.call)
                self.budget.cache.prefer(self.call)
        return result
