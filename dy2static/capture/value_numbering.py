"""Calls that give what an earlier call gave: the same function of the same values."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..ir.building import Builder
from ..ir.graph import Value
from ..ir.types import Scalar


class ValueNumbering:
    """The pure calls of one capture, by what they compute."""

    def __init__(self) -> None:
        self._made: Dict[Any, Tuple[Value, Builder, int]] = {}
        self._first: Dict[Value, Value] = {}

    def clear(self) -> None:
        """Forget all calls: their operands may be written into now."""
        self._made.clear()
        self._first.clear()

    def key(self, function: Any, form: Any, operands: Sequence[Value]) -> Any:
        """What tells a call from others, whose template has this form; None if nothing simple does."""
        return None if form is None else (function, form, tuple(map(self.first, operands)))

    def number(self, key: Any, builder: Builder) -> Optional[Value]:
        """The number that an earlier call gave, if that is still part of what is built."""
        value, where, index = self._made.get(key, (None, None, 0))
        if value is None or not isinstance(value.type, Scalar) or not is_in(where, builder):
            return None
        return value if index < len(where.nodes) and value in where.nodes[index].outputs else None

    def note(self, key: Any, outputs: Sequence[Value], builder: Builder) -> None:
        """A call was added to the builder, as its last node."""
        if key is None or len(outputs) != 1:
            return
        if key in self._made:
            self._first[outputs[0]] = self.first(self._made[key][0])
        self._made[key] = outputs[0], builder, len(builder.nodes) - 1

    def first(self, value: Value) -> Value:
        """The first value that is the same as this one."""
        return self._first.get(value, value)


def is_in(builder: Optional[Builder], inner: Builder) -> bool:
    """Whether ``inner`` is the builder, or builds a region inside of it."""
    around: List[Builder] = []
    current: Optional[Builder] = inner
    while current is not None:
        around.append(current)
        current = current.outer
    return any(one is builder for one in around)
