"""What a loop is taken to carry at first: what it carried when the same lines were captured before."""
from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..ir.types import Type
from ..symbolic.kinds import number_kind
from ..symbolic.values import SymbolicArray
from .loop_carried import COUNTS, CounterSlot, Slot
from .loop_trials import Trial

#: The flags of a place of an array, or of a number that no counter is.
_PLAIN = (False, False, {})


class Guess(NamedTuple):
    """A local name that a loop carries: its flags, the kind of number that it is (None for an array), and its type."""

    flags: Any
    kind: Optional[str]
    type: Type

    def fits(self, item: Any) -> bool:
        """Whether what the name stands for before another loop is of the same kind."""
        return number_kind(item) == self.kind and (self.kind is not None or type(item) is SymbolicArray and item.type == self.type)


class Guesses:
    """The guesses of one capture, by the code of the loops; None where one was wrong.

    Only where a loop carries nothing but local names that are arrays and numbers.  Numbers that are whole have to be counters:
    whether others are that follows from what they are before a loop.
    """

    def __init__(self) -> None:
        self._known: Dict[Tuple[CodeType, CodeType], Optional[Dict[int, Guess]]] = {}

    def note(self, test: Callable, body: Callable, slots: Dict[Any, Slot]) -> None:
        """A loop carries these."""
        place = _place(test, body)
        if place is None or self._known.get(place, slots) is None:
            return
        found = {key: guess for key, slot in slots.items() if type(key) is int and (guess := _guess(slot)) is not None}
        self._known[place] = found if len(found) == len(slots) else {}

    def give_up(self, test: Callable, body: Callable) -> None:
        """Guess no more at a place: it was wrong, and to look twice would take longer."""
        place = _place(test, body)
        if place is not None:
            self._known[place] = None

    def of(self, test: Callable, body: Callable, state: Sequence[Any], is_inexact: Callable[[Any], bool]) -> Dict[int, Guess]:
        """What a loop may carry that begins with this state; nothing where that is not known.

        is_inexact: tells numbers of which only the truth is known.
        """
        place = _place(test, body)
        found = (None if place is None else self._known.get(place)) or {}
        fit = all([key < len(state) and guess.fits(state[key]) and not is_inexact(state[key]) for key, guess in found.items()])
        return found if fit else {}


def is_right(guesses: Dict[int, Guess], trial: Trial, after: Dict[Any, Any]) -> bool:
    """Whether a trial has shown that a loop carries these and nothing else: an iteration replaces each of them."""
    replaced: List[bool] = [after[key] is not trial.inside[key] and after[key] is not trial.initial[key] for key in guesses]
    return all(replaced) and not trial.found_more


def _place(test: Callable, body: Callable) -> Optional[Tuple[CodeType, CodeType]]:
    return (test.__code__, body.__code__) if type(test) is type(body) is FunctionType else None


def _guess(slot: Slot) -> Optional[Guess]:
    if type(slot) is CounterSlot:
        return Guess(COUNTS, slot.kind, slot.inside[0].type)
    is_plain = type(slot) is Slot and slot.kind != "py_int" and (slot.kind is not None or type(slot.initial) is SymbolicArray)
    return Guess(_PLAIN, slot.kind, slot.inside[0].type) if is_plain and not slot.is_truth else None
