"""Items of Python's containers, chosen by numbers that only the run knows."""
from __future__ import annotations

from typing import Any

from ..runtime import dy
from ..symbolic.lists import symbolic_items
from ..symbolic.values import SymbolicArray, SymbolicScalar

#: Of longer containers an item is not chosen by one decision after the other.
_MOST = 32


def item(capture: Any, container: Any, index: Any) -> Any:
    """``container[index]``: a decision for each item; NotImplemented where Python itself can do it."""
    number = None if capture is None else _number(capture, index)
    if number is None or not isinstance(container, (list, tuple)) or symbolic_items(container) is not None or \
            type(container).__getitem__ not in (list.__getitem__, tuple.__getitem__) and not _is_ours(container):
        return NotImplemented
    size = len(container)
    if size > _MOST:
        return NotImplemented

    def choose(first: int) -> Any:
        if first == size - 1:
            return container[first]
        return dy.if_exp(dy.any_of(number == first, lambda: number == first - size),
                         lambda: container[first], lambda: choose(first + 1))

    def fail() -> Any:
        raise IndexError(f"{'tuple' if isinstance(container, tuple) else 'list'} index out of range")
    return dy.if_exp(dy.all_of(number >= -size, lambda: number < size), lambda: choose(0), fail) if size else fail()


def _number(capture: Any, index: Any) -> Any:
    """An integer that only the run knows; None for any other index."""
    if type(index) is SymbolicScalar:
        return index if index.text is None and index.kind in ("py_int", "py_bool") else None
    if type(index) is SymbolicArray and index.shape == () and index.dtype.kind in "iu" and capture.decides(index):
        return index
    return None


def _is_ours(container: Any) -> bool:
    return type(container).__module__.startswith("dy2static.")
