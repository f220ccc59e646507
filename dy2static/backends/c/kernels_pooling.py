"""Windows that slide over images, and neighbouring channels: pooling, patches, local responses."""
from __future__ import annotations

import contextlib
import math
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from ...ir.c_forms import c_constant, c_suffix, c_type
from ...ir.dims import Size, is_known
from ...ir.graph import Node
from ...ir.size_bounds import not_below
from ...native.convolutions import Windows
from ..loops.layout import compact_strides
from ..loops.parallelize import Level, Share, cut, image_by_image
from .emitter import Emitter, Rule
from .nests import along, at, block, loop, loops, zeros

#: The types for which there are functions of rows of windows, the elements of their buffers, and of their vectors at most.
_FLOATS, _LINE, _LANES = {"float32": "f32", "float64": "f64"}, 512, 16

#: Nanoseconds of a tap of a maximum, or of a mean.
_TAP = 0.1

#: Nanoseconds of one place that is looked up in a window, and of one that is copied.
_CHOICE, _PLACE = 1.5, 0.5


class _Windows:
    """The numbers of one op: arrays ``(images, *image)`` and windows ``(*spots)`` of ``kernel``; batch and channels are one."""

    def __init__(self, node: Node, image: Sequence[Size], kernel: Sequence[int], spots: Sequence[Size], count: Size):
        self.image, self.kernel, self.spots, self.count = tuple(image), tuple(kernel), tuple(spots), count
        self.stride, self.pad = node.attrs["stride"], node.attrs["pad"]
        self.dilate = node.attrs.get("dilate", (1,) * len(self.kernel))
        self.axes = range(len(self.kernel))

    def inside(self, a: int) -> bool:
        """Whether no window leaves the image along an axis."""
        reach = (self.spots[a] - 1) * self.stride[a] + (self.kernel[a] - 1) * self.dilate[a] + 1
        return not self.pad[a] and not_below(self.image[a], reach)

    def places(self, emitter: Emitter, spots: Sequence[str]) -> Tuple[List[str], List[str]]:
        """Lines that give the part of the kernel that is in the image, for each axis: its begin and its end."""
        begins, ends = [], []
        for a, spot in zip(self.axes, spots):
            if self.inside(a):
                begins.append("0")
                ends.append(str(self.kernel[a]))
                continue
            emitter.line(f"const int64_t first{a}_ = {spot} * {self.stride[a]} - {self.pad[a]};")
            emitter.line(f"const int64_t begin{a}_ = first{a}_ < 0 ? -first{a}_ : 0;")
            emitter.line(f"const int64_t end{a}_ = first{a}_ + {self.kernel[a]} > {self.image[a]} ? {self.image[a]} - first{a}_ "
                        f": {self.kernel[a]};")
            begins.append(f"begin{a}_")
            ends.append(f"end{a}_")
        return begins, ends

    def element(self, image: str, spots: Sequence[str], places: Sequence[str]) -> str:
        """Where a place of a window is in the images."""
        steps = compact_strides(self.image)
        offset = -sum(p * s for p, s in zip(self.pad, steps))
        terms = at(spots, [s * t for s, t in zip(self.stride, steps)])
        inner = at(places, [d * t for d, t in zip(self.dilate, steps)])
        return f"{image} * {math.prod(self.image)} + {terms} + {inner}{f' - {-offset}' if offset else ''}"

    def spot(self, image: str, spots: Sequence[str]) -> str:
        """Where a window's result is."""
        return along((image, *spots), (self.count, *self.spots))

    def valid(self, a: int, place: str) -> Tuple[str, str]:
        """The windows of which one place along an axis is in the image: the first, and the one behind the last."""
        if self.inside(a):
            return "0", str(self.spots[a])
        s, shift = self.stride[a], f"({self.pad[a]} - {place} * {self.dilate[a]})"
        first = f"({shift} <= 0 ? 0 : ({shift} + {s - 1}) / {s})"
        last = f"{self.image[a] - 1} + {shift}"
        end = f"({last} < 0 ? 0 : ({last}) / {s} + 1 < {self.spots[a]} ? ({last}) / {s} + 1 : {self.spots[a]})"
        return first, end


