"""Shapes, joins, parts and new arrays as nodes of ONNX."""
from __future__ import annotations

from typing import Any, Sequence, Tuple

import numpy as np

from ...ir.dims import less
from ...ir.onnx_forms import Name, NotInOnnx, OnnxWriter
from ...ir.types import Tensor, Type


def axes(o: OnnxWriter, *numbers: int) -> Name:
    """Numbers of axes as the operand of an operator."""
    return o.constant(list(numbers), np.int64)


def reshaped(o: OnnxWriter, x: Name, shape: Sequence[Any]) -> Name:
    """The array in another shape, in which 0 is a size."""
    return o.node("Reshape", x, o.shape(shape), allowzero=1)


def reshape(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, *, shape: Sequence[Any]) -> Name:
    """The array in another shape."""
    return reshaped(o, x, shape)


def transpose(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, *, axes: Sequence[int]) -> Name:
    """The array with its axes in another order."""
    return o.node("Transpose", x, perm=list(axes)) if len(axes) > 1 else x


def pretransposed(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name) -> Name:
    """A matrix transposed."""
    return o.node("Transpose", x, perm=[1, 0])


def broadcast_to(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, *, shape: Sequence[Any]) -> Name:
    """The array repeated."""
    return o.node("Expand", x, o.shape(shape))


def concat(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], *xs: Name, axis: int) -> Name:
    """Arrays one behind the other."""
    return o.node("Concat", *xs, axis=axis)


def stack(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], *xs: Name, axis: int) -> Name:
    """Arrays along a new axis."""
    return o.node("Concat", *(o.node("Unsqueeze", x, axes(o, axis)) for x in xs), axis=axis)


def split(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, *, sizes: Sequence[Any],
          axis: int) -> Tuple[Name, ...]:
    """Consecutive parts."""
    return o.nodes("Split", (x, o.shape(sizes)), [o.dtype(x)] * len(sizes), axis=axis)


def unstack(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, *, axis: int) -> Tuple[Name, ...]:
    """Every ``x[..., i, ...]``."""
    return tuple(o.node("Gather", x, o.constant(i, np.int64), axis=axis) for i in range(len(results)))


def pad(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], x: Name, *, width: Sequence[Tuple[int, int]], mode: str,
        keywords: Sequence[Tuple[str, Any]]) -> Name:
    """The array with a border."""
    given = dict(keywords)
    fill = given.pop("constant_values", 0)
    if mode not in ("constant", "edge", "reflect") or given.get("reflect_type", "even") != "even" or np.ndim(fill):
        raise NotInOnnx(f"ONNX has no border of mode {mode!r} with {sorted(dict(keywords))}")
    if mode == "reflect" and any(max(pair) and not _is_longer(n, max(pair)) for n, pair in zip(types[0].shape, width)):
        raise NotInOnnx("ONNX reflects less than the whole of an axis")
    widths = o.constant([before for before, _ in width] + [behind for _, behind in width], np.int64)
    return o.node("Pad", x, widths, *((o.like(fill, x),) if mode == "constant" else ()), mode=mode)


def _is_longer(size: Any, count: int) -> bool:
    """Whether a size is known to be larger: also where it may be one less than when it was captured."""
    return bool(less(count, size if isinstance(size, int) else size - 1))


# New arrays -----------------------------------------------------------------------------------------------------


def constant(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], *, value: np.ndarray) -> Name:
    """An array known at compile time."""
    return o.constant(value)


def filled(o: OnnxWriter, value: Any, dtype: Any, shape: Sequence[Any]) -> Name:
    """An array full of one number."""
    return o.node("Expand", o.constant(value, dtype), o.shape(shape))


def full(o: OnnxWriter, types: Sequence[Type], results: Sequence[Any], *, shape: Sequence[Any], value: Any, dtype: Any) -> Name:
    """An array full of one number."""
    return filled(o, value, dtype, shape)


