"""Lines of C that several rules write: loops around a block, copies, addresses, indices that are checked."""
from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from ...ir.dims import Size, is_known
from ...ir.graph import Value
from ..loops.layout import Place, broadcast, compact_strides, merged_axes, place_of
from ..loops.parallelize import Level, Share, cut
from .emitter import Emitter

#: Nanoseconds that it takes to copy one element.
_COPY = 0.4

#: Lines of fewer elements are filled as a whole, not only at their ends.
_LINE = 128

#: From so many rows and columns on, a matrix is turned in squares.
_TURNED = 4


@contextlib.contextmanager
def block(emitter: Emitter, head: str) -> Iterator[None]:
    """Lines written inside stand in the braces of a loop or a condition; head: the line that opens them."""
    emitter.line(head)
    with emitter.indented():
        yield
    emitter.line("}")


def loop(name: str, begin: Union[Size, str], end: Union[Size, str]) -> str:
    """The line that opens a loop."""
    return f"for (int64_t {name} = {begin}; {name} < {end}; ++{name}) {{"


@contextlib.contextmanager
def loops(emitter: Emitter, letter: str, sizes: Sequence[Size], turn: float = 0) -> Iterator[List[str]]:
    """Lines written inside stand in one loop for each size but 1; gives the names of the indices.

    turn: the nanoseconds that the lines take once, where threads may share the first loop.
    """
    names = ["0" if size == 1 else f"{letter}{k}_" for k, size in enumerate(sizes)]
    counted = [(name, size) for name, size in zip(names, sizes) if size != 1]
    share = _shared(*zip(*counted), turn) if turn and counted else None
    with contextlib.ExitStack() as around:
        if share is not None:
            around.enter_context(emitter.shared(share))
        heads = [loop(name, "begin", "end") if share is not None and not k else loop(name, 0, size)
                 for k, (name, size) in enumerate(counted)]
        for head in heads or ["{"]:
            around.enter_context(block(emitter, head))
        yield names


def _shared(names: Sequence[str], sizes: Sequence[Size], turn: float) -> Optional[Share]:
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) != len(sizes):
        return None
    return cut([Level(names[0], known[0])], math.prod(known), math.prod(known) * turn)


def copy(emitter: Emitter, target: Place, source: Place, pointer: str) -> None:
    """Loops that write the elements of one place to another of the same shape; pointer: the base of the target."""
    axes = merged_axes(target.shape, (target, source))
    names = [f"k{k}" for k in range(len(axes))]
    steps, jumps = ([place.strides[part[-1]] for part in axes] for place in (target, source))
    to, of = [*_terms(names, steps)], [*_terms(names, jumps)]
    text = f"{pointer}[{' + '.join([*begin_of(target), *to]) or '0'}] = {emitter.element(source, of)};"
    if not axes:
        emitter.line(text)
        return
    sizes = [math.prod(target.shape[a] for a in part) for part in axes]
    count = math.prod(sizes)
    levels = [Level(name, size, name == names[-1]) for name, size in zip(names, sizes)]
    share = cut(levels, count, count * _COPY) if is_known(count) else None
    spans = {name: ("begin", "end") if share is not None and share.name == name else (0, size) for name, size in zip(names, sizes)}
    turned = _turned_axis(target, source, sizes, steps, jumps)
    if turned is None:
        lines = ["    " * (k + 1) + loop(name, *spans[name])[:-2] for k, name in enumerate(names)]  # one statement needs no braces
        lines.insert(-1, "    " * len(sizes) + "#pragma omp simd")             # no iteration writes where another one reads
    else:
        text = _turned(emitter, target, source, pointer, names, spans, steps, jumps, turned)
        around = [name for k, name in enumerate(names[:-1]) if k != turned]
        lines = ["    " * (k + 1) + loop(name, *spans[name])[:-2] for k, name in enumerate(around)]
    emitter.part([*lines, "    " * (len(lines) + 1 - (turned is None)) + text], share)


def _turned_axis(target: Place, source: Place, sizes: Sequence[Size], steps: Sequence[Size],
                 jumps: Sequence[Size]) -> Optional[int]:
    """The axis along which elements of the source stand side by side, if those of the target do along the last one; else None."""
    if source.base.ndim == 0 or source.base.dtype != target.base.dtype or source.base.dtype.itemsize not in (4, 8) \
            or steps[-1] != 1 or jumps[-1] in (0, 1):
        return None
    long = [not is_known(size) or size >= _TURNED for size in sizes]
    return next((k for k, jump in enumerate(jumps[:-1]) if jump == 1 and long[k] and long[-1]), None)


