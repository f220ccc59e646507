"""Python's numbers in C: what would not fit, or would raise, goes to ``bail``, and Python computes it."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence

import numpy as np

from ...ir.c_forms import c_constant, c_type
from ...ir.graph import Node, Value
from ...ir.types import List as ListType
from ...ir.types import Scalar, Tensor, Type

_TYPES = {"py_bool": "bool", "py_int": "int64_t", "py_float": "double"}
_CHECKED = {"py_add": "__builtin_add_overflow", "py_sub": "__builtin_sub_overflow", "py_mul": "__builtin_mul_overflow"}
_SYMBOLS = {"py_add": "+", "py_sub": "-", "py_mul": "*"}


def scalar_type(type: Type) -> str:
    """The C type of a number."""
    if isinstance(type, ListType):
        return "dy_list"
    if isinstance(type, Scalar) and type.kind in _TYPES:
        return _TYPES[type.kind]
    return c_type(type.dtype)


def literal(number: Any, type: Type) -> str:
    """A number that is known, or a size, as a constant of a type."""
    if not isinstance(type, Scalar) or type.kind not in _TYPES:
        return c_constant(number, type.dtype)
    if isinstance(number, bool):
        return "1" if number else "0"
    if isinstance(number, float):
        return c_constant(number, np.dtype("float64"))
    if isinstance(number, int):
        return f"INT64_C({number})" if number >= 0 else f"(-INT64_C({-number}))"
    return str(number)


def enters_as_array(type: Type) -> bool:
    """Whether Python and C hand a value of this type to each other as an array: NumPy's scalars as those of no dimensions."""
    return isinstance(type, Tensor) or isinstance(type, Scalar) and type.kind == "numpy"


def is_number(value: Value) -> bool:
    """Whether a value is a C variable: a number, an array of no dimensions, a list."""
    return isinstance(value.type, (Scalar, ListType)) or isinstance(value.type, Tensor) and value.ndim == 0


def _plain(node: Node) -> bool:
    """Whether all numbers are Python's own."""
    return all(isinstance(v.type, Scalar) and v.type.kind in _TYPES for v in (*node.inputs, *node.outputs))


def _is_int(node: Node) -> bool:
    return node.outputs[0].type.kind == "py_int"


def _arithmetic(node: Node, operands: Sequence[str], result: str) -> List[str]:
    a, b = operands
    if _is_int(node):
        return [f"int64_t {result};", f"if ({_CHECKED[node.op.name]}((int64_t){a}, (int64_t){b}, &{result})) goto bail;"]
    return _define(node, result, f"(double){a} {_SYMBOLS[node.op.name]} (double){b}")


def _divided(node: Node, operands: Sequence[str], result: str) -> List[str]:
    """Quotients of ints beyond 2**53 would be rounded twice."""
    a, b = operands
    checks = [f"if ({b} == 0) goto bail;"]
    checks += [f"if ({x} > INT64_C(9007199254740992) || {x} < -INT64_C(9007199254740992)) goto bail;"
               for x, value in zip(operands, node.inputs) if value.type.kind == "py_int"]
    return [*checks, *_define(node, result, f"(double){a} / (double){b}")]


def _whole(node: Node, operands: Sequence[str], result: str) -> List[str]:
    a, b = operands
    function = "dy_floor_divide" if node.op.name == "py_floordiv" else "dy_modulo"
    if _is_int(node):
        return [f"if ({b} == 0 || ({b} == -1 && {a} == INT64_MIN)) goto bail;",
                f"const int64_t {result} = {function}((int64_t){a}, (int64_t){b});"]
    return ["goto bail;", f"double {result} = 0;"]


def _power(node: Node, operands: Sequence[str], result: str) -> List[str]:
    """What is no number, infinite or complex is Python's, and so are its errors."""
    a, b = operands
    if _is_int(node):
        return [f"int64_t {result};", f"if (dy_int_power((int64_t){a}, (int64_t){b}, &{result})) goto bail;"]
    return [*_define(node, result, f"dy_power((double){a}, (double){b})"), f"if (!isfinite({result})) goto bail;"]


def _negated(node: Node, operands: Sequence[str], result: str) -> List[str]:
    (x,) = operands
    check = [f"if ({x} == INT64_MIN) goto bail;"] if _is_int(node) else []
    return [*check, *_define(node, result, f"-({scalar_type(node.outputs[0].type)}){x}")]


def _absolute(node: Node, operands: Sequence[str], result: str) -> List[str]:
    (x,) = operands
    check = [f"if ({x} == INT64_MIN) goto bail;"] if _is_int(node) else []
    return [*check, *_define(node, result, f"{x} < 0 ? -{x} : {x}" if _is_int(node) else f"fabs({x})")]


def _compared(node: Node, operands: Sequence[str], result: str) -> List[str]:
    a, b = operands
    kinds = {v.type.kind for v in node.inputs}
    check: List[str] = []
    if kinds == {"py_int", "py_float"}:                         # C would round the int
        x = operands[0] if node.inputs[0].type.kind == "py_int" else operands[1]
        check = [f"if ({x} > INT64_C(9007199254740992) || {x} < -INT64_C(9007199254740992)) goto bail;"]
    return [*check, *_define(node, result, f"{a} {node.attrs['op']} {b}")]


