"""Numbers that only the run knows, and must be of a certain size: what checks them, and which were seen outside."""
from __future__ import annotations

from typing import Any, Dict

from .observed import Surprise

#: The numbers that were outside of what a program relied on, by the place in the user's code and how often it was so before.
SEEN: Dict[str, Any] = {}


def check_within(number: Any, least: Any, greatest: Any, finite: bool, place: str) -> Any:
    """The number.  Raises `Surprise` for one that is outside."""
    if least <= number <= greatest or not finite and number - number != 0:
        return number
    if place:
        SEEN[place] = number.item() if hasattr(number, "item") else number
    raise Surprise(f"what a line gives depends on how large a number is, which is {number!r} here",
                   hint="what this call has changed before stays changed; later calls know such numbers, or run eagerly")


class Reliance:
    """What a node of `within` relies on.  failed: a run has seen another number."""

    def __init__(self, place: str):
        self.place = place

    @property
    def failed(self) -> bool:
        """Whether a run met a number outside of the range here."""
        return self.place in SEEN
