"""Comparisons and logic on each element, and selection by what they give."""
from __future__ import annotations

import numpy as np

from ..ir.onnx_forms import Form
from ..ir.op import OpDef, declare, sample
from ..ir.types import Tensor
from .onnx_forms import arithmetic
from .rules import c_by_kind, compared, elementwise, need_dtype, one_dtype, one_shape
from .samples import PAIR


def _mask_infer(x: Tensor, keep: Tensor) -> Tensor:
    one_shape(x, keep)
    need_dtype(keep, "b", "the mask")
    return x


#: ``x`` where ``keep`` holds, else ``x * 0``: what Chainer writes as ``gy * cond``, NaN and infinity included.
mask: OpDef = declare(
    "mask", "x keep", kind="elementwise", infer=_mask_infer,
    vjp=lambda g, y, x, keep: (mask(g, keep), None),
    numpy="np.multiply({x}, {keep}, out={out})",
    c=c_by_kind("{x} * d2s_pick_{s}({keep}, 1, 0)", "{x} * ({T}){keep}", "{x} && {keep}"),
    onnx=arithmetic.mask,
    samples=(sample((2, 3), np.array([[True, False, True], [False, True, True]])), sample((), np.array(True)),
             sample((0,), np.zeros(0, bool))),
)


def _where_infer(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    one_shape(condition, a, b)
    one_dtype(a, b)
    need_dtype(condition, "b", "the condition")
    return a


_PICK = "d2s_pick_{s}({condition}, {a}, {b})"               # without a branch: neither operand may wait for the condition

where: OpDef = declare(
    "where", "condition a b", kind="elementwise", infer=_where_infer,
    vjp=lambda g, y, condition, a, b: (None, where(condition, g, 0), where(condition, 0, g)),
    numpy="np.copyto({out}, {b})\nnp.copyto({out}, {a}, where={condition})",
    c=lambda types, result, attrs: _PICK if result.dtype.kind == "f" else "{condition} ? {a} : {b}",
    onnx=arithmetic.where_op,
    samples=(sample(np.array([[True, False, True], [False, True, True]]), (2, 3), (2, 3)),
             sample(np.array(True), (), ()), sample(np.zeros((0, 2), bool), (0, 2), (0, 2))),
)


def _comparison(name: str, ufunc: str, sign: str, onnx: Form) -> OpDef:
    plain = f"{{a}} {sign} {{b}}"
    quiet = plain if "equal" in (name, name[4:]) else f"is{name.replace('_', '')}({{a}}, {{b}})"    # no flag for NaN
    return declare(
        name, "a b", kind="elementwise", infer=compared,
        numpy=f"np.{ufunc}({{a}}, {{b}}, out={{out}})",
        c=c_by_kind(quiet, plain, plain),
        onnx=onnx,
        samples=PAIR + (sample(np.arange(3), np.array([0, 2, 1])),),
    )


greater = _comparison("greater", "greater", ">", "Greater")
greater_equal = _comparison("greater_equal", "greater_equal", ">=", "GreaterOrEqual")
less = _comparison("less", "less", "<", "Less")
less_equal = _comparison("less_equal", "less_equal", "<=", "LessOrEqual")
equal = _comparison("equal", "equal", "==", "Equal")
not_equal = _comparison("not_equal", "not_equal", "!=", arithmetic.not_equal)

_BOOLS = (sample(np.array([True, False, True]), np.array([True, True, False])), sample(np.array(True), np.array(False)))

logical_and = declare(
    "logical_and", "a b", kind="elementwise", infer=compared,
    numpy="np.logical_and({a}, {b}, out={out})",
    c="({a} != 0) & ({b} != 0)",
    onnx=arithmetic.logical("And"),
    samples=_BOOLS,
)

logical_or = declare(
    "logical_or", "a b", kind="elementwise", infer=compared,
    numpy="np.logical_or({a}, {b}, out={out})",
    c="({a} != 0) | ({b} != 0)",
    onnx=arithmetic.logical("Or"),
    samples=_BOOLS,
)

logical_not = declare(
    "logical_not", "x", kind="elementwise", infer=compared,
    numpy="np.logical_not({x}, out={out})",
    c="{x} == 0",
    onnx=arithmetic.logical("Not"),
    samples=(sample(np.array([True, False, True])), sample(np.array(True))),
)

isnan = declare(
    "isnan", "x", kind="elementwise", infer=elementwise(np.isnan),
    numpy="np.isnan({x}, out={out})",
    c=c_by_kind("{x} != {x}", "false", "false"),
    onnx=arithmetic.is_nan,
    samples=(sample(np.array([1.0, np.nan, np.inf])), sample(())),
)

isfinite = declare(
    "isfinite", "x", kind="elementwise", infer=elementwise(np.isfinite),
    numpy="np.isfinite({x}, out={out})",
    c=c_by_kind("isfinite_{t}({x})", "true", "true"),
    onnx=arithmetic.is_finite,
    samples=(sample(np.array([1.0, np.nan, np.inf])), sample(())),
)
