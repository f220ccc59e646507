"""Calls of NumPy on arrays of the graph, as ops, where an op does exactly that: the same dtype, the same memory rules."""
from __future__ import annotations

import operator
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np

from .. import ops
from ..ir.building import constant
from ..ir.graph import Value
from ..ir.op import OPS
from ..ir.types import Scalar, Tensor

#: ``rule(type, *args, **kwargs) -> Value | None``: emits ops for a call whose arrays are values, and whose result has
#: this type.  None declines.  A rule has no parameters but those that it heeds.
Rule = Callable[..., Optional[Value]]


def lower_numpy(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], type_: Any) -> Optional[Value]:
    """The result of a call of NumPy as a value of new ops; None where there is no such op.

    function: as in `Capture.numpy_call`.  type_: what NumPy gives.
    """
    rule = _rule_of(function)
    if rule is None or not _has_known_shape(type_) or any(map(_is_of_unknown_size, args)):
        return None
    try:
        return rule(type_, *args, **kwargs)
    except TypeError:                                   # arguments that the rule does not know
        return None


def _rule_of(function: Any) -> Optional[Rule]:
    if type(function) is tuple:
        return _OF_ARRAYS.get(function)
    try:
        return _RULES.get(function)
    except TypeError:
        return None


def _has_known_shape(type_: Any) -> bool:
    return isinstance(type_, Tensor) and all(isinstance(n, int) for n in type_.shape)


def _is_of_unknown_size(item: Any) -> bool:
    return isinstance(item, Value) and isinstance(item.type, Tensor) and not _has_known_shape(item.type)


def _operand(item: Any, dtype: np.dtype) -> Optional[Value]:
    """An array of this dtype, or a number of Python's that NumPy takes for one of this dtype."""
    if isinstance(item, Value):
        if isinstance(item.type, Tensor):
            return item if item.dtype == dtype else None
        is_python = isinstance(item.type, Scalar) and item.type.kind in ("py_float", "py_int")
        return OPS["scalar_to_tensor"](item, dtype=dtype) if is_python and dtype.kind == "f" else None
    if type(item) not in (int, float) or dtype.kind not in "fiu" or type(item) is float and dtype.kind != "f":
        return None
    if dtype.kind in "iu":
        return constant(item, dtype) if np.iinfo(dtype).min <= item <= np.iinfo(dtype).max else None
    with np.errstate(all="ignore"):
        number = dtype.type(item)
    return constant(number) if np.isfinite(number) or not np.isfinite(item) else None


def _operands(items: Sequence[Any], dtype: Optional[np.dtype] = None) -> Optional[Tuple[Value, ...]]:
    """All operands in the dtype of the first array; None if they do not fit."""
    arrays = [item for item in items if isinstance(item, Value) and isinstance(item.type, Tensor)]
    if not arrays or dtype is not None and arrays[0].dtype != dtype:
        return None
    found = [_operand(item, arrays[0].dtype) for item in items]
    return None if any(value is None for value in found) else tuple(found)      # type: ignore[arg-type]


def _elementwise(op: Any, kinds: str = "f") -> Rule:
    """The rule of a function that computes in the dtype of its result, to which NumPy casts its operands."""
    def rule(type_: Tensor, *args: Any) -> Optional[Value]:
        values = _operands([_widened(x, type_.dtype) for x in args], type_.dtype) if type_.dtype.kind in kinds else None
        return None if values is None else op(*values)
    return rule


def _widened(item: Any, dtype: np.dtype) -> Any:
    is_array = isinstance(item, Value) and isinstance(item.type, Tensor)
    narrow = is_array and item.dtype != dtype and item.dtype.kind in "fiu" and np.can_cast(item.dtype, dtype)
    return ops.cast(item, dtype=dtype) if narrow else item