@contextlib.contextmanager
def _ranges(emitter: Emitter, names: Sequence[str], begins: Sequence[str], ends: Sequence[str]) -> Iterator[None]:
    """Lines written inside stand in one loop for each name."""
    with contextlib.ExitStack() as around:
        for name, begin, end in zip(names, begins, ends):
            around.enter_context(block(emitter, loop(name, begin, end)))
        yield


def _average_pool(emitter: Emitter, node: Node) -> None:
    (value,), (x,) = node.outputs, node.inputs
    windows = _plain_windows(node, x.shape[2:], node.attrs["kernel"], node.attrs["size"], math.prod(x.shape[:2]))
    fits = _overlap(windows) and _fits_line(windows, _LANES * windows.stride[-1])
    if fits and value.dtype.name in _FLOATS and 0 not in value.shape:
        arrays = [(emitter.pointer(x), windows.image), (emitter.name(value), windows.spots)]
        emitter.part(*_by_planes(windows, f"dy_average_pool_{_FLOATS[value.dtype.name]}", arrays, math.prod(value.shape)))
        return
    w = _Windows(node, x.shape[2:], node.attrs["kernel"], node.attrs["size"], math.prod(x.shape[:2]))
    source, target, type = emitter.pointer(x), emitter.name(value), c_type(value.dtype)
    with loops(emitter, "a", (w.count, *w.spots), math.prod(w.kernel)) as (image, *spots):
        places = [f"k{a}_" for a in w.axes]
        begins, ends = w.places(emitter, spots)
        emitter.line(f"{type} total = 0;")
        with _ranges(emitter, places, begins, ends):
            emitter.line(f"total += {source}[{w.element(image, spots, places)}];")
        emitter.line(f"{target}[{w.spot(image, spots)}] = total / {c_constant(float(math.prod(w.kernel)), value.dtype)};")


def _max_pool(emitter: Emitter, node: Node) -> None:
    """The first maximum, and the first NaN before all; the padding is minus infinity, also at the first place."""
    (value, indexes), (x,) = node.outputs, node.inputs
    w = _Windows(node, x.shape[2:], node.attrs["kernel"], node.attrs["size"], math.prod(x.shape[:2]))
    written = written_pool(emitter, node)
    if written is not None:
        emitter.part(*written)
        return
    source, target, found, type = emitter.pointer(x), emitter.name(value), emitter.name(indexes), c_type(value.dtype)
    with loops(emitter, "a", (w.count, *w.spots), math.prod(w.kernel)) as (image, *spots):
        places = [f"k{a}_" for a in w.axes]
        begins, ends = w.places(emitter, spots)
        emitter.line(f"{type} best = -INFINITY;")
        emitter.line(f"{c_type(indexes.dtype)} found = 0;")
        with _ranges(emitter, places, begins, ends):
            emitter.line(f"const {type} item = {source}[{w.element(image, spots, places)}];")
            emitter.line("const bool better = best == best && !islessequal(item, best);")
            emitter.line("best = better ? item : best;")
            emitter.line(f"found = better ? {along(places, w.kernel)} : found;")
        emitter.line(f"{target}[{w.spot(image, spots)}] = best;")
        emitter.line(f"{found}[{w.spot(image, spots)}] = found;")


def written_pool(emitter: Emitter, node: Node, images: int = 0) -> Optional[Tuple[List[str], Optional[Share]]]:
    """The maxima of rows of windows at once, with vectors; None where there is no function for these.

    images: the number of images; threads share them, however little work that is.
    """
    (value, indexes), (x,), attrs = node.outputs, node.inputs, node.attrs
    type, places = _FLOATS.get(value.dtype.name), {"uint8": "u8", "int32": "i32"}.get(indexes.dtype.name)
    windows = _plain_windows(node, x.shape[2:], attrs["kernel"], attrs["size"], math.prod(x.shape[:2]))
    if None in (type, places) or not _fits_line(windows, _LANES * attrs["stride"][-1]) or 0 in value.shape:
        return None
    arrays = [(emitter.pointer(x), windows.image), (emitter.name(value), windows.spots),
              (emitter.name(indexes) if emitter.is_read(indexes) else "", windows.spots)]
    return _by_planes(windows, f"dy_max_pool_{type}_{places}", arrays, math.prod(value.shape), images)


