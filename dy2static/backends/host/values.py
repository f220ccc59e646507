"""What the values of a function are called in its text."""
from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import numpy as np

from ...ir.dims import Dim
from ...ir.graph import Node, Value
from ...ir.template import attr_source
from ..names import Names
from .buffers import BufferPlan, Slot
from .function import tuple_text
from .library import Library


class Values:
    """Gives names to values, buffers and constants.

    texts: the name of each value made so far, or a short expression.
    slots: the names of the buffers so far, by their numbers in the plan.
    """

    def __init__(self, names: Names, plan: BufferPlan, library: Library):
        self.names, self.plan, self.library = names, plan, library
        self.texts: Dict[Value, str] = {}
        self.slots: Dict[int, str] = {}
        self._preferred: Dict[Value, Tuple[str, bool]] = {}
        self._constants: Dict[Tuple[Library, str, Tuple[int, ...], bytes], Any] = {}

    # Names

    def new(self, value: Value, hint: str = "v") -> str:
        """The name of a value that is made now.  hint: for one that has no name in the graph."""
        preferred = self._preferred.get(value)
        self.texts[value] = preferred[0] if preferred else self.names.fresh(value.name or hint)
        return self.texts[value]

    def assigned(self, node: Node) -> str:
        """The names of the results of a node, as what stands left of ``=``."""
        names = [self.new(v) for v in node.outputs]
        return names[0] if len(names) == 1 else tuple_text(names)

    def prefer(self, value: Value, name: str, is_operand: bool) -> None:
        """Let a value get this name.  is_operand: whether an operand has it where the value is made."""
        self._preferred[value] = name, is_operand

    def forget(self, value: Value) -> None:
        """Let a value get a name as if none were preferred."""
        self._preferred.pop(value, None)

    def replaces_operand(self, value: Value) -> bool:
        """Whether the name that a value is to get is still that of an operand."""
        return self._preferred.get(value, ("", False))[1]

    # Memory

    def is_placed(self, value: Value) -> bool:
        """Whether a value lives in a planned buffer."""
        return value in self.plan.places

    def buffer(self, value: Value) -> str:
        """Let a value have the name of the buffer that it lives in: that of the first value there."""
        slot = self.plan.places[value]
        if slot not in self.slots:
            self.slots[slot] = self.names.fresh(value.name or "v")
        self.texts[value] = self.slots[slot]
        return self.texts[value]

    def variable(self, value: Value) -> str:
        """The name of the result of a branch or of a variable of a loop; its second buffer gets one too."""
        if not self.is_placed(value):
            return self.new(value)
        name = self.buffer(value)
        if value in self.plan.partners:
            self.slots[self.plan.partners[value]] = self.names.fresh(f"next_{value.name}")
        return name

    def empty(self, value: Value) -> str:
        """New memory for a value, as an expression."""
        return self.library.of(value).text(f"np.empty({attr_source(value.shape)}, {attr_source(value.dtype)})", self.names)

    def arena(self, chosen: Callable[[Slot], bool]) -> Tuple[str, ...]:
        """The names of the arrays of the arena that are chosen."""
        return tuple(self.slots[i] for i, slot in enumerate(self.plan.slots) if chosen(slot))

    # Constants

    def number(self, array: np.ndarray, library: Library, name: str = "") -> str:
        """The name of a constant in a library; equal constants have one name."""
        key = (library, array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = library.constant(array)
        return self.names.bind(_constant_hint(array, name), self._constants[key])

    def attribute(self, name: str, attr: object) -> str:
        """An attribute of a node: a literal, or a name for it."""
        if _is_plain(attr) or isinstance(attr, tuple) and all(map(_is_plain, attr)):
            return repr(attr)
        if name != "extent" and (isinstance(attr, Dim) or isinstance(attr, tuple) and any(isinstance(item, Dim) for item in attr)):
            return attr_source(attr)
        return self.names.bind(name, attr)


def _is_plain(item: object) -> bool:
    return item is None or isinstance(item, (bool, int, str))


def _constant_hint(array: np.ndarray, name: str) -> str:
    """A readable name for a constant: ``c0_5`` for 0.5."""
    if array.ndim:
        return name or "constant"
    text = f"{array.item()}".replace("-", "m").replace("+", "")
    return f"c{text[:-2] if text.endswith('.0') else text}"