def _comparison(op: Any) -> Rule:
    def rule(type_: Tensor, a: Any, b: Any) -> Optional[Value]:
        values = _operands((a, b))
        return None if values is None else op(*values)
    return rule


def _of_bools(op: Any) -> Rule:
    def rule(type_: Tensor, *args: Any) -> Optional[Value]:
        are_bools = all(isinstance(x, Value) and isinstance(x.type, Tensor) and x.dtype.kind == "b" for x in args)
        return op(*args) if are_bools else None
    return rule


def _astype(type_: Tensor, x: Value, dtype: Any, copy: bool = True) -> Optional[Value]:
    if x.dtype != type_.dtype:
        return ops.cast(x, dtype=type_.dtype)
    return ops.copy(x) if copy is True else ops.identity(x) if copy is False else None


def _copy(type_: Tensor, x: Value) -> Value:
    return ops.copy(x)


def _reshape(type_: Tensor, x: Value, *shape: Any) -> Value:
    return ops.reshape(x, shape=type_.shape)


def _getitem(type_: Tensor, x: Value, key: Any) -> Optional[Value]:
    entries = key if type(key) is tuple else (key,)
    return ops.getitem(x, index=entries) if all(map(_is_basic, entries)) else None


def _is_basic(entry: Any) -> bool:
    parts = (entry.start, entry.stop, entry.step) if type(entry) is slice else (entry,)
    return all(part is None or part is Ellipsis or type(part) is int for part in parts)


def _transpose(type_: Tensor, x: Value, *axes: Any) -> Optional[Value]:
    axes = axes[0] if len(axes) == 1 and type(axes[0]) in (tuple, list) else axes
    return ops.transpose(x, axes=tuple(axes) or None) if all(type(axis) is int for axis in axes) else None


def _reduction(op: Any) -> Rule:
    def rule(type_: Tensor, x: Value, axis: Any = None, keepdims: Any = False) -> Optional[Value]:
        axes = axis if type(axis) is tuple else () if axis is None else (axis,)
        is_plain = all(type(a) is int for a in axes) and type(keepdims) is bool
        return op(x, axis=axis, keepdims=keepdims) if is_plain else None
    return rule


def _full(value: Any) -> Rule:
    def rule(type_: Tensor, shape: Any, dtype: Any = None) -> Value:
        return ops.full(shape=type_.shape, value=value, dtype=type_.dtype)
    return rule


def _filled(type_: Tensor, shape: Any, fill_value: Any, dtype: Any = None) -> Optional[Value]:
    number = _operand(fill_value, type_.dtype) if type(fill_value) in (int, float) else None
    return None if number is None else ops.full(shape=type_.shape, value=fill_value, dtype=type_.dtype)


def _broadcast_to(type_: Tensor, x: Value, shape: Any) -> Value:
    return ops.broadcast_to(x, shape=type_.shape)


def _argument(op: Any) -> Rule:
    def rule(type_: Tensor, x: Value, axis: Any = None) -> Optional[Value]:
        return op(x, axis=axis) if type(axis) is int else None
    return rule


def fixed(call: Any) -> Optional[Value]:
    """A new array that holds what a call gives whose operands are all known: the same in every run.

    None for a large one, and for functions that may look at something else.
    """
    function = call.function
    if not isinstance(function, np.ufunc) and function not in _CREATING or _holds_objects([call.args, call.kwargs]):
        return None
    value = call()[0]
    is_plain = type(value) is np.ndarray and value.flags.c_contiguous and value.nbytes <= _MOST_BYTES
    return ops.copy(constant(value)) if is_plain else None


def _holds_objects(item: Any) -> bool:
    if type(item) in (list, tuple):
        return any(map(_holds_objects, item))
    if type(item) is dict:
        return any(map(_holds_objects, item.values()))
    return not isinstance(item, (int, float, str, type(None), type, np.dtype))


_CREATING = frozenset((np.arange, np.array, np.asarray, np.eye, np.identity, np.linspace, np.cumsum, np.repeat, np.tile,
                       np.zeros, np.ones, np.full, np.tri))

