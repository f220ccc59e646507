"""What arrays and Variables hold at the end of a block, before what it did is undone."""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from ..ir.graph import Value
from .array_or_variable import variable_of
from .lists import Contents, StagedList
from .values import Maybe, SymbolicArray, SymbolicVariable


def kept_values(*items: Any) -> Dict[int, Tuple[Any, Optional[Value]]]:
    """What arrays and Variables in these hold now, by their ids; None for arrays of the caller's that were written."""
    found: Dict[int, Tuple[Any, Optional[Value]]] = {}
    waiting, seen = list(items), set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        item = variable_of(item)
        if isinstance(item, SymbolicVariable) or type(item) is SymbolicArray:
            array = item._data[0] if isinstance(item, SymbolicVariable) else item
            found[id(item)] = item, None if array.capture.array_writes.is_written(array) else array.now()
        elif type(item) in (tuple, list):
            waiting += item
        elif type(item) is StagedList:
            waiting += list.copy(item)
        elif type(item) is dict:
            waiting += item.values()
        elif type(item) is Maybe:
            waiting.append(item.value)
        elif type(item) is Contents:
            waiting += item.items
    return found