def _plain_windows(node: Node, image: Sequence[Size], kernel: Sequence[int], spots: Sequence[Size], count: Size) -> Windows:
    """The windows of an op, all of whose planes are images."""
    attrs = node.attrs
    return Windows(count, 1, 1, 1, tuple(image), tuple(kernel), tuple(spots), attrs["stride"], attrs["pad"], (1,) * len(kernel))


def _fits_line(windows: Windows, more: int) -> bool:
    """Whether there is a function for such windows: their rows, and so many elements more, fit into its buffers."""
    return windows.fits() and windows.kernel[-1] + more <= _LINE


def _overlap(windows: Windows) -> bool:
    """Whether windows share elements, or leave the image: for others, loops over the elements of each are as fast."""
    return any(windows.pad) or any(step < size for step, size in zip(windows.stride, windows.kernel))


def _by_planes(windows: Windows, function: str, arrays: Sequence[Tuple[str, Sequence[Size]]], elements: Size,
               images: int = 0) -> Tuple[List[str], Optional[Share]]:
    """Lines that call a function of windows for all planes, which threads may share.

    arrays: the operands, "" for null, with the shape of a plane of each.
    """
    share, level = None, Level("planes", windows.batch)
    if images:
        share = image_by_image(level, images, elements)
    elif is_known(elements):
        share = cut([level], elements, elements * math.prod(windows.kernel) * _TAP)
    lines = [f"    {'static ' if share is None and is_known(elements) else ''}dy_windows windows = {windows.text()};"]
    names = [name for name, _ in arrays]
    if share is not None:
        lines.append("    windows.batch = end - begin;")
        names = [name and f"{name} + begin * {math.prod(plane)}" for name, plane in arrays]
    return [*lines, f"    {function}(&windows, {', '.join(name or '0' for name in names)});"], share


def _chosen(emitter: Emitter, w: _Windows, index: str, spots: Sequence[str]) -> str:
    """Lines that give the place of an index in the image, for each axis; gives the test whether it is in the image.

    The indices may be the caller's: one that is outside of the window is NumPy's to answer.
    """
    tests = []
    emitter.line(f"const int64_t at = {index};")
    emitter.line(f"if ((uint64_t)at >= {math.prod(w.kernel)}) goto bail;")
    for a, (step, size) in enumerate(zip(compact_strides(w.kernel), w.kernel)):
        place = f"at / {step} % {size}" if a else f"at / {step}"
        emitter.line(f"const int64_t to{a}_ = {spots[a]} * {w.stride[a]} + {place} - {w.pad[a]};")
        if not w.inside(a):
            tests.append(f"(uint64_t)to{a}_ < {w.image[a]}")
    return " && ".join(tests) or "1"


def _pick_in_windows(emitter: Emitter, node: Node) -> None:
    (value,), (x, indexes) = node.outputs, node.inputs
    w = _Windows(node, x.shape[2:], node.attrs["kernel"], node.attrs["size"], math.prod(x.shape[:2]))
    source, chosen, target = emitter.pointer(x), emitter.pointer(indexes), emitter.name(value)
    with loops(emitter, "a", (w.count, *w.spots), _CHOICE) as (image, *spots):
        test = _chosen(emitter, w, f"{chosen}[{w.spot(image, spots)}]", spots)
        there = along((image, *(f"to{a}_" for a in w.axes)), (w.count, *w.image))
        emitter.line(f"{target}[{w.spot(image, spots)}] = {test} ? {source}[{there}] : -INFINITY;")


