"""Where the elements of a value lie in the memory of another one: what ops that only rename elements become."""
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Optional, Protocol, Sequence, Tuple

from ...ir.dims import Size, is_known
from ...ir.graph import Node, Value
from ...ir.template import AT, is_window
from ...ir.types import Stack, Tensor


@dataclass(frozen=True)
class Place:
    """Element ``(i, j, …)`` is element ``offset + i * strides[0] + j * strides[1] + …`` of ``base``.

    terms: more of the offset, that the run knows: pairs of a C variable and what it is multiplied with.
    """

    base: Value
    shape: Tuple[Size, ...]
    strides: Tuple[Size, ...]
    offset: Size = 0
    terms: Tuple[Tuple[str, Size], ...] = ()

    @property
    def whole(self) -> bool:
        """Whether this is its base, element by element, in the order of memory."""
        return self.compact and not self.offset and not self.terms and math.prod(self.shape) == math.prod(self.base.shape)

    @property
    def compact(self) -> bool:
        """Whether the elements stand side by side in the order of the last index first."""
        return all(a == b for a, b, n in zip(self.strides, compact_strides(self.shape), self.shape) if n != 1)


def place_of(value: Value) -> Place:
    """The place of a value that has memory of its own."""
    shape = getattr(value.type, "shape", ())
    return Place(value, shape, compact_strides(shape))


def compact_strides(shape: Sequence[Size]) -> Tuple[Size, ...]:
    """The strides, in elements, of an array in C order."""
    strides: List[Size] = []
    step: Size = 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


class Strided(Protocol):
    """What has elements at strides."""

    @property
    def strides(self) -> Tuple[Any, ...]:
        """How far neighbours along each axis are apart."""


def merged_axes(shape: Sequence[Size], places: Sequence[Strided], axes: Optional[Sequence[int]] = None) -> List[List[int]]:
    """The axes of a shape, with those together over which all places go in one stride; none of size one.

    axes: only these, in their order.
    """
    merged: List[List[int]] = []
    for axis in range(len(shape)) if axes is None else axes:
        if shape[axis] == 1:
            continue
        if merged and all(p.strides[merged[-1][-1]] == p.strides[axis] * shape[axis] for p in places):
            merged[-1].append(axis)
        else:
            merged.append([axis])
    return merged


def reshaped(place: Place, shape: Tuple[Size, ...]) -> Optional[Place]:
    """The same elements in another shape; None where strides cannot say it."""
    strides = _reshaped_strides(place.shape, place.strides, shape)
    return None if strides is None else replace(place, shape=shape, strides=strides)


def _reshaped_strides(old: Sequence[Size], strides: Sequence[Size], new: Sequence[Size]) -> Optional[Tuple[Size, ...]]:
    if math.prod(old) == 0:
        return (0,) * len(new)
    sizes = [(n, s) for n, s in zip(old, strides) if n != 1]
    if [n for n, _ in sizes] == [n for n in new if n != 1]:
        same = iter(sizes)
        return tuple(0 if n == 1 else next(same)[1] for n in new)
    if not all(map(is_known, (*old, *new))):
        plain = all(s == c for s, c, n in zip(strides, compact_strides(old), old) if n != 1)
        return compact_strides(new) if plain else None
    result: List[Size] = []
    rest = [n for n in new if n != 1]
    i = 0
    while rest:
        count, wanted = 1, 0
        group: List[Tuple[Size, Size]] = []
        part: List[Size] = []
        while True:                                            # the shortest runs of old and new axes of one size
            if count == wanted and part:
                break
            if not part or wanted < count:
                part.append(rest.pop(0))
                wanted = math.prod(part)
            else:
                group.append(sizes[i])
                i += 1
                count = math.prod(n for n, _ in group)
        if any(a[1] != b[1] * b[0] for a, b in zip(group, group[1:])):
            return None
        step = group[-1][1]
        result += [step * s for s in compact_strides(part)]
    ready = iter(result)
    return tuple(0 if n == 1 else next(ready) for n in new)


def strides_in(target: Place, place: Place) -> Optional[Tuple[Size, ...]]:
    """How far elements of the base of a place are apart if the place is to be that target; None where no strides say it."""
    base = place.base
    there = reshaped(target, place.shape)
    if there is None or place.offset or place.terms or math.prod(place.shape) != math.prod(base.shape):
        return None
    found = {(n, stride): new for n, stride, new in zip(place.shape, place.strides, there.strides) if n != 1}
    axes = list(zip(base.shape, compact_strides(base.shape)))
    if any(n != 1 and (n, stride) not in found for n, stride in axes):
        return None
    return tuple([found.get((n, stride), 0) for n, stride in axes])


def broadcast(place: Place, shape: Tuple[Size, ...]) -> Place:
    """The elements repeated to a shape, as NumPy does."""
    lead = len(shape) - len(place.shape)
    strides = (0,) * lead + tuple(0 if n == 1 else s for n, s in zip(place.shape, place.strides))
    return replace(place, shape=shape, strides=strides)


def span(start: Size, stop: Optional[Size], step: int) -> Size:
    """How many elements a slice in its normal form has.

    Of a size that the run knows, its step is one, or minus one down to the first element.
    """
    if is_known(start) and (stop is None or is_known(stop)):
        return len(range(start, -1 if stop is None else stop, step))
    return start + 1 if stop is None else stop - start


