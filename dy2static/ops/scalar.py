"""Ops on numbers that are not arrays, with Python's semantics for Python's kinds and NumPy's for NumPy scalars.

``int ** int`` is declared to be an int; a negative exponent gives a float at run time, as in Python, so whoever
builds such a node must know the sign.  None of these ops has a gradient: a number taken out of an array is cut off
from it, as ``float(x.array)`` is.
"""
from __future__ import annotations

import operator
from typing import Any, Callable, Dict

import numpy as np

from ..ir.dims import Size
from ..ir.onnx_forms import Form
from ..ir.op import OpDef, declare, sample
from ..ir.types import Extent, Scalar, Tensor, python_scalar, type_of
from ..library_facts.python import symbols
from .onnx_forms import arithmetic, bits
from .onnx_forms import scalars as forms
from .rules import canonical_dtype, need_scalar, need_tensor, normal_axis

#: Comparisons by their symbols.
COMPARISONS: Dict[str, Callable[[Any, Any], Any]] = {symbol: function for function, symbol in symbols("comparison").items()}


def _stand_in(x: Scalar) -> Any:
    """A number of this type: one, which every operation here takes."""
    return {"py_bool": True, "py_int": 1, "py_float": 1.0}.get(x.kind) or x.dtype.type(1)


def _as_python(function: Callable[..., Any]) -> Callable[..., Scalar]:
    """The type that the operation itself gives for numbers of these types."""
    def infer(*xs: Scalar, **attrs: Any) -> Scalar:
        need_scalar(*xs)
        return type_of(function(*map(_stand_in, xs)))      # type: ignore[return-value]
    return infer


_F, _I, _B, _N = 2.5, 3, True, np.float32(1.5)
_NUMBERS = (sample(_F, 2.0), sample(7, _I), sample(_I, _F), sample(_B, _B), sample(_N, _N), sample(-7, 2))


def _binary(name: str, symbol: str, function: Callable[[Any, Any], Any], onnx: Form, samples: Any = _NUMBERS) -> OpDef:
    return declare(
        name, "a b", kind="scalar", infer=_as_python(function), numpy=f"{{a}} {symbol} {{b}}", onnx=onnx, samples=samples,
    )


py_add = _binary("py_add", "+", operator.add, forms.of_numbers("Add"))
py_sub = _binary("py_sub", "-", operator.sub, forms.of_numbers("Sub"), _NUMBERS)
py_mul = _binary("py_mul", "*", operator.mul, forms.of_numbers("Mul"))
py_truediv = _binary("py_truediv", "/", operator.truediv, forms.of_numbers("Div"))
py_floordiv = _binary("py_floordiv", "//", operator.floordiv, forms.of_numbers(arithmetic.floor_divide))
py_mod = _binary("py_mod", "%", operator.mod, forms.of_numbers(arithmetic.remainder))
py_pow = _binary("py_pow", "**", operator.pow, forms.power_of_numbers, _NUMBERS[:-1])

py_neg = declare(
    "py_neg", "x", kind="scalar", infer=_as_python(operator.neg), numpy="-{x}",
    onnx=forms.of_numbers("Neg"),
    samples=(sample(_F), sample(_I), sample(_B), sample(_N)),
)

py_abs = declare(
    "py_abs", "x", kind="scalar", infer=_as_python(abs), numpy="abs({x})",
    onnx=forms.of_numbers("Abs"),
    samples=(sample(-_F), sample(-_I), sample(_B), sample(-_N)),
)


def _compare_infer(a: Scalar, b: Scalar, *, op: str) -> Scalar:
    need_scalar(a, b)
    return type_of(COMPARISONS[op](_stand_in(a), _stand_in(b)))      # type: ignore[return-value]


py_compare = declare(
    "py_compare", "a b", {"op": "=="}, kind="scalar", infer=_compare_infer, numpy="{a} {symbol} {b}",
    holes=lambda a, b, *, op: {"symbol": op},
    onnx=forms.compare,
    samples=tuple(sample(_F, _I, op=op) for op in COMPARISONS)
    + (sample(_N, 1.0, op=">"), sample(float("nan"), 1.0, op="!=")),
)

py_not = declare(
    "py_not", "x", kind="scalar", infer=lambda x: python_scalar("py_bool"), numpy="not {x}",
    onnx=forms.py_not,
    samples=(sample(_B), sample(0), sample(_F)),
)

_INTS = (sample(6, 3), sample(-7, 5), sample(_B, False), sample(False, False), sample(_B, 4))

py_and = _binary("py_and", "&", operator.and_, forms.of_numbers(bits.of_two("And")), _INTS)
py_or = _binary("py_or", "|", operator.or_, forms.of_numbers(bits.of_two("Or")), _INTS)
py_xor = _binary("py_xor", "^", operator.xor, forms.of_numbers(bits.of_two("Xor")), _INTS)
py_lshift = _binary("py_lshift", "<<", operator.lshift, forms.of_numbers(bits.left_shift), _INTS[:1] + _INTS[2:])
py_rshift = _binary("py_rshift", ">>", operator.rshift, forms.of_numbers(bits.right_shift), (*_INTS, sample(-7, 70)))

