"""Values of parts that a loop carries whole: tuples, and lists, dicts and objects that an iteration makes anew."""
from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..symbolic.lists import StagedList
from ..world.shadows import ShadowBase, ShadowDict, attributes_of


class Compound(NamedTuple):
    """What is in a container: ``form`` is equal for those that differ in their parts only."""

    form: Tuple
    parts: List[Any]


def compound_of(item: Any) -> Optional[Compound]:
    """The parts of a tuple, or of a container that was made during the capture; None for anything else."""
    if isinstance(item, tuple):
        return Compound((type(item), len(item)), list(item))
    if type(item) is dict:
        return Compound((dict, *item), list(item.values()))
    if type(item) is StagedList and item.symbolic is None:
        return Compound((list, len(item)), list(item))
    if isinstance(item, ShadowBase) and not isinstance(attributes_of(item), ShadowDict):
        attributes: Dict[str, Any] = attributes_of(item)
        return Compound((type(item), *attributes), list(attributes.values()))
    return None


def is_like(item: Any, other: Any) -> bool:
    """Whether both are compounds of one form."""
    own, found = compound_of(item), compound_of(other)
    return own is not None and found is not None and own.form == found.form


def rebuilt(item: Any, parts: List[Any]) -> Any:
    """A new one of the same form."""
    if isinstance(item, tuple):
        return type(item)._make(parts) if hasattr(item, "_make") else tuple(parts)
    if type(item) is dict:
        return dict(zip(item, parts))
    if type(item) is StagedList:
        return StagedList(item.capture, parts)
    made = object.__new__(type(item))
    attributes_of(made).update(zip(attributes_of(item), parts))
    return made


def containers_in(item: Any) -> List[Tuple[Any, List[Any]]]:
    """What in a compound can be changed in place, itself or parts of it, with their parts; in the order of the form."""
    found = compound_of(item)
    if found is None:
        return []
    own = [] if isinstance(item, tuple) else [(item, found.parts)]
    return own + [each for part in found.parts for each in containers_in(part)]


class Replaced:
    """Containers that loops replace: what was there before, and what is there after.

    In a run without iterations both are one object.  So neither may be changed later, nor may both be asked whether
    they are one, nor leave the function; then nobody can tell.
    """

    def __init__(self) -> None:
        self._pairs: List[Tuple[Any, Any, List[Any]]] = []

    def __len__(self) -> int:
        return len(self._pairs)

    def note(self, before: Any, after: Any) -> None:
        """One compound replaced by another of its form."""
        for (x, own), (y, other) in zip(containers_in(before), containers_in(after)):
            if x is not y:
                self._pairs += [(x, y, own), (y, x, other)]

    def forget_from(self, count: int) -> None:
        """Forget all but the first ones."""
        del self._pairs[count:]

    def holds(self, item: Any) -> bool:
        """Whether an object is one of these."""
        return any(item is known for known, _, _ in self._pairs)

    def are_as_noted(self, leaving: Dict[int, Any]) -> bool:
        """Whether none was changed, and of no two both leave.  leaving: by identity."""
        return all(not changed(item, parts) and not (id(item) in leaving and id(other) in leaving)
                   for item, other, parts in self._pairs)


def changed(item: Any, parts: List[Any]) -> bool:
    """Whether the parts of a compound are not these any more."""
    now = compound_of(item)
    return now is None or len(now.parts) != len(parts) or any(a is not b for a, b in zip(now.parts, parts))
