"""Windows that slide over images: patches, pooling, and convolutions, by cuDNN or as products of patches.

Images are ``(batch, channels, *sizes)``.  One thread computes one element of a result, and goes over the places of a window, so
that sums have one order.
"""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from ....ir.dims import Size
from ....ir.graph import Node, Value
from ....native.cudnn import FILTERS, FORWARD, IMAGE
from ...loops.layout import Place, compact_strides
from ..program.steps import Matrices, Product
from ..text.dtypes import loaded, memory_type, register_type
from ..text.function import FunctionText, KernelText, size_of
from ..text.indices import address, split_index
from ..text.operands import axes_of, element, whole
from .convolutions import convolved

Sizes = Tuple[Size, ...]


class Windows(NamedTuple):
    """How windows lie in an image; all have an entry for each of its sizes.  spots: how many windows there are."""

    image: Sizes
    kernel: Sizes
    spots: Sizes
    stride: Sizes
    pad: Sizes
    dilate: Sizes

    @classmethod
    def of(cls, node: Node, image: Sizes, kernel: Sizes, spots: Sizes) -> "Windows":
        """Those of a node."""
        attrs = node.attrs
        return cls(image, kernel, spots, attrs["stride"], attrs["pad"], attrs.get("dilate") or (1,) * len(image))

    def places(self, kernel: KernelText) -> str:
        """Define where in the image the place ``k`` of the window ``o`` is; gives the test whether it is inside."""
        for axis, (stride, pad, dilate) in enumerate(zip(self.stride, self.pad, self.dilate)):
            kernel.line(f"const dy_index i{axis} = o{axis} * {stride} + k{axis} * {dilate} - {pad};")
        return " && ".join(f"i{axis} >= 0 && i{axis} < {size}" for axis, size in enumerate(self.image))

    def windows(self, kernel: KernelText) -> str:
        """Define which windows have the element ``i`` of the image at their place ``k``; gives the test whether one has."""
        tests = []
        for axis, (spots, stride, pad, dilate) in enumerate(zip(self.spots, self.stride, self.pad, self.dilate)):
            kernel.line(f"const dy_index u{axis} = i{axis} + {pad} - k{axis} * {dilate}, o{axis} = u{axis} / {stride};")
            tests.append(f"u{axis} >= 0 && u{axis} % {stride} == 0 && o{axis} < {spots}")
        return " && ".join(tests)

    def each_place(self, kernel: KernelText) -> None:
        """Open a loop over the places of a window, of number ``place``."""
        kernel.open(f"for (int place = 0; place < {math.prod(self.kernel)}; ++place) {{")
        split_index(kernel, "place", self.kernel, axes_of(len(self.kernel), "k"))


def _at(letter: str, count: int) -> Dict[int, str]:
    """The index of an image whose sizes have indices of this letter."""
    return {0: "n", 1: "c", **{axis + 2: f"{letter}{axis}" for axis in range(count)}}


def _patches(function: FunctionText, x: Value, windows: Windows, order: Sequence[int], number: int) -> None:
    """Write the patches of an image in this order of the axes (batch, channel, place, window); number: the pointer."""
    count = len(windows.image)
    parts: List[Tuple[Sizes, Tuple[str, ...]]] = [
        (x.shape[:1], ("n",)), (x.shape[1:2], ("c",)), (windows.kernel, axes_of(count, "k")), (windows.spots, axes_of(count, "o"))]
    sizes = [size for part in order for size in parts[part][0]]
    names = [name for part in order for name in parts[part][1]]
    kernel = function.elements(math.prod(sizes), sizes, names)
    inside = windows.places(kernel)
    kernel.line(f"{kernel.pointer(number, memory_type(x.dtype) or '', True)}[k] = {inside} ? "
                f"{element(function, kernel, x, _at('i', count))} : 0;")
    function.launch_elements(kernel, math.prod(sizes))


def _image(function: FunctionText, node: Node, windows: Windows) -> Tuple[KernelText, Size]:
    """A kernel with a thread for each element of the image that a node gives."""
    (value,) = node.outputs
    kernel = function.elements(size_of(value), value.shape, ("n", "c", *axes_of(len(windows.image), "i")))
    return kernel, size_of(value)


def _im2col(function: FunctionText, node: Node) -> None:
    (value,), (x,), count = node.outputs, node.inputs, len(node.attrs["size"])
    windows = Windows.of(node, x.shape[2:], node.attrs["kernel"], value.shape[2 + count:])
    _patches(function, x, windows, (0, 1, 2, 3), function.pointer(value))


