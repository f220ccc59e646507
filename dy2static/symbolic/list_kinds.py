"""What lists hold, and of what kind: asked of lists of Python and of the graph alike."""
from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

from ..capture_context import CaptureContext
from ..ir.graph import Value
from ..ir.types import List as ListType
from ..ir.types import python_scalar
from .list_items import ITEMS, Items
from .lists import Contents, StagedList, describe_item, symbolic_items
from .sequences import Parts
from .values import SymbolicVariable


def known_length(sequence: Any) -> Any:
    """How many items a list, a range of unknown length, or an array's parts are."""
    items = symbolic_items(sequence)
    return items.length if items is not None else sequence.length if isinstance(sequence, Parts) else len(sequence)


def truth_of(value: Any) -> Any:
    """What decides in place of a list of unknown length."""
    items = symbolic_items(value)
    return value if items is None else items.length > 0


def is_list(item: Any) -> bool:
    """Whether it is a list that was made during the capture."""
    return type(item) in (list, StagedList)


def kind_of(capture: CaptureContext, sides: Sequence[Any]) -> Items:
    """What the items of these lists are, all taken together."""
    found: Optional[Items] = None
    for side in sides:
        for item in side.items if type(side) is Contents else ():
            part = item if type(item) in ITEMS else describe_item(capture, item)
            if found is None:
                found = Items(capture, Value(ListType(part.elem), "items"), part.kind, part.requires_grad, part.connected,
                              part.uncertain, part.origins, part.is_new, part.has_leaves)
            found = found.joined(part, found.value)
    return Items(capture, Value(ListType(python_scalar("py_int")), "items"), "py_int") if found is None else found


def flags_of(contents: Contents) -> Tuple[bool, bool]:
    """Whether an item requires a gradient, and whether one has a creator."""
    found = [contents.symbolic] if contents.symbolic is not None else [
        x for x in contents.items if isinstance(x, SymbolicVariable)]
    return any(x.requires_grad for x in found), any(x.connected for x in found)