def _unpick(emitter: Emitter, node: Node) -> None:
    (value,), (x, indexes) = node.outputs, node.inputs
    w = _Windows(node, value.shape[2:], node.attrs["kernel"], x.shape[2:], math.prod(x.shape[:2]))
    source, chosen, target = emitter.pointer(x), emitter.pointer(indexes), zeros(emitter, value)
    with loops(emitter, "a", (w.count, *w.spots), _CHOICE) as (image, *spots):
        test = _chosen(emitter, w, f"{chosen}[{w.spot(image, spots)}]", spots)
        there = along((image, *(f"to{a}_" for a in w.axes)), (w.count, *w.image))
        emitter.line(f"if ({test}) {target}[{there}] += {source}[{w.spot(image, spots)}];")


def _patches(emitter: Emitter, w: _Windows, statement: Callable[[str, str], str]) -> None:
    """One line for each place of a window in the image: from its address in the patches, and that in the image."""
    places_in_all = math.prod(w.spots)
    with loops(emitter, "a", (w.count, *w.kernel), _PLACE * places_in_all if is_known(places_in_all) else 0) as (image, *places):
        spots = [f"s{a}_" for a in w.axes]
        valid = [w.valid(a, place) for a, place in zip(w.axes, places)]
        for a, (begin, end) in enumerate(valid):
            emitter.line(f"const int64_t begin{a}_ = {begin}, end{a}_ = {end};")
        with _ranges(emitter, spots, [f"begin{a}_" for a in w.axes], [f"end{a}_" for a in w.axes]):
            patch = along((image, *places, *spots), (w.count, *w.kernel, *w.spots))
            emitter.line(statement(patch, w.element(image, spots, places)))


def _im2col(emitter: Emitter, node: Node) -> None:
    (value,), (x,) = node.outputs, node.inputs
    w = _Windows(node, x.shape[2:], node.attrs["kernel"], node.attrs["size"], math.prod(x.shape[:2]))
    target = emitter.name(value) if all(map(w.inside, w.axes)) else zeros(emitter, value)
    source = emitter.pointer(x)
    _patches(emitter, w, lambda patch, image: f"{target}[{patch}] = {source}[{image}];")


def _col2im(emitter: Emitter, node: Node) -> None:
    (value,), (x,) = node.outputs, node.inputs
    count = len(node.attrs["size"])
    if _spread(emitter, node):
        return
    w = _Windows(node, value.shape[2:], x.shape[2:2 + count], x.shape[2 + count:], math.prod(x.shape[:2]))
    source, target = emitter.pointer(x), zeros(emitter, value)
    _patches(emitter, w, lambda patch, image: f"{target}[{image}] += {source}[{patch}];")