def _col2im(function: FunctionText, node: Node) -> None:
    (value,), (x,), count = node.outputs, node.inputs, len(node.attrs["size"])
    windows = Windows.of(node, value.shape[2:], x.shape[2:2 + count], x.shape[2 + count:])

    def patch(kernel: KernelText) -> str:
        return element(function, kernel, x, {0: "n", 1: "c", **{2 + a: f"k{a}" for a in range(count)},
                                             **{2 + count + a: f"o{a}" for a in range(count)}})
    _added(function, node, windows, patch)


def _added(function: FunctionText, node: Node, windows: Windows, patch: Callable[[KernelText], str]) -> None:
    """Add up, for each element of an image, what the windows have there that it is in."""
    kernel, count = _image(function, node, windows)
    kernel.line(f"{register_type(node.outputs[0].dtype)} all = 0;")
    windows.each_place(kernel)
    kernel.line(f"if ({windows.windows(kernel)}) all += {patch(kernel)};")
    kernel.close()
    kernel.line(f"{kernel.memory(node.outputs[0], True)}[k] = all;")
    function.launch_elements(kernel, count)


# Pooling --------------------------------------------------------------------------------------------------------------


def _pooling(function: FunctionText, node: Node) -> Tuple[KernelText, Windows]:
    """A kernel with a thread for each window, and how the windows lie."""
    value, x = node.outputs[0], node.inputs[0]
    windows = Windows.of(node, x.shape[2:], node.attrs["kernel"], node.attrs["size"])
    return function.elements(size_of(value), value.shape, ("n", "c", *axes_of(len(windows.image), "o"))), windows


def _average_pool(function: FunctionText, node: Node) -> None:
    (value,), (x,) = node.outputs, node.inputs
    kernel, windows = _pooling(function, node)
    kernel.line(f"{register_type(value.dtype)} all = 0;")
    windows.each_place(kernel)
    inside = windows.places(kernel)
    kernel.line(f"if ({inside}) all += {element(function, kernel, x, _at('i', len(windows.image)))};")
    kernel.close()
    kernel.line(f"{kernel.memory(value, True)}[k] = all / {math.prod(windows.kernel)};")
    function.launch_elements(kernel, size_of(value))


def _max_pool(function: FunctionText, node: Node) -> None:
    """The first of the largest elements; the padding is minus infinity.  As in Chainer's CUDA kernels, NaN is left out."""
    (value, found), (x,), type = node.outputs, node.inputs, register_type(node.outputs[0].dtype)
    kernel, windows = _pooling(function, node)
    kernel.line(f"{type} best = -INFINITY;")
    kernel.line("int found = 0;")
    windows.each_place(kernel)
    inside = windows.places(kernel)
    kernel.line(f"const {type} here = {inside} ? {element(function, kernel, x, _at('i', len(windows.image)))} : -({type})INFINITY;")
    kernel.open("if (here > best) {")
    kernel.line("best = here;")
    kernel.line("found = place;")
    kernel.close()
    kernel.close()
    kernel.line(f"{kernel.memory(value, True)}[k] = best;")
    kernel.line(f"{kernel.memory(found, True)}[k] = found;")
    function.launch_elements(kernel, size_of(value))


def _pick_in_windows(function: FunctionText, node: Node) -> None:
    (value,), (x, indexes), type = node.outputs, node.inputs, register_type(node.outputs[0].dtype)
    kernel, windows = _pooling(function, node)
    count = len(windows.image)
    kernel.line(f"const int place = {element(function, kernel, indexes, _at('o', count))};")
    split_index(kernel, "place", windows.kernel, axes_of(count, "k"))
    inside = windows.places(kernel)
    picked = element(function, kernel, x, _at("i", count))
    kernel.line(f"{kernel.memory(value, True)}[k] = {inside} ? {picked} : -({type})INFINITY;")
    function.launch_elements(kernel, size_of(value))


def _unpick(function: FunctionText, node: Node) -> None:
    (value,), (x, indexes) = node.outputs, node.inputs
    windows = Windows.of(node, value.shape[2:], node.attrs["kernel"], x.shape[2:])
    at = _at("o", len(windows.image))
    _added(function, node, windows, lambda kernel: f"({element(function, kernel, indexes, at)} == place ? "
                                                   f"{element(function, kernel, x, at)} : 0)")


# Convolutions ---------------------------------------------------------------------------------------------------------


def _stack(pointer: int, dtype: Any, shape: Sizes, strides: Sizes, turned: bool = False) -> Matrices:
    if turned:
        shape, strides = (*shape[:-2], shape[-1], shape[-2]), (*strides[:-2], strides[-1], strides[-2])
    return Matrices(pointer, 0, shape, strides, dtype)


def _conv(function: FunctionText, node: Node) -> None:
    (value,), (x, w) = node.outputs, node.inputs
    convolved(function, FORWARD, node, x, w, value, lambda: _conv_of_patches(function, node))


