"""How long a list of the graph is, as far as that is known, and which slices go to its end."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from ..ir.dims import Size
from ..ir.graph import Value

#: No list has so many items.
END = 1 << 61


class Length:
    """A number of items that some lists have in common.

    users: the lists that an array was made of, by how many items more they have.  numbers: by the same, the values of the
    graph that are these lengths.  size: the number by sizes of arrays, if known.
    """

    def __init__(self, size: Optional[Size] = None) -> None:
        self.users: Dict[int, Dict[Value, None]] = {}
        self.numbers: Dict[int, List[Value]] = {}
        self.size = size


def is_end(span: slice) -> bool:
    """Whether a slice has an item of each list that has one: it is the beginning, the end or all of it."""
    if span.step not in (None, 1):
        return span.start is None and span.stop is None
    return span.start is None and (span.stop is None or type(span.stop) is int and span.stop > 0) or \
        span.stop is None and type(span.start) is int and span.start < 0


def together(items: Any, other: Any) -> Tuple[Length, int]:
    """How many items two lists have together."""
    for one, rest in ((items, other), (other, items)):
        if isinstance(one.size, int):
            length, more = rest.count
            return length, more + one.size
    return Length(None if items.size is None or other.size is None else items.size + other.size), 0


def chosen(known: Dict[Any, Length], items: Any, other: Any) -> Tuple[Length, int]:
    """How many items a list has of which a decision chooses one of two.

    known: the lengths of lists that the same decision has chosen: those of equally many items on both sides are equally long.
    """
    (first, more), (second, by) = _base(*items.count), _base(*other.count)
    if first == second and more == by:
        return items.count      # type: ignore[no-any-return]
    least = min(more, by)
    return known.setdefault((first, more - least, second, by - least), Length()), least


def _base(length: Length, more: int) -> Tuple[Any, int]:
    """What a number of items is counted from, the same for lists that are known to be as long, and how many more there are."""
    if isinstance(length.size, int):
        return None, length.size + more
    return length if length.size is None else length.size, more
