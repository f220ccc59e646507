"""The iterations of a ``for`` over Python values: those that take gradients, and are many, become a loop of the graph.

Such an iteration is a step of training, or a part of one.  The first ones are written out, since they leave things of another
kind than they found: parameters have no gradients before, and optimizers no states.
"""
from __future__ import annotations

from typing import Any, Callable, Iterator, Optional, Sequence, Tuple

from ..symbolic.iterators import LeftItems, left_items
from .for_rest import is_named
from .protocols import Staging

#: With fewer iterations left, they are written out.
FEW = 6

#: After so many iterations that could not be the first of a loop, the others are written out, too.
_MOST_TRIED = 3


class Trips:
    """The iterations of one ``for`` statement."""

    def __init__(self, staging: Staging, iterator: Iterator, body: Callable, names: Sequence[str]):
        self.staging, self.iterator, self.body, self.names = staging, iterator, body, names
        self.taken = staging.capture.gradients.taken
        self.tried = self.reported = 0

    def rest(self, state: Tuple) -> Optional[Tuple]:
        """The local names after all iterations that are left, as a loop of the graph; None: write out the next one."""
        capture = self.staging.capture
        reports = capture.reports.made[self.reported:]
        self.reported = len(capture.reports.made)
        if self.taken == capture.gradients.taken or self.tried == _MOST_TRIED or not capture.rolls:
            return None
        self.tried += 1
        items = left_items(capture, self.iterator)
        if items is None or items.length < FEW or is_named(self.iterator):
            self.tried = _MOST_TRIED
            return None
        capture.rolled = True
        found = self._rolled(items, state, reports)
        if found is None and items.is_stepped:          # the last part of an array may be shorter
            items.length -= 1
            found = self._rolled(items, state, reports)
        return found

    def _rolled(self, items: LeftItems, state: Tuple, reports: Sequence[Any]) -> Optional[Tuple]:
        """The local names after all iterations, these as a loop of the graph and others behind it; None where that cannot be.

        reports: of the iteration before.  Each iteration reports over what the one before has reported, so that the last is enough.
        """
        loops = self.staging.loops
        found = loops.attempted(lambda: self._counted(items, state, reports), (state, self.body))
        if found is None:
            return None
        for _ in range(items.length):
            next(self.iterator)
        for item in self.iterator:
            found = self.body(item, *found)
        return found

    def _counted(self, items: LeftItems, state: Tuple, reports: Sequence[Any]) -> Tuple:
        loops, known = self.staging.loops, self.staging.capture.reports
        if not reports:
            return loops.counted(items, self.body, state, self.names)

        def body(item: Any, _: Tuple, *state: Any) -> Tuple:
            with known.in_iteration(reports) as made:
                after = self.body(item, *state)
            return (known.values_of(made), *after)
        values, *found = loops.counted(items, body, (known.values_of(reports), *state), ("what is reported", *self.names))
        known.repeat(reports, values)
        return tuple(found)
