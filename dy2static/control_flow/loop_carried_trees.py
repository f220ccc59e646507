"""Values of parts that a loop carries whole: tuples, and lists, dicts and objects that an iteration makes anew."""
from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from ..heap.dict_shadows import ShadowDict
from ..heap.object_shadows import ShadowBase, attributes_of
from ..symbolic.lists import StagedList


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
    if type(item) is list or type(item) is StagedList and item.symbolic is None:
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
    if type(item) is list:
        return list(parts)
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


def is_plain(item: Any) -> bool:
    """Whether it is a list or dict made during the capture, of known length, that does not hold itself."""
    return type(item) in (dict, list, StagedList) and is_finite(item)


def is_finite(item: Any) -> bool:
    """Whether it is a compound that does not hold itself."""
    found = compound_of(item)
    return found is not None and _holds_no_loop(found.parts, (id(item),))


def _holds_no_loop(parts: List[Any], around: Tuple[int, ...]) -> bool:
    for part in parts:
        found = compound_of(part)
        if found is not None and (id(part) in around or not _holds_no_loop(found.parts, (*around, id(part)))):
            return False
    return True


def fill(item: Any, parts: List[Any]) -> None:
    """Let these be the parts of a container."""
    if type(item) is dict:
        dict.update(item, zip(list(item), parts))
    elif isinstance(item, list):
        list.__setitem__(item, slice(None), parts)
    else:
        attributes_of(item).update(zip(list(attributes_of(item)), parts))


class Note:
    """Two containers that a run may have as one object, what was in them, and the decision that made it so."""

    def __init__(self, items: Tuple[Any, Any], parts: Tuple[List[Any], List[Any]], decision: Any):
        self.items, self.parts, self.decision = items, parts, decision


class Replaced:
    """Containers that stand for one object in some runs.

    They are those that a loop replaces (before, inside and after it), and those of two branches, with what both are joined into.
    So none of them may be changed later, nor may two be asked whether they are one, nor may two that are linked leave the
    function; then it is unknown.
    """

    def __init__(self) -> None:
        self._notes: List[Note] = []

    def __len__(self) -> int:
        return len(self._notes)

    def note(self, before: Any, after: Any, decision: Any = None) -> None:
        """One compound that may be another of its form."""
        for (x, own), (y, other) in zip(_noted(before), _noted(after)):
            if x is not y:
                self._notes.append(Note((x, y), (own, other), decision))

    def forget_from(self, count: int) -> None:
        """Forget all but the first ones."""
        del self._notes[count:]

    def holding(self, item: Any) -> Optional[Note]:
        """What is noted of an object first."""
        return next((note for note in self._notes if any(item is known for known in note.items)), None)

    def changed_since(self, count: int) -> Iterator[Note]:
        """The notes after the first ``count`` whose items have changed."""
        return (note for note in self._notes[count:] if any(map(changed, note.items, note.parts)))

    def broken(self, leaving: Dict[int, Any], handed: Dict[int, Any]) -> Optional[Note]:
        """A note of what was changed, or of two linked ones that leave, or one of them in a host call; these by identity."""
        groups: Dict[int, Set[int]] = {}
        for note in self._notes:
            joined: Set[int] = set().union(*[groups.get(id(item), {id(item)}) for item in note.items])
            if joined.intersection(leaving) and len(joined.intersection({**leaving, **handed})) > 1:
                return note
            groups.update(dict.fromkeys(joined, joined))
        return next(self.changed_since(0), None)


def _noted(item: Any) -> List[Tuple[Any, List[Any]]]:
    unknown = type(item) is StagedList and item.symbolic is not None
    return [(item, list.copy(item))] if unknown else containers_in(item)


def changed(item: Any, parts: List[Any]) -> bool:
    """Whether a compound, or a list of unknown length, has other parts than these."""
    found = compound_of(item)
    now = list.copy(item) if isinstance(item, list) else [] if found is None else found.parts
    return len(now) != len(parts) or any(a is not b for a, b in zip(now, parts))