def _to_int(node: Node, operands: Sequence[str], result: str) -> List[str]:
    (x,) = operands
    dtype = node.inputs[0].dtype
    if dtype.kind == "f":
        return [f"if (!({x} > -9.2e18 && {x} < 9.2e18)) goto bail;", *_define(node, result, f"(int64_t){x}")]
    check = [f"if ({x} > INT64_MAX) goto bail;"] if dtype.kind == "u" and dtype.itemsize == 8 else []
    return [*check, *_define(node, result, f"(int64_t){x}")]


def _item(node: Node, operands: Sequence[str], result: str) -> List[str]:
    return _to_int(node, operands, result) if _is_int(node) else _define(node, result, operands[0])


def _to_array(node: Node, operands: Sequence[str], result: str) -> List[str]:
    """Python ints that do not fit raise, or wrap with a warning."""
    (x,), dtype = operands, node.outputs[0].dtype
    lines = _define(node, result, f"({c_type(dtype)}){x}" if dtype.kind != "b" else f"{x} != 0")
    if dtype.kind in "iu" and node.inputs[0].type.dtype.kind == "i":
        lines.append(f"if ((int64_t){result} != (int64_t){x} || ({result} < 0) != ({x} < 0)) goto bail;")
    elif dtype.kind in "iu" and node.inputs[0].type.dtype.kind == "f":
        lines.insert(0, f"if (!({x} > -9e8 && {x} < 9e8)) goto bail;")
    return lines


def _within(node: Node, operands: Sequence[str], result: str) -> List[str]:
    """Python says what follows for a number outside."""
    (x,), dtype, attrs = operands, node.outputs[0].dtype, node.attrs
    if dtype.kind == "f":
        inside = f"({x} >= {attrs['least']!r} && {x} <= {attrs['greatest']!r})"
        return [f"if (!({inside}{'' if attrs['finite'] else f' || !isfinite({x})'})) goto bail;", *_define(node, result, x)]
    limits = np.iinfo(dtype)
    wanted = (("<", attrs["least"], attrs["least"] > limits.min), (">", attrs["greatest"], attrs["greatest"] < limits.max))
    ends = [f"{x} {sign} ({c_type(dtype)}){number}{'ULL' if number > 0 else 'LL'}" for sign, number, matters in wanted if matters]
    return [*([f"if ({' || '.join(ends)}) goto bail;"] if ends else []), *_define(node, result, x)]


def _define(node: Node, result: str, text: str) -> List[str]:
    return [f"const {scalar_type(node.outputs[0].type)} {result} = {text};"]


def _with_bits(node: Node, operands: Sequence[str], result: str) -> List[str]:
    sign = {"py_and": "&", "py_or": "|", "py_xor": "^"}[node.op.name]
    return _define(node, result, f"({operands[0]}) {sign} ({operands[1]})")


def _shifted(node: Node, operands: Sequence[str], result: str) -> List[str]:
    """Python raises for a negative count, and ints that grow have no end there."""
    a, b = operands
    if node.op.name == "py_rshift":
        return [f"if ({b} < 0) goto bail;", *_define(node, result, f"(int64_t){a} >> ({b} < 63 ? {b} : 63)")]
    return [f"int64_t {result};",
            f"if ({b} < 0 || {b} > 62 || __builtin_mul_overflow((int64_t){a}, INT64_C(1) << {b}, &{result})) goto bail;"]


_Rule = Callable[[Node, Sequence[str], str], List[str]]

#: Ops on numbers: lines of C that define the variable ``result``.
SCALARS: Dict[str, _Rule] = {
    **dict.fromkeys(_SYMBOLS, _arithmetic), "py_truediv": _divided, "py_floordiv": _whole, "py_mod": _whole, "py_pow": _power,
    "py_neg": _negated, "py_abs": _absolute, "py_compare": _compared,
    "py_not": lambda node, operands, result: _define(node, result, f"!({operands[0]})"),
    "needed": lambda node, operands, result: _define(node, result, operands[0]),
    **dict.fromkeys(("py_and", "py_or", "py_xor"), _with_bits), "py_lshift": _shifted, "py_rshift": _shifted,
    "py_invert": lambda node, operands, result: _define(node, result, f"~(int64_t)({operands[0]})"),
    "py_bool": lambda node, operands, result: _define(node, result, f"({operands[0]}) != 0"),
    "py_int": _to_int, "py_float": lambda node, operands, result: _define(node, result, f"(double)({operands[0]})"),
    "item": _item, "tensor_to_scalar": lambda node, operands, result: _define(node, result, operands[0]),
    "scalar_to_tensor": _to_array, "within": _within}

#: Those that also take NumPy's scalars and arrays of one element; the others take Python's own numbers.
CONVERSIONS = frozenset(("py_bool", "py_int", "py_float", "item", "scalar_to_tensor", "tensor_to_scalar", "within"))


def passes_on(node: Node) -> bool:
    """Whether a node gives the number that it is given, as the same type of C."""
    return node.op.name in ("scalar_to_tensor", "tensor_to_scalar") and \
        scalar_type(node.inputs[0].type) == scalar_type(node.outputs[0].type)


def has_scalar_form(node: Node) -> bool:
    """Whether C computes this node on numbers."""
    name = node.op.name
    if name not in SCALARS or name in ("py_floordiv", "py_mod") and not _is_int(node):
        return False
    if name in CONVERSIONS:
        return all(v.shape == () and v.dtype.kind in "biuf" and v.dtype.char != "e" for v in (*node.inputs, *node.outputs))
    return _plain(node)
