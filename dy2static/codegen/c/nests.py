"""Lines of C that several rules write: loops around a block, addresses, indices that are checked."""
from __future__ import annotations

import contextlib
import math
from typing import Any, Iterator, List, Optional, Sequence, Union

from ...ir.graph import Value
from .places import compact_strides
from .shares import Level, Share, cut


@contextlib.contextmanager
def loops(writer: Any, letter: str, sizes: Sequence[Union[int, str]], turn: float = 0) -> Iterator[List[str]]:
    """Lines written inside stand in one loop for each size but 1; gives the names of the indices.

    turn: the nanoseconds that the lines take once, where threads may share the first loop.
    """
    names = ["0" if size == 1 else f"{letter}{k}_" for k, size in enumerate(sizes)]
    share = _shared(names[0], sizes, turn) if turn else None
    with contextlib.ExitStack() as around:
        if share is not None:
            around.enter_context(_as_share(writer, share))
        counted = [(name, size) for name, size in zip(names, sizes) if size != 1]
        spans = [("begin", "end") if share is not None and not k else ("0", size) for k, (_, size) in enumerate(counted)]
        begins = [f"for (int64_t {name} = {begin}; {name} < {end}; ++{name}) {{"
                  for (name, _), (begin, end) in zip(counted, spans)] or ["{"]
        for text in begins:
            writer.line(text)
            writer.depth += 1
        yield names
        for _ in begins:
            writer.depth -= 1
            writer.line("}")


def _shared(name: str, sizes: Sequence[Union[int, str]], turn: float) -> Optional[Share]:
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) != len(sizes) or not sizes or known[0] < 2:
        return None
    return cut([Level(name, known[0])], math.prod(known), math.prod(known) * turn)


@contextlib.contextmanager
def _as_share(writer: Any, share: Share) -> Iterator[None]:
    """Lines written inside are a function for threads; who would bail out there says so, and it is done afterwards."""
    around, depth = writer.lines, writer.depth
    writer.lines, writer.depth = [], 1
    yield
    lines, writer.lines, writer.depth = writer.lines, around, depth
    bails = any("goto bail;" in line for line in lines)
    if bails:
        status, told = writer.given.fresh("status"), writer.given.fresh("told")
        writer.types[told] = "int *"
        writer.line(f"int {status} = 0, *const {told} = &{status};")
        lines = [line.replace("goto bail;", f"{{ __atomic_store_n({told}, 1, __ATOMIC_RELAXED); return; }}") for line in lines]
    writer.part(lines, share)
    if bails:
        writer.line(f"if ({status}) goto bail;")


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
