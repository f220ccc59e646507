"""What a list of converted code holds in place of its items, while these are not known one by one."""
from __future__ import annotations

from typing import Any, Optional

from .assigned import Assigned
from .slots import Slots
from .uneven import Uneven


class Holding(list):
    """A list that may hold one object which stands for all items."""

    __class__ = property(lambda self: list)             # type: ignore[assignment]

    @property
    def uneven(self) -> Optional[Uneven]:
        """The items, if the last ones have other shapes."""
        first = list.__getitem__(self, 0) if list.__len__(self) == 1 else None
        return first if type(first) is Uneven else None

    @property
    def slots(self) -> Optional[Slots]:
        """The items, if some may not be assigned yet."""
        first = list.__getitem__(self, 0) if list.__len__(self) == 1 else None
        if type(first) is Slots and first.is_complete:
            self.hold(first.owner.whole(first))
            return None
        return first if type(first) is Slots else None

    @property
    def assigned(self) -> Optional[Assigned]:
        """What was assigned since the list was last read."""
        first = list.__getitem__(self, 0) if list.__len__(self) == 1 else None
        return first if type(first) is Assigned else None

    def settle(self) -> None:
        """Let what was assigned be items like others; where not all items are assigned yet, they wait."""
        assigned = None if self.slots is not None else self.assigned
        if assigned is not None:
            list.__setitem__(self, slice(None), assigned.owner.settled(assigned))

    def hold(self, items: Any) -> None:
        """Let these be the contents."""
        list.__setitem__(self, slice(None), [items])
