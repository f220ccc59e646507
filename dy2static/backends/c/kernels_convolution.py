"""Convolutions: each node is one call, with its windows as a constant of the text."""
from __future__ import annotations

import math
from typing import Dict, List, Tuple

from ...ir.dims import Size, evaluate, is_known
from ...ir.graph import Node
from ...ir.size_bounds import maximum
from ...native import convolutions
from ...native.convolutions import Windows
from ...passes.convolution_speed import pays_for_filters, pays_to_turn
from .emitter import Emitter, Rule

_SUFFIXES = {"float32": "f32", "float64": "f64"}
#: As in ``dy2static_plain_windows.h``.
_PATCH_SIZE, _PATCH_COLUMNS, _FEW = 1 << 16, 256, 4
#: What sizes that only the run knows are taken for.
_USUAL = 32
#: What is in the header of rows of windows.
_OF_POOLS = ("dy_max_pool_", "dy_average_pool_", "dy_spread_windows_", "dy_float_state")
_FUNCTIONS = {"conv": "dy_conv", "conv_transpose": "dy_conv_transpose", "conv_grad_weight": "dy_conv_grad_weight"}


def _windows(node: Node) -> Windows:
    """The windows of `conv`, or of the one that a node is the derivative of."""
    (x, other), attrs, (value,) = node.inputs, node.attrs, node.outputs
    size, groups = tuple(attrs["size"]), attrs["groups"]
    image, filters, spots = {
        "conv": (x.shape[2:], other.shape, size), "conv_transpose": (size, other.shape, x.shape[2:]),
        "conv_grad_weight": (x.shape[2:], value.shape, other.shape[2:]),
    }[node.op.name]
    return Windows(x.shape[0], groups, filters[1], filters[0] // groups, image, filters[2:], spots, attrs["stride"],
                   attrs["pad"], attrs["dilate"])


def write(emitter: Emitter, node: Node, before: str = "", *more: str) -> None:
    """A call; before: a line in front of it.  more: further arguments."""
    (value,) = node.outputs
    windows = _windows(node)
    suffix = _SUFFIXES[value.dtype.name]
    are_known = all(map(is_known, (windows.batch, *windows.image, *windows.spots)))
    if emitter.standalone is None:
        if _is_winograd(node, windows):
            windows = windows._replace(algorithm=convolutions.WINOGRAD)
        windows = convolutions.tuned(node.op.name, windows, suffix) if are_known else windows
    arguments = ["&windows", *(emitter.pointer(v) for v in node.inputs), emitter.name(value), *more]
    if emitter.standalone is not None:
        count = patch_elements(windows)
        arguments.append(emitter.scratch(count, value.dtype) if count != 0 else "0")
    emitter.line("{")
    emitter.line(f"    {'static ' if are_known else ''}const dy_windows windows = {windows.text()};")
    if before:
        emitter.line(f"    {before}")
    called = f"{_FUNCTIONS[node.op.name]}_{suffix if emitter.standalone is not None else windows.library(suffix)}"
    if windows.algorithm == convolutions.WINOGRAD and node.op.name == "conv_grad_weight":
        called = "dy_blocks_winograd_filters"
    elif windows.algorithm == convolutions.WINOGRAD:
        called = "dy_blocks_winograd"
        arguments.insert(1, str(int(node.op.name == "conv_transpose")))
    emitter.line(f"    if ({called}({', '.join(arguments)})) goto bail;")
    emitter.line("}")


def _is_winograd(node: Node, windows: Windows) -> bool:
    """Whether rules choose Winograd's algorithm; for images of usual sizes where only the run knows these."""
    (read, other), (made,) = node.inputs, node.outputs
    if not convolutions.may_winograd(node.op.name, windows, _SUFFIXES[made.dtype.name]):
        return False
    read_shape, other_shape, made_shape = [
        tuple([n if is_known(n) else evaluate(n, dict.fromkeys(n.symbols, _USUAL)) for n in v.shape]) for v in (read, other, made)]
    if node.op.name == "conv_grad_weight":
        return pays_for_filters(made_shape, other_shape, node.attrs["dilate"])
    out, in_, *kernel = other_shape
    taken = (in_, out, *kernel) if node.op.name == "conv_transpose" else other_shape
    return pays_to_turn(taken, read_shape, made_shape, node.attrs["dilate"])


def known_of(node: Node) -> Tuple[Size, ...]:
    """The sizes that have to be known: all but the number of images, and how large these are."""
    (x, other), (value,) = node.inputs, node.outputs
    return (x.shape[1], *(value if node.op.name == "conv_grad_weight" else other).shape)


def patch_elements(windows: Windows) -> Size:
    """How many elements of patches there are at a time without the library: `dy_patch_lines` rows of windows, or none."""
    _, _, in_, out, image, kernel, spots, stride, pad, *_ = windows
    is_image = math.prod(kernel) == math.prod(stride) == 1 and not any(pad) and image == spots
    if is_image or in_ * out <= _FEW:
        return 0
    depth, row, lines = in_ * math.prod(kernel), spots[-1] if spots else 1, math.prod(spots[:-1])
    if not is_known(row) or not is_known(lines):
        return maximum(_PATCH_SIZE, depth * (_PATCH_COLUMNS + row))         # no fewer than there are
    most = max(_PATCH_SIZE // (depth * row), -(-_PATCH_COLUMNS // row))
    return depth * row * -(-lines // -(-lines // most))


def _call(emitter: Emitter, node: Node) -> None:
    write(emitter, node, "", *(() if node.op.name == "conv_grad_weight" else ("0",)))


#: Ops by name.
CONVOLUTIONS: Dict[str, Rule] = dict.fromkeys(_FUNCTIONS, _call)


def takes(node: Node) -> bool:
    """Whether a node has few enough axes, elements at all, and dtypes that the functions are made for."""
    values = (*node.inputs, *node.outputs)
    return all(v.dtype.name in _SUFFIXES and 0 not in v.shape for v in values) and _windows(node).fits()


def types_in(text: str) -> List[str]:
    """The names of the libraries whose convolutions a text calls: suffixes of types, for depthwise filters with a word before."""
    return [name for name in convolutions.KERNELS if any(f"{function}_{name}(&windows" in text for function in _FUNCTIONS.values())]


def headers(text: str) -> str:
    """The lines of C in front of a text with such calls."""
    used = [name for name in convolutions.KERNELS if name in types_in(text) or name == "f32" and "dy_blocks_winograd" in text]
    return "".join(f"#define DY_WINDOWS_{name.upper()}\n" for name in used) + (
        f'#include "{convolutions.HEADER}"\n' if used else "") + (
        f'#include "{convolutions.POOLS}"\n' if any(name in text for name in _OF_POOLS) else "")
