"""Operators on the bits of ints and bools; shifts by more bits than there are, and by fewer than none, as NumPy has them."""
from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

import numpy as np

from ..ir.onnx_forms import Form
from ..ir.op import OpDef, declare, sample
from ..ir.types import Type
from .onnx_forms import bits as forms
from .rules import elementwise

_A = np.array([[-128, -7, -1, 0], [1, 2, 100, 127]])
_B = np.array([[0, 1, 2, 3], [7, 8, 63, -1]])
_DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint32", "uint64")
_PAIRS = (*[sample(_A.astype(dtype), _B.astype(dtype)) for dtype in _DTYPES],
          sample(np.array(6), np.array(3)), sample(np.zeros((0, 2), np.int32), np.zeros((0, 2), np.int32)))
_BOOLS = (sample(np.array([True, True, False, False]), np.array([True, False, True, False])),)


def _of_two(name: str, ufunc: Callable[..., Any], c: Any, onnx: Form, samples: Any = _PAIRS) -> OpDef:
    return declare(
        name, "a b", kind="elementwise", infer=elementwise(ufunc), numpy=f"np.{name}({{a}}, {{b}}, out={{out}})", c=c, onnx=onnx,
        samples=samples,
    )


bitwise_and = _of_two("bitwise_and", np.bitwise_and, "{a} & {b}", forms.of_two("And"), _PAIRS + _BOOLS)
bitwise_or = _of_two("bitwise_or", np.bitwise_or, "{a} | {b}", forms.of_two("Or"), _PAIRS + _BOOLS)
bitwise_xor = _of_two("bitwise_xor", np.bitwise_xor, "{a} ^ {b}", forms.of_two("Xor"), _PAIRS + _BOOLS)

bitwise_not = declare(
    "bitwise_not", "x", kind="elementwise", infer=elementwise(np.invert),
    numpy="np.invert({x}, out={out})",
    c=lambda types, result, attrs: "!{x}" if result.dtype.kind == "b" else "~{x}",
    onnx=forms.bitwise_not,
    samples=(*[sample(_A.astype(dtype)) for dtype in _DTYPES], sample(np.array([True, False]))),
)


def _bits(result: Any) -> int:
    return 8 * int(result.dtype.itemsize)


def _left(types: Sequence[Type], result: Any, attrs: Mapping[str, Any]) -> str:
    bits = _bits(result)                                # of an unsigned int: signed ones have no bits beyond the sign in C
    return f"(uint64_t){{b}} < {bits} ? ({{T}})((uint{bits}_t){{a}} << {{b}}) : 0"


def _right(types: Sequence[Type], result: Any, attrs: Mapping[str, Any]) -> str:
    beyond = "{a} < 0 ? -1 : 0" if result.dtype.kind == "i" else "0"
    return f"(uint64_t){{b}} < {_bits(result)} ? {{a}} >> {{b}} : {beyond}"


left_shift = _of_two("left_shift", np.left_shift, _left, forms.left_shift)
right_shift = _of_two("right_shift", np.right_shift, _right, forms.right_shift)