py_invert = declare(
    "py_invert", "x", kind="scalar", infer=_as_python(lambda x: ~int(x)), numpy="~{x}",
    onnx=forms.of_numbers(bits.bitwise_not),
    samples=(sample(6), sample(-7)),
)

#: A number of which the computation may fail: it is computed even if nothing reads it.
needed = declare(
    "needed", "x", kind="scalar", may_raise=True, infer=_as_python(lambda x: x), numpy="{x}",
    onnx=arithmetic.first,
    samples=(sample(_F), sample(_I), sample(_B)),
)


def _constant_infer(*, value: Any) -> Scalar:
    scalar = type_of(value)
    need_scalar(scalar)
    return scalar       # type: ignore[return-value]


py_constant = declare(
    "py_constant", "", {"value": 0}, kind="scalar", infer=_constant_infer, numpy="{value}",
    onnx=forms.py_constant,
    samples=(sample(value=3), sample(value=2.5), sample(value=True), sample(value=np.float32(0.1)),
             sample(value=-np.inf)),
)


def _conversion(name: str, kind: str) -> OpDef:
    def infer(x: Any) -> Scalar:
        if isinstance(x, Tensor) and isinstance(x.size, int) and x.size != 1:
            raise TypeError(f"only an array of size 1 is a number, not {x}")
        return python_scalar(kind)
    return declare(
        name, "x", kind="scalar", infer=infer, numpy=f"{kind[3:]}({{x}})", onnx=forms.converted,
        samples=(sample(()), sample(np.array(3)), sample(np.array(True)), sample(_F), sample(_I), sample(_N)),
    )


#: Python's ``bool(x)``, ``int(x)`` and ``float(x)`` of a number or an array of size 1.
py_bool = _conversion("py_bool", "py_bool")
py_int = _conversion("py_int", "py_int")
py_float = _conversion("py_float", "py_float")


def _item_infer(x: Any) -> Scalar:
    if isinstance(x, Tensor) and isinstance(x.size, int) and x.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    return type_of(x.dtype.type(1).item())      # type: ignore[return-value]


#: ``x.item()``: the Python number in an array of size 1 or a NumPy scalar.
item = declare(
    "item", "x", kind="scalar", infer=_item_infer, numpy="{x}.item()",
    onnx=forms.converted,
    samples=(sample(()), sample((1, 1)), sample(np.array(3)), sample(np.array([True])), sample(_N)),
)


def _tensor_to_scalar_infer(x: Tensor) -> Scalar:
    need_tensor(x)
    if x.ndim:
        raise TypeError(f"a 0-d array is needed, not {x}")
    return Scalar("numpy", x.dtype)


#: ``x[()]``: the NumPy scalar in a 0-d array.
tensor_to_scalar = declare(
    "tensor_to_scalar", "x", kind="scalar", infer=_tensor_to_scalar_infer, numpy="{x}[()]",
    onnx=arithmetic.first,
    samples=(sample(()), sample(np.array(3)), sample(np.array(True))),
)


def _scalar_to_tensor_infer(x: Scalar, *, dtype: np.dtype) -> Tensor:
    need_scalar(x)
    return Tensor((), dtype)


#: A number as a 0-d array.
scalar_to_tensor = declare(
    "scalar_to_tensor", "x", {"dtype": np.dtype("float32")}, kind="scalar", canonical=canonical_dtype,
    infer=_scalar_to_tensor_infer, numpy="np.asarray({x}, {dtype})",
    onnx=forms.converted,
    samples=(sample(_F), sample(_I), sample(_B), sample(_N)),
)


def _size_canonical(x: Tensor, *, axis: int) -> Dict[str, Any]:
    need_tensor(x)
    return {"axis": normal_axis(axis, x.ndim)}


#: ``x.shape[axis]`` as a Python int, where it is known at run time only.
size = declare(
    "size", "x", {"axis": 0}, kind="scalar", canonical=_size_canonical,
    infer=lambda x, *, axis: python_scalar("py_int"),
    numpy="{x}.shape[{axis}]",
    onnx=forms.size,
    samples=(sample((4, 3)), sample((4, 0), axis=-1)),
)

#: A size expression as a Python int.
dimension = declare(
    "dimension", "", {"size": 0}, kind="scalar", infer=lambda *, size: python_scalar("py_int"), numpy="{size}",
    onnx=forms.dimension,
    samples=(sample(size=4),),
)

#: The number that a symbol stands for at this place, for another place where the same symbol is to stand for it.
extent = declare("extent", "", {"size": None}, kind="scalar", infer=lambda *, size: Extent(str(size)), numpy="{size}")


def size_as_number(size: Size, dtype: np.dtype) -> Any:
    """A size to compute with: a float, or where only the run knows it a 0-d array of this dtype."""
    return float(size) if isinstance(size, int) else scalar_to_tensor(dimension(size=size), dtype=dtype)
