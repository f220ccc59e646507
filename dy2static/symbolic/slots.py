"""Lists of as many items as an axis of unknown size has elements, ``[None] * len(x)``, until loops have filled them."""
from __future__ import annotations

from typing import Any

from ..ir.dims import equal


class Slots:
    """What such a list holds until all items are assigned.

    owner: assigns them (`capture.filled_lists`).  fill: what the others are.  filled: a list of those that are assigned, in this
    order.  is_backwards: from the last place on.
    """

    def __init__(self, owner: Any, size: Any, fill: Any, filled: Any):
        self.owner, self.size, self.fill, self.filled, self.is_backwards = owner, size, fill, filled, False

    @property
    def is_complete(self) -> bool:
        """Whether all items are certain to be assigned."""
        items = self.filled.symbolic
        return items is not None and items.size is not None and equal(items.size, self.size.plain) is True
