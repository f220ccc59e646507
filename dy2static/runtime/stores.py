"""Stores into the caller's containers, cells and arrays, as functions of (container, key, value)."""
from __future__ import annotations

from typing import Any, Sequence


def store_item(container: Any, key: Any, value: Any) -> None:
    """Set an item."""
    container[key] = value


def store_items(keys: Sequence[Any], *pairs: Any) -> None:
    """Set items of containers, each of which stands in front of the item that it gets."""
    for key, container, item in zip(keys, pairs[::2], pairs[1::2]):
        container[key] = item


def delete_item(container: Any, key: Any, value: Any) -> None:
    # The key was there when user code deleted it, or that would have raised.  A change that is pending before a decision is
    # stored in each way through it that lets somebody look, and once more behind it: like a "set", it may happen twice.
    """Delete an item, if it is still there."""
    if key in container:
        del container[key]


def extend(container: Any, key: Any, value: Any) -> None:
    """Append some items."""
    container.extend(value)


def assign(container: Any, key: Any, value: Any) -> None:
    """Replace all items of a list."""
    container[:] = value


def assign_set(container: Any, key: Any, value: Any) -> None:
    """Replace all items of a set."""
    container.clear()
    container.update(value)


def store_cell(container: Any, key: Any, value: Any) -> None:
    """Set the contents of a cell."""
    container.cell_contents = value


def delete_cell(container: Any, key: Any, value: Any) -> None:
    """Empty a cell."""
    del container.cell_contents


def write_array(container: Any, key: Any, value: Any) -> None:
    """Fill an array."""
    container[...] = value


def write_arrays(*pairs: Any) -> None:
    """Fill an array with the next argument, and so on."""
    for array, value in zip(pairs[::2], pairs[1::2]):
        array[...] = value


def same_items(keys: Sequence[Any], *pairs: Any) -> bool:
    """Whether containers, each in front of an item, hold these items under these keys."""
    return all([container[key] is item for key, container, item in zip(keys, pairs[::2], pairs[1::2])])


def array_of(variable: Any) -> Any:
    """The array of a Variable."""
    return variable.array


def rebind(container: Any, key: Any, value: Any) -> None:
    """Give a Variable another array."""
    container.array = value


def assign_deque(container: Any, key: Any, value: Any) -> None:
    """Replace all items of a deque."""
    container.clear()
    container.extend(value)
