"""What a function leaves to Python because it is another one in nearly every call, until such calls are seen to come back."""
from __future__ import annotations

from typing import Any, Dict, Mapping, Set, Tuple

from ..runtime.budget import Verdict
from ..runtime.ledger import clock
from ..runtime.program import MISS, Program

#: So many programs are kept of those that a refusal ends, for so many calls that fit no other program: about an epoch.
_MOST, _PATIENCE = 16, 512

#: Calls come back when so many of these programs have served one, and they have served one in so many calls.
_ENOUGH, _ONE_IN = 2, 8


class Refusals:
    """What one function leaves to Python, and what was known before.

    Six programs that have served no call but their own do not show that none will: fixed batches come again in the next epoch.  So
    these programs are kept for a while.  If calls come again that they serve, and pay for captures, all is as it was before;
    that happens once, and from then on nothing is refused but where few programs are needed again.
    dispatcher: that of the function.
    """

    def __init__(self, dispatcher: Any):
        self._dispatcher = dispatcher
        self.clear()

    def clear(self) -> None:
        """Forget the programs of before."""
        self._kept: Dict[Program, Any] = {}
        self._served: Set[Program] = set()
        self._learned: Tuple[Any, ...] = ()
        self._left, self._count, self._has_returned = 0, 0, False

    def may_refuse(self, verdict: Verdict) -> bool:
        """Whether it is time to look for what could be left to Python."""
        budget = self._dispatcher.budget
        if self._has_returned and not budget.is_rarely_useful:
            return False
        return verdict is not Verdict.SHORT and (verdict is Verdict.PAUSE or budget.is_suspicious or self.is_in_vain(verdict))

    def is_in_vain(self, verdict: Verdict) -> bool:
        """Whether it has been tried already if captures pay after many calls, and no program has been needed again."""
        return verdict is Verdict.TRIAL and self._dispatcher.is_told and not self._dispatcher.budget.useful

    def refuse(self, verdict: Verdict, args: Tuple, kwargs: Mapping[str, Any]) -> bool:
        """Leave what keeps changing to Python, where that is possible: begin again, with the programs that were needed again.

        Contents of arrays may come back in the next epoch: outside of parts these are left where captures would pause, and few have
        done so.  Those that have keep their programs.  In a part, all is left that would be if captures paused: each part would be
        captured in vain as often as the whole was.
        """
        of = self._dispatcher
        is_part = not of.in_parts.is_outermost
        is_last = is_part or verdict is Verdict.PAUSE or self.is_in_vain(verdict)
        contents = is_last and (is_part or of.budget.is_rarely_useful)
        learned = self._learned or tuple([each.learned() for each in self._learners])
        if not of.options.allows_parts or not (of.sizes.leave_orders() or
                                               of.lookup.refuse(args, kwargs, is_last, is_part, contents)):
            return False
        taken = of.budget.begin_again()
        if self._has_returned or of.options.check or of.in_parts.parts.is_part(of.function):
            return True                                 # nothing calls a part any more that is divided
        self._kept = dict([*self._kept.items(), *taken.items()][:_MOST])
        self._learned, self._left, self._count = learned, _PATIENCE, 0
        return True

    @property
    def _learners(self) -> Tuple[Any, ...]:
        return tuple([getattr(self._dispatcher, name) for name in ("varying", "sizes", "in_parts", "fallback")])

    def serve(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        """What a program of before gives for a call that fits no other one; `MISS` if there is none."""
        if not self._kept:
            return MISS
        self._left -= 1
        for program, paying in list(self._kept.items()):
            begun = clock.now()
            result = program.call(args, kwargs)
            if result is not MISS:
                self._note(program, paying, clock.now() - begun)
                return result
        if self._left <= 0:
            self.clear()
        return MISS

    def _note(self, program: Program, paying: Any, seconds: float) -> None:
        """A program of before has served a call in so many seconds; if that is enough, forget the refusals."""
        with self._dispatcher.lock:
            if program not in self._kept:               # another thread was faster
                return
            paying.count(seconds)
            self._count += 1
            if paying.bill.is_paid_by(seconds):
                self._served.add(program)
            calls = _PATIENCE - self._left
            if len(self._served) < min(_ENOUGH, len(self._kept)) or self._count * _ONE_IN < calls:
                return
            kept, learned = self._kept, self._learned
            self.clear()
            self._has_returned = True
            for learner, known in zip(self._learners, learned):
                learner.restore(known)
            self._dispatcher.take_back(kept)
