"""Lists and dicts that are made in a call and stored in several places before something that could look: one object in each."""
from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

from ..heap.wording import a_type
from ..ir.graph import Value
from ..ir.types import Dynamic
from ..lowering import host
from ..runtime.functions import itself
from ..runtime.host_calls import Hole, StateCall, as_it_is
from ..symbolic.known_texts import TextKeyed
from ..symbolic.lists import StagedList

if TYPE_CHECKING:
    from .protocols import Capture

#: Kinds of containers that a template is made of.
_OPEN = (tuple, list, dict, StagedList, TextKeyed)


class StoredContainers:
    """The lists and dicts that one capture has stored so far, each with the graph of the store, and its value if it has one."""

    def __init__(self, capture: Capture):
        self.capture = capture
        self._several: Set[int] = set()
        self._stored: Dict[int, Tuple[Any, Any, Optional[Value]]] = {}

    def expect(self, items: Iterable[Any]) -> None:
        """Know what is about to be stored together: what is there several times is made once."""
        counts: Counter = Counter()
        waiting: List[Any] = list(items)
        while waiting:
            item = waiting.pop()
            if type(item) not in _OPEN or self.capture.heap.source_of(item) is not None:
                continue
            counts[id(item)] += 1
            if (counts[id(item)] == 1 or type(item) is tuple) and not (type(item) is StagedList and item.symbolic is not None):
                waiting += [part for _, part in item.pairs] if type(item) is TextKeyed else \
                    item.values() if type(item) is dict else item
        self._several = {number for number, count in counts.items() if count > 1}

    def store(self, item: Any, operands: List[Value], parts: Callable[[List[Value]], Any]) -> Any:
        """What stands for a container in a store.  operands: of the store, which get what it needs.  parts: makes a template."""
        builder, (_, where, made) = self.capture.builder, self._stored.get(id(item), (None, None, None))
        if made is not None and where is builder:
            operands.append(made)
            return Hole(len(operands) - 1)
        if where is not None and self.capture.root in (where, builder) or where is builder:
            self.capture.abort(f"{a_type(item)} that is made here is stored in two places, before different calls that are "
                               "not compiled")
        if id(item) not in self._several:
            self._stored[id(item)] = item, builder, None
            return parts(operands)
        own: List[Value] = []
        call = StateCall(itself, (parts(own),), {}, as_it_is, "made")
        made, = builder.add(host.host_call, tuple(own), {"call": call, "types": (Dynamic(),)}, name="container")
        self._stored[id(item)] = item, builder, made
        operands.append(made)
        return Hole(len(operands) - 1)