def arange(o: OnnxWriter, types: Sequence[Type], results: Sequence[Tensor], *, start: Any, stop: Any, step: Any,
           dtype: Any) -> Name:
    """Numbers at equal distances."""
    if all(isinstance(n, int) for n in results[0].shape):
        return o.constant(np.arange(start, stop, step, dtype))
    return o.cast(o.node("Range", *map(o.size, (start, stop, step))), dtype)


def random(kind: str) -> Any:
    """Draws of ONNX's generator: not those of NumPy's."""
    def rule(o: OnnxWriter, types: Sequence[Type], results: Sequence[Any], *, shape: Sequence[Any], **bounds: float) -> Name:
        like = filled(o, 0, np.float32, shape)
        drawn = o.node(f"Random{kind}Like", like, **bounds)
        return o.cast(drawn, results[0].dtype)
    return rule


def fast_kept(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], *, ratio: float, shape: Sequence[Any]) -> Name:
    """Where a uniform number is not below ``ratio``."""
    drawn = o.node("RandomUniformLike", filled(o, 0, np.float32, shape))
    return o.node("GreaterOrEqual", drawn, o.like(ratio, drawn))


def nothing_to_do(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type]) -> Tuple[Name, ...]:
    """No node."""
    return ()


def matmul(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], a: Name, b: Name, *, transa: bool, transb: bool) -> Name:
    """The product of matrices, or of stacks of them."""
    if types[0].ndim == 2 and o.dtype(a).kind == "f":
        return o.node("Gemm", a, b, transA=int(transa), transB=int(transb))

    def turned(x: Name, turn: bool) -> Name:
        order = [*range(types[0].ndim - 2), types[0].ndim - 1, types[0].ndim - 2]
        return o.node("Transpose", x, perm=order) if turn else x
    return o.node("MatMul", turned(a, transa), turned(b, transb))


def product_of_stacks(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], a: Name, b: Name) -> Name:
    """The sum of ``x.T @ y`` over the items of two stacks."""
    rows = [reshaped(o, x, (-1, type_.elem.shape[-1])) for x, type_ in zip((a, b), types)]
    return o.node("Gemm", *rows, transA=1, transB=0)


def fft(o: OnnxWriter, types: Sequence[Any], results: Sequence[Type], real: Name, imaginary: Name, *,
        inverse: bool) -> Tuple[Name, ...]:
    """The Fourier transform along the last axis, its parts apart."""
    ndim = types[0].ndim
    if inverse:                                         # by the transform of the conjugate: onnxruntime's inverse is less exact
        imaginary = o.node("Neg", imaginary)
    parts = [o.node("Unsqueeze", x, axes(o, ndim)) for x in (real, imaginary)]
    both = o.node("Concat", *parts, axis=ndim)
    lead = ndim == 1
    if lead:                                            # the operator has an axis for the batch
        both = o.node("Unsqueeze", both, axes(o, 0))
    if o.opset >= 20:
        both = o.node("DFT", both, "", o.constant(ndim - 1 + lead, np.int64))
    else:
        both = o.node("DFT", both, axis=ndim - 1 + lead)
    both = o.node("Squeeze", both, axes(o, 0)) if lead else both
    found = [o.node("Gather", both, o.constant(k, np.int64), axis=ndim) for k in (0, 1)]
    if inverse:
        count = o.cast(o.size(types[0].shape[-1]), o.dtype(real))
        found = [o.node("Div", found[0], count), o.node("Neg", o.node("Div", found[1], count))]
    return tuple(found)


def weighted_take(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, indices: Name, weights: Name) -> Name:
    """Sums of weighted columns."""
    return o.reduce("ReduceSum", o.node("Mul", o.node("Gather", x, indices, axis=1), weights), (1,))


def placeholder(o: OnnxWriter, dtype: Any, ndim: int) -> Name:
    """A value that is never read."""
    return o.constant(np.zeros((0,) * ndim, dtype))