def _turned(emitter: Emitter, target: Place, source: Place, pointer: str, names: Sequence[str],
            spans: Dict[str, Tuple[Size, Size]], steps: Sequence[Size], jumps: Sequence[Size], axis: int) -> str:
    """The call that writes a matrix of the source, whose columns are an axis and whose rows are the last one, turned."""
    inside = (axis, len(names) - 1)
    at = [spans[name][0] if k in inside else name for k, name in enumerate(names)]
    (first, end), (top, bottom) = (spans[names[k]] for k in inside)

    def address(place: Place, base: str, strides: Sequence[Size]) -> str:
        terms = [name if stride == 1 else f"{name} * {stride}" for name, stride in zip(at, strides) if stride and name != 0]
        return " + ".join([base, *begin_of(place), *map(str, terms)])

    return (f"dy_turn_{source.base.dtype.itemsize}({address(source, emitter.name(source.base), jumps)}, {jumps[-1]}, "
            f"{_length(top, bottom)}, {_length(first, end)}, {address(target, pointer, steps)}, {steps[axis]});")


def _length(begin: Size, end: Size) -> str:
    return str(end) if begin == 0 else f"{end} - {begin}"


def begin_of(place: Place) -> List[str]:
    """The terms of the address of the first element of a place."""
    offset = [str(place.offset)] if place.offset else []
    return offset + _terms([name for name, _ in place.terms], [stride for _, stride in place.terms])


def _terms(names: Sequence[str], strides: Sequence[Size]) -> List[str]:
    return [name if stride == 1 else f"{name} * {stride}" for name, stride in zip(names, strides) if stride]


def at(names: Sequence[str], strides: Sequence[Size], offset: Size = 0) -> str:
    """The sum of indices times strides."""
    pairs = [(name, stride) for name, stride in zip(names, strides) if name != "0"]
    return " + ".join([*([str(offset)] if offset else []), *_terms([n for n, _ in pairs], [s for _, s in pairs])]) or "0"


def along(names: Sequence[str], shape: Sequence[Size]) -> str:
    """The address of an element of an array in the order of memory."""
    return at(names, compact_strides(shape))


def checked_index(emitter: Emitter, name: str, source: str, size: Union[Size, str]) -> None:
    """Define an index that counts from the end if it is negative, and bail out where there is no such element."""
    emitter.line(f"int64_t {name} = (int64_t){source};")
    emitter.line(f"if ({name} < 0) {name} += {size};")
    emitter.line(f"if ((uint64_t){name} >= (uint64_t){size}) goto bail;")


def part_of(place: Place, axis: int, start: Size, count: Size) -> Place:
    """So many elements along an axis, from one on."""
    shape = (*place.shape[:axis], count, *place.shape[axis + 1:])
    return replace(place, shape=shape, offset=place.offset + start * place.strides[axis])


def fill(emitter: Emitter, value: Value, place: Place, number: Any) -> None:
    """Write one number to a part of a value."""
    one = emitter.constant(number, value.dtype)
    emitter.copy(place, broadcast(place_of(one), place.shape), emitter.name(value))


def fill_around(emitter: Emitter, value: Value, index: Sequence[Any], number: Any) -> None:
    """Write one number to all elements of a value but those that a basic index picks, which are written later.

    These get the number, too, where they are few, no box, or where what is around them is in short pieces.
    """
    place, spans = place_of(value), _box(index, value.shape)
    if spans is None or 2 * math.prod([end - begin for begin, end in spans]) < math.prod(value.shape) or any(
            end - begin != size and math.prod(value.shape[axis:]) < _LINE
            for axis, ((begin, end), size) in enumerate(zip(spans, value.shape))):
        fill(emitter, value, place, number)
        return
    for axis, (begin, end) in enumerate(spans):
        for first, behind in ((0, begin), (end, value.shape[axis])):
            if first < behind:
                fill(emitter, value, part_of(place, axis, first, behind - first), number)
        place = part_of(place, axis, begin, end - begin)


def _box(index: Sequence[Any], shape: Sequence[Size]) -> Optional[List[Tuple[int, int]]]:
    """Where what an index picks begins and ends along each axis; None if it is no box, or of sizes that only the run knows."""
    if len(index) != len(shape) or not all(isinstance(size, int) for size in shape):
        return None
    spans = [entry[:2] if isinstance(entry, tuple) and entry[2:] == (1,) else (entry, entry + 1) if isinstance(entry, int) else None
             for entry in index]
    found = [span for span in spans if span is not None and all(isinstance(end, int) for end in span)]
    return found if len(found) == len(shape) else None


def zeros(emitter: Emitter, value: Value) -> str:
    """Fill the memory of a value with zeros; gives the pointer."""
    pointer = emitter.name(value)
    emitter.line(f"memset({pointer}, 0, {math.prod(value.shape) * value.dtype.itemsize});")
    return pointer
