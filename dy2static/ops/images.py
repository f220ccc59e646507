"""Padding, and values between the elements of an image."""
from __future__ import annotations

from typing import Any, Dict, Tuple

from ..ir.op import OpDef, declare, sample
from ..ir.shapes import show
from ..ir.template import attr_source
from ..ir.types import Tensor
from .onnx_forms import movement
from .rules import need_dtype
from .slicing import getitem


def _pad_infer(x: Tensor, *, width: Tuple[Tuple[int, int], ...], mode: str, keywords: Tuple[Tuple[str, Any], ...]) -> Tensor:
    if len(width) != x.ndim or any(n < 0 for pair in width for n in pair):
        raise ValueError(f"the widths {width} do not fit an array of shape {show(x.shape)}")
    return Tensor(tuple(before + n + after for n, (before, after) in zip(x.shape, width)), x.dtype)


def _pad_vjp(g, y, x, *, width, mode, keywords):
    # as Chainer: whatever the border was made of, it passes nothing on
    return (getitem(g, index=tuple(slice(before, before + n) for n, (before, _) in zip(x.shape, width))),)


#: ``x`` with a border, made as NumPy makes it.  width: before and behind, for each axis.
pad: OpDef = declare(
    "pad", "x", {"width": (), "mode": "constant", "keywords": ()}, kind="movement", infer=_pad_infer, vjp=_pad_vjp,
    numpy="np.pad({x}, {width}, mode={mode}{options})",
    holes=lambda x, *, width, mode, keywords: {
        "options": "".join(f", {name}={attr_source(value)}" for name, value in keywords)},
    onnx=movement.pad,
    samples=(sample((2, 3), width=((1, 0), (0, 2)), keywords=(("constant_values", 1.5),)),
             sample((0, 3), width=((1, 1), (0, 0))), sample((1,), width=((0, 2),))),
)


def _weighted_take_infer(x: Tensor, indices: Tensor, weights: Tensor) -> Tensor:
    need_dtype(indices, "iu", "an index")
    if x.ndim != 2 or weights.ndim != 2 or indices.shape != weights.shape or x.dtype != weights.dtype:
        raise ValueError(f"indices and weights do not fit: {x} {indices} {weights}")
    return Tensor((x.shape[0], weights.shape[1]), x.dtype)


#: ``y[i, k]``: the sum over ``j`` of ``weights[j, k] * x[i, indices[j, k]]``.  The weights are taken for constants.
weighted_take: OpDef = declare(
    "weighted_take", "x indices weights", kind="contraction", may_raise=True, infer=_weighted_take_infer,
    vjp=lambda g, y, x, indices, weights: (weighted_add(g, indices, weights, size=x.shape[1]), None, None),
    numpy='np.einsum("ijk,jk->ik", {x}[:, {indices}], {weights}, out={out})',
    cupy='np.copyto({out}, np.einsum("ijk,jk->ik", {x}[:, {indices}], {weights}))',
    onnx=movement.weighted_take,
)


def _weighted_add_infer(x: Tensor, indices: Tensor, weights: Tensor, *, size: Any) -> Tensor:
    if _weighted_take_infer(Tensor((x.shape[0], size), x.dtype), indices, weights).shape != x.shape:
        raise ValueError(f"indices and weights do not fit: {x} {indices} {weights}")
    return Tensor((x.shape[0], size), x.dtype)


def _weighted_add_holes(x: Tensor, indices: Tensor, weights: Tensor, *, size: Any) -> Dict[str, str]:
    rows = attr_source(x.shape[0])
    return {"places": f"(np.arange({rows}).reshape(-1, 1, 1) * {{size}} + {{indices}}).ravel()",
            "shares": "({x}.reshape(" + f"{rows}, 1, -1) * {{weights}}).ravel()", "whole": f"{rows} * {{size}}"}


#: Zeros with ``size`` columns, each ``weights[j, k] * x[i, k]`` added at ``[i, indices[j, k]]``: the derivative of
#: `weighted_take`.  Sums are taken in double precision.
weighted_add: OpDef = declare(
    "weighted_add", "x indices weights", {"size": 1}, kind="contraction", infer=_weighted_add_infer,
    vjp=lambda g, y, x, indices, weights, *, size: (weighted_take(g, indices, weights), None, None),
    numpy="np.copyto({out}, np.bincount({places}, {shares}, {whole}).reshape({out}.shape), casting=\"unsafe\")",
    holes=_weighted_add_holes,
)