#: Larger arrays are made anew in every run, not kept in the program.
_MOST_BYTES = 1 << 16


def _joined(op: Any) -> Rule:
    def rule(type_: Tensor, arrays: Any, axis: Any = 0) -> Optional[Value]:
        values = _operands(arrays, type_.dtype) if type(arrays) in (tuple, list) and type(axis) is int else None
        same = values is not None and all(isinstance(x, Value) for x in arrays)
        return op(*values, axis=axis) if values is not None and same else None
    return rule


def _where(type_: Tensor, condition: Value, a: Any, b: Any) -> Optional[Value]:
    values = _operands((a, b), type_.dtype)
    return None if values is None or condition.dtype.kind != "b" else ops.where(condition, *values)


#: What writes into a whole array, as what its new contents are computed by.
IN_PLACE: Dict[Any, Any] = {operator.iadd: operator.add, operator.isub: operator.sub, operator.imul: operator.mul,
                            operator.itruediv: operator.truediv}

_ARITHMETIC = {ops.add: (operator.add, np.add), ops.sub: (operator.sub, np.subtract), ops.mul: (operator.mul, np.multiply)}
_OF_FLOATS = {
    ops.div: (operator.truediv, np.true_divide), ops.neg: (operator.neg, np.negative), ops.abs: (abs, operator.abs, np.abs),
    ops.maximum: (np.maximum,), ops.minimum: (np.minimum,), ops.exp: (np.exp,), ops.log: (np.log,), ops.sqrt: (np.sqrt,),
    ops.square: (np.square,), ops.sin: (np.sin,), ops.cos: (np.cos,), ops.tanh: (np.tanh,)}
_COMPARISONS = {
    ops.greater: (operator.gt, np.greater), ops.greater_equal: (operator.ge, np.greater_equal),
    ops.less: (operator.lt, np.less), ops.less_equal: (operator.le, np.less_equal),
    ops.equal: (operator.eq, np.equal), ops.not_equal: (operator.ne, np.not_equal)}
_BOOLS = {ops.logical_and: (operator.and_, np.logical_and), ops.logical_or: (operator.or_, np.logical_or),
          ops.logical_not: (operator.inv, np.logical_not)}

_RULES: Dict[Any, Rule] = {
    **{f: _elementwise(op, "fiu") for op, functions in _ARITHMETIC.items() for f in functions},
    **{f: _elementwise(op) for op, functions in _OF_FLOATS.items() for f in functions},
    **{f: _comparison(op) for op, functions in _COMPARISONS.items() for f in functions},
    **{f: _of_bools(op) for op, functions in _BOOLS.items() for f in functions},
    operator.getitem: _getitem, np.reshape: _reshape, np.transpose: _transpose, np.where: _where,
    np.zeros: _full(0), np.ones: _full(1), np.full: _filled, np.zeros_like: _full(0), np.ones_like: _full(1),
    np.concatenate: _joined(ops.concat), np.stack: _joined(ops.stack),
    np.broadcast_to: _broadcast_to, np.argmax: _argument(ops.argmax), np.argmin: _argument(ops.argmin),
    np.sum: _reduction(ops.sum), np.max: _reduction(ops.max), np.min: _reduction(ops.min)}

#: Methods and attributes of arrays.
_OF_ARRAYS: Dict[Tuple[str, str], Rule] = {
    ("method", "astype"): _astype, ("method", "copy"): _copy, ("method", "reshape"): _reshape, ("method", "transpose"): _transpose,
    ("method", "sum"): _reduction(ops.sum), ("method", "max"): _reduction(ops.max), ("method", "min"): _reduction(ops.min),
    ("method", "argmax"): _argument(ops.argmax), ("method", "argmin"): _argument(ops.argmin),
    ("attribute", "T"): _transpose}