def _spread(emitter: Emitter, node: Node) -> bool:
    """Write the sums of patches all elements of which are the same number, as in the gradient of a mean, from these numbers."""
    (value,), (x,) = node.outputs, node.inputs
    place, count = emitter.place(x), len(node.attrs["size"])
    kernel, spots, planes = x.shape[2:2 + count], x.shape[2 + count:], x.shape[:2]
    windows = _plain_windows(node, value.shape[2:], kernel, spots, math.prod(planes))
    is_same = not any(stride for stride, size in zip(place.strides[2:2 + count], kernel) if size != 1)
    strides, compact = place.strides[:2] + place.strides[2 + count:], compact_strides((*planes, *spots))
    in_order = all(own == other or size == 1 for own, other, size in zip(strides, compact, (*planes, *spots)))
    if not (is_same and in_order and _overlap(windows)) or place.offset or place.terms or node.attrs["dilate"] != windows.dilate:
        return False
    if value.dtype.name not in _FLOATS or place.base.dtype != value.dtype or 0 in (*x.shape, *value.shape) or not _fits_line(
            windows, _LINE // 2):
        return False
    arrays = [(emitter.name(place.base), windows.spots), (emitter.name(value), windows.image)]
    emitter.part(*_by_planes(windows, f"dy_spread_windows_{_FLOATS[value.dtype.name]}", arrays, math.prod(value.shape)))
    return True


# Neighbouring channels ----------------------------------------------------------------------------------------------


def _window_sums(emitter: Emitter, node: Node, term: Callable[[str], str], finish: Callable[[str], Sequence[str]]) -> None:
    """For each element the sum of a term over the channels around; finish: lines, from its address, with ``total``."""
    shape = node.outputs[0].shape
    channels, inner, half = shape[1], math.prod(shape[2:]), node.attrs["n"] // 2
    sizes = (shape[0], channels, inner)
    type, most = c_type(node.outputs[0].dtype), min(inner, _ROW) if is_known(inner) else _ROW
    with loops(emitter, "a", (*sizes[:2], -(-inner // most)), node.attrs["n"] * most) as (image, channel, block):
        emitter.line(f"const int64_t begin = {channel} < {half} ? 0 : {channel} - {half}, "
                    f"end = {channel} + {half + 1} > {channels} ? {channels} : {channel} + {half + 1};")
        emitter.line(f"const int64_t first = {block} * {most}, last = first + {most} < {inner} ? first + {most} : {inner};")
        each = "for (int64_t e = first; e < last; ++e)"
        emitter.line(f"{type} sums[{most}] = {{0}};")
        emitter.line("for (int64_t c = begin; c < end; ++c) {")
        emitter.line("    #pragma omp simd")
        emitter.line(f"    {each} sums[e - first] += {term(along((image, 'c', 'e'), sizes))};")
        emitter.line("}")
        emitter.line("#pragma omp simd")
        emitter.line(f"{each} {{")
        emitter.line(f"    const {type} total = sums[e - first];")
        for line in finish(along((image, channel, "e"), sizes)):
            emitter.line(f"    {line}")
        emitter.line("}")


#: So many elements are added up at a time.
_ROW = 512


def _local_response(emitter: Emitter, node: Node) -> None:
    (y, unit, scale), (x,) = node.outputs, node.inputs
    source, dtype = emitter.pointer(x), x.dtype
    names = [emitter.name(v) for v in (y, unit, scale)]
    k, alpha, minus = (c_constant(v, dtype) for v in (node.attrs["k"], node.attrs["alpha"], -node.attrs["beta"]))
    _window_sums(emitter, node, lambda there: f"{source}[{there}] * {source}[{there}]", lambda here: (
        f"const {c_type(dtype)} unit_ = {k} + {alpha} * total, scale_ = power_{c_suffix(dtype)}(unit_, {minus});",
        f"{names[0]}[{here}] = {source}[{here}] * scale_;", f"{names[1]}[{here}] = unit_;", f"{names[2]}[{here}] = scale_;"))


def _local_response_grad(emitter: Emitter, node: Node) -> None:
    (value,) = node.outputs
    x, y, g, unit, scale = map(emitter.pointer, node.inputs)
    target, factor = emitter.name(value), c_constant(2 * node.attrs["alpha"] * node.attrs["beta"], value.dtype)
    _window_sums(emitter, node, lambda there: f"{y}[{there}] * {g}[{there}] / {unit}[{there}]", lambda here: (
        f"{target}[{here}] = {g}[{here}] * {scale}[{here}] - {factor} * {x}[{here}] * total;",))


#: Ops by name.
WINDOWS: Dict[str, Rule] = {
    "average_pool": _average_pool, "max_pool": _max_pool, "pick_in_windows": _pick_in_windows, "unpick": _unpick,
    "im2col": _im2col, "col2im": _col2im, "local_response": _local_response, "local_response_grad": _local_response_grad}


def known_of(node: Node) -> Tuple[Size, ...]:
    """The sizes that have to be known: all but the number of images, and how large these are."""
    (x, *_), patches = node.inputs, len(node.attrs["size"]) if node.op.name == "col2im" else 0
    return x.shape[1:2 + patches]


def takes(node: Node) -> bool:
    """Whether the rules are for these dtypes."""
    return node.outputs[0].dtype.kind == "f" and all(v.dtype == node.outputs[0].dtype or v.dtype.kind in "iu" for v in node.inputs)
