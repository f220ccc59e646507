"""The seconds that the captures of a function and of its parts take, beside those that the rest of the program takes."""
from __future__ import annotations

import contextlib
import threading
import time
from typing import Iterator

from ..threads.locks import lock

#: Seconds that captures may take before the first has paid, and the share of the time of the rest of the program that they may take
#: besides: after the first seconds, a program of which nothing pays takes at most 2.5 times as long as without captures.
_ALLOWANCE, _SHARE = 12.0, 1.5

#: A call that takes a second with its program pays for so many: that is about what it saves.
_SAVED = 2

#: So many more calls are to be expected of a program that is found to be needed again.
_MORE = 100


class Clock(threading.local):
    """The time of one thread.  captured: the part of it that captures took, of any function."""

    captured = 0.0

    @staticmethod
    def now() -> float:
        """Seconds for which this thread has computed."""
        return time.thread_time()


#: The clock of all ledgers.  What other threads and processes do meanwhile does not count.
clock = Clock()


class Ledger:
    """What one function and all its parts owe.

    owed: seconds of captures that gave no program, and of programs that no call has paid for (`Bill`).  Nothing that the function
    forgets, or begins again with, takes them back: only use does.
    """

    def __init__(self) -> None:
        self._lock = lock()
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.owed, self._lent, self._elsewhere, self._has_last = 0.0, 0.0, 0.0, True
        self._seen = threading.local()                  # how much of each thread's time has been counted

    @property
    def limit(self) -> float:
        """The seconds that may be owed."""
        return self._lent + _ALLOWANCE + _SHARE * self._elsewhere

    @property
    def is_spent(self) -> bool:
        """Whether captures have taken as long as they may, for now.  Counts the time that the program has run elsewhere."""
        now = clock.now() - clock.captured
        with self._lock:
            self._elsewhere += max(now - getattr(self._seen, "until", now), 0)      # the time of a forked process begins anew
            self._seen.until = now
            return self.owed >= self.limit

    def take_last(self) -> bool:
        """Whether there may be one more capture, whatever is owed; there may be one."""
        with self._lock:
            had, self._has_last = self._has_last, False
            return had

    @contextlib.contextmanager
    def bill(self) -> Iterator["Bill"]:
        """Count what the capture in the block takes."""
        bill = Bill(self)
        try:
            yield bill
        finally:
            bill.tick()

    def note(self, seconds: float, lent: float = 0.0) -> None:
        """Add seconds to what is owed, or take some back; and lend some more."""
        with self._lock:
            self.owed += seconds
            self._lent += lent


class Bill:
    """What one capture takes, also one that gives no program.  left: seconds that no call has paid for."""

    def __init__(self, ledger: Ledger):
        self.ledger, self.left, self._counted = ledger, 0.0, clock.now()

    def tick(self) -> None:
        """Count the time since this was done last, or since the beginning: the capture took it."""
        now = clock.now()
        seconds, self._counted = now - self._counted, now
        self._add(seconds)

    @contextlib.contextmanager
    def more(self) -> Iterator[None]:
        """Count also what the block takes, which may be in another thread."""
        begun = clock.now()
        try:
            yield
        finally:
            self._add(clock.now() - begun)

    def _add(self, seconds: float) -> None:
        clock.captured += seconds
        self.left += seconds
        self.ledger.note(seconds)

    @property
    def is_too_much(self) -> bool:
        """Whether captures have taken as long as they may with what this one has taken so far."""
        self.tick()
        return self.ledger.is_spent

    def used(self, seconds: float) -> None:
        """One call has used the program, and took so long."""
        self._pay(_SAVED * seconds)

    def needed(self, seconds: float) -> None:
        """A call that took so long has shown that such calls come back: other captures may take as long as those will save."""
        self._pay(_MORE * _SAVED * seconds, is_lent=True)

    def is_paid_by(self, seconds: float) -> bool:
        """Whether calls that take so long pay for the capture, if such calls come back."""
        return self.left <= _MORE * _SAVED * seconds

    def _pay(self, seconds: float, is_lent: bool = False) -> None:
        paid = min(seconds, self.left)
        self.left -= paid
        self.ledger.note(-paid, lent=paid if is_lent else 0.0)
