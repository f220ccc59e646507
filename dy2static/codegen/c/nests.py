"""Lines of C that several rules write: loops around a block, addresses, indices that are checked."""
from __future__ import annotations

import contextlib
from typing import Any, Iterator, List, Sequence, Union

from ...ir.graph import Value
from .places import compact_strides


@contextlib.contextmanager
def loops(writer: Any, letter: str, sizes: Sequence[Union[int, str]]) -> Iterator[List[str]]:
    """Lines written inside stand in one loop for each size but 1; gives the names of the indices."""
    names = ["0" if size == 1 else f"{letter}{k}_" for k, size in enumerate(sizes)]
    counted = [(name, size) for name, size in zip(names, sizes) if size != 1]
    begins = [f"for (int64_t {name} = 0; {name} < {size}; ++{name}) {{" for name, size in counted] or ["{"]
    for begin in begins:
        writer.line(begin)
        writer.depth += 1
    yield names
    for _ in begins:
        writer.depth -= 1
        writer.line("}")


def at(names: Sequence[str], strides: Sequence[int], offset: int = 0) -> str:
    """The sum of indices times strides."""
    terms = [str(offset)] if offset else []
    terms += [name if stride == 1 else f"{name} * {stride}" for name, stride in zip(names, strides) if stride and name != "0"]
    return " + ".join(terms) or "0"


def along(names: Sequence[str], shape: Sequence[int]) -> str:
    """The address of an element of an array in the order of memory."""
    return at(names, compact_strides(shape))


def checked_index(writer: Any, name: str, source: str, size: int) -> None:
    """Define an index that counts from the end if it is negative, and bail out where there is no such element."""
    writer.line(f"int64_t {name} = (int64_t){source};")
    writer.line(f"if ({name} < 0) {name} += {size};")
    writer.line(f"if ((uint64_t){name} >= (uint64_t){size}) goto bail;")


def zeros(writer: Any, value: Value) -> str:
    """Fill the memory of a value with zeros; gives the pointer."""
    pointer = writer.name(value)
    writer.line(f"memset({pointer}, 0, {value.type.size * value.dtype.itemsize});")
    return pointer