def indexed(place: Place, index: Sequence, numbers: Sequence[str] = ()) -> Place:
    """The part that a basic index picks; numbers: the C variables for each `AT` and each window in it."""
    names = iter(numbers)
    shape: List[Size] = []
    strides: List[Size] = []
    offset, terms, axis = place.offset, list(place.terms), 0
    for entry in index:
        if entry is None:
            shape.append(1)
            strides.append(0)
            continue
        stride = place.strides[axis]
        if entry == AT:
            terms.append((next(names), stride))
        elif is_window(entry):
            terms.append((next(names), stride))
            shape.append(entry[1])
            strides.append(stride)
        elif isinstance(entry, tuple):
            start, stop, step = entry
            shape.append(span(start, stop, step))
            strides.append(stride * step)
            offset += start * stride if shape[-1] else 0
        else:
            offset += entry * stride
        axis += 1
    return Place(place.base, tuple(shape), tuple(strides), offset, tuple(terms))


def _part(place: Place, axis: int, start: int, count: int) -> Place:
    shape = place.shape[:axis] + (count,) + place.shape[axis + 1:]
    return replace(place, shape=shape, offset=place.offset + start * place.strides[axis])


def _without(place: Place, axis: int, at: int) -> Place:
    return replace(place, shape=place.shape[:axis] + place.shape[axis + 1:],
                   strides=place.strides[:axis] + place.strides[axis + 1:],
                   offset=place.offset + at * place.strides[axis])


def _split(node: Node, place: Place) -> List[Place]:
    axis, start, parts = node.attrs["axis"], 0, []
    for size in node.attrs["sizes"]:
        parts.append(_part(place, axis, start, size))
        start += size
    return parts


def _diagonal(node: Node, place: Place) -> List[Place]:
    (row, column), shift = node.attrs["axes"], node.attrs["offset"]
    kept = [a for a in range(len(place.shape)) if a not in (row, column)]
    offset = place.offset + (shift * place.strides[column] if shift > 0 else -shift * place.strides[row])
    return [replace(place, shape=node.outputs[0].shape, offset=offset if node.outputs[0].type.size else 0,
                    strides=(*(place.strides[a] for a in kept), place.strides[row] + place.strides[column]))]


def _same(node: Node, place: Place) -> List[Place]:
    return [place]


#: What nodes that rename elements give, from the place of their first operand.
RULES: Dict[str, Callable[[Node, Place], List[Place]]] = {
    "broadcast_to": lambda node, place: [broadcast(place, node.attrs["shape"])],
    "transpose": lambda node, place: [replace(place, shape=node.outputs[0].shape,
                                              strides=tuple(place.strides[a] for a in node.attrs["axes"]))],
    "getitem": lambda node, place: [indexed(place, node.attrs["index"])],
    "split": _split,
    "unstack": lambda node, place: [_without(place, node.attrs["axis"], i) for i in range(len(node.outputs))],
    "diagonal": _diagonal,
    "identity": _same, "stop_gradient": _same, "gradient_of": _same, "attached": _same, "last_gradient": _same,
    "once_differentiable": _same, "cross_entropy": _same, "gradient_inside": _same, "by_rule": _same,
}


class Places:
    """Where the elements of each value are, and which values are numbers that are known.

    index: gives the name of one more index that the run knows.
    """

    def __init__(self, index: Callable[[], str]):
        self.index = index
        self.views: Dict[Value, Place] = {}
        self._own: Dict[Value, Place] = {}                 # of values with memory of their own
        self.constants: Dict[Value, Any] = {}

    def of(self, value: Value) -> Place:
        """The place of a value."""
        place = self.views.get(value) or self._own.get(value)
        if place is None:
            place = self._own[value] = Place(value, (), ()) if isinstance(value.type, Stack) else place_of(value)
        return place

    def constant(self, number: Any, dtype: Any, name: str = "") -> Value:
        """A number as a value of no dimensions."""
        value = Value(Tensor((), dtype), name)
        self.constants[value] = number
        return value

    def settle(self, node: Node) -> bool:
        """Note where the results of a node are, if it only renames elements or is a number; whether that is all of it."""
        if not node.outputs:
            return False
        name, value = node.op.name, node.outputs[0]
        if name in RULES:
            self.views.update(zip(node.outputs, RULES[name](node, self.of(node.inputs[0]))))
        elif name == "py_constant" or name == "constant" and value.ndim == 0:
            self.constants[value] = node.attrs["value"]
        elif name == "dimension":
            self.constants[value] = node.attrs["size"]
        elif name == "full":
            number = self.constant(node.attrs["value"], value.dtype, value.name)
            self.views[value] = broadcast(place_of(number), value.shape)
            if value.ndim == 0:
                self.constants[value] = node.attrs["value"]
        elif name == "reshape":
            place = reshaped(self.of(node.inputs[0]), value.shape)
            if place is not None:
                self.views[value] = place
            return place is not None
        elif name == "getitem_at":                                 # its indices are still to be checked
            self.views[value] = indexed(self.of(node.inputs[0]), node.attrs["index"], [self.index() for _ in node.inputs[1:]])
            return False
        else:
            return False
        return True