def _conv_of_patches(function: FunctionText, node: Node) -> None:
    """Filters times patches, for each image and group."""
    (value,), (x, w), groups = node.outputs, node.inputs, node.attrs["groups"]
    windows = Windows.of(node, x.shape[2:], w.shape[2:], value.shape[2:])
    batch, filters, spots = x.shape[0], w.shape[0] // groups, math.prod(windows.spots)
    inner = w.shape[1] * math.prod(windows.kernel)
    patches = function.piece(batch * groups * inner * spots, x.dtype)
    _patches(function, x, windows, (0, 1, 2, 3), patches)
    left, right, out = (batch, groups, filters, inner), (batch, groups, inner, spots), (batch, groups, filters, spots)
    function.add(Product(
        _stack(whole(function, w), x.dtype, left, (0, *compact_strides(left)[1:])),
        _stack(patches, x.dtype, right, compact_strides(right)),
        _stack(function.pointer(value), x.dtype, out, compact_strides(out))))
    function.used(patches)


def _conv_transpose(function: FunctionText, node: Node) -> None:
    (value,), (x, w) = node.outputs, node.inputs
    convolved(function, IMAGE, node, value, w, x, lambda: _conv_transpose_of_patches(function, node))


def _conv_transpose_of_patches(function: FunctionText, node: Node) -> None:
    """Turned filters times images, for each image and group, and the patches added up."""
    (value,), (x, w), groups = node.outputs, node.inputs, node.attrs["groups"]
    windows = Windows.of(node, value.shape[2:], w.shape[2:], x.shape[2:])
    batch, filters, spots = x.shape[0], w.shape[0] // groups, math.prod(windows.spots)
    inner = w.shape[1] * math.prod(windows.kernel)
    patches = function.piece(batch * groups * inner * spots, x.dtype)
    left, right, out = (batch, groups, filters, inner), (batch, groups, filters, spots), (batch, groups, inner, spots)
    function.add(Product(
        _stack(whole(function, w), x.dtype, left, (0, *compact_strides(left)[1:]), turned=True),
        _stack(whole(function, x), x.dtype, right, compact_strides(right)), _stack(patches, x.dtype, out, compact_strides(out))))
    shape = (batch, value.shape[1], *windows.kernel, *windows.spots)
    names = ("n", "c", *axes_of(len(windows.kernel), "k"), *axes_of(len(windows.kernel), "o"))

    def patch(kernel: KernelText) -> str:
        memory = kernel.pointer(patches, memory_type(x.dtype) or "")
        return loaded(f"{memory}[{address(0, zip(names, compact_strides(shape)))}]", x.dtype)
    _added(function, node, windows, patch)
    function.used(patches)


def _conv_grad_weight(function: FunctionText, node: Node) -> None:
    (value,), (x, g) = node.outputs, node.inputs
    convolved(function, FILTERS, node, x, value, g, lambda: _conv_grad_weight_of_patches(function, node))


def _conv_grad_weight_of_patches(function: FunctionText, node: Node) -> None:
    """Gradients times patches of all images: one sum over images and windows, for each group."""
    (value,), (x, g), groups = node.outputs, node.inputs, node.attrs["groups"]
    windows = Windows.of(node, x.shape[2:], value.shape[2:], g.shape[2:])
    batch, filters, spots = x.shape[0], value.shape[0] // groups, math.prod(windows.spots)
    inner = value.shape[1] * math.prod(windows.kernel)
    patches, gradients = (function.piece(batch * groups * n * spots, x.dtype) for n in (inner, filters))
    _patches(function, x, windows, (1, 2, 0, 3), patches)
    turned = (1, 0, *range(2, g.ndim))
    own = Value(g.type, g.name)
    shape = tuple(g.shape[a] for a in turned)
    place = function.places.of(g)
    function.copy(Place(own, shape, compact_strides(shape)),
                  Place(place.base, shape, tuple(place.strides[a] for a in turned), place.offset), gradients)
    left, right, out = (groups, filters, batch * spots), (groups, inner, batch * spots), (groups, filters, inner)
    function.add(Product(
        _stack(gradients, x.dtype, left, compact_strides(left)),
        _stack(patches, x.dtype, right, compact_strides(right), turned=True),
        _stack(function.pointer(value), x.dtype, out, compact_strides(out))))
    function.used(patches)
    function.used(gradients)


#: Ops by name.
WINDOWS: Dict[str, Callable[[FunctionText, Node], None]] = {
    "im2col": _im2col, "col2im": _col2im, "average_pool": _average_pool, "max_pool": _max_pool,
    "pick_in_windows": _pick_in_windows, "unpick": _unpick, "conv": _conv, "conv_transpose": _conv_transpose,
    "conv_grad_weight": _conv_grad_weight}
