"""Calls of NumPy that the capture kept as they are, as ops that C knows; their twin still makes the very call."""
from __future__ import annotations

import operator
import weakref
from dataclasses import replace
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np

from ...ir.building import Builder, building, constant
from ...ir.graph import Node, Value
from ...ir.types import Scalar, Tensor
from ...lowering.host import Call, fill
from ...lowering.numpy_calls import lower_numpy
from ...ops import scalar
from ...ops.scalar import scalar_to_tensor, tensor_to_scalar
from .functions import item_at, rule_for

_known: "weakref.WeakKeyDictionary[Node, Optional[List[Node]]]" = weakref.WeakKeyDictionary()


def call_as_ops(node: Node) -> Optional[List[Node]]:
    """Nodes that compute the same as a ``numpy_call`` or ``checked_call``; None where there are none."""
    if node not in _known:
        _known[node] = _as_ops(node)
    return _known[node]


def _as_ops(node: Node) -> Optional[List[Node]]:
    call, (value, *others) = node.attrs["call"], node.outputs
    type_ = value.type
    if not others and isinstance(type_, Scalar) and type_.kind != "numpy":
        return _of_numbers(node)
    is_number = isinstance(type_, Scalar) and type_.kind == "numpy"
    if others or not is_number and not isinstance(type_, Tensor) or type_.dtype.kind not in "biuf":
        return None
    builder = Builder("call")
    builder.loc = node.loc
    wanted = Tensor((), type_.dtype) if is_number else type_
    with building(builder):
        result = _lowered(call, node.inputs, wanted)
        if result is None or result.type != wanted or result not in {v for n in builder.nodes for v in n.outputs}:
            return None
        if is_number:
            result = tensor_to_scalar(result)
    return [replace(new, outputs=tuple(value if v is result else v for v in new.outputs)) for new in builder.nodes]


def _lowered(call: Call, inputs: Sequence[Value], wanted: Tensor) -> Optional[Value]:
    function = _key(call.function)
    if function is operator.getitem:
        return item_at(*fill(call.args, inputs))
    rule = rule_for(call, function)
    if rule is not None:
        operands = inputs if hasattr(call.function, "in_place") or isinstance(function, type) else _as_arrays(inputs, wanted)
        try:
            return rule(wanted, *fill(call.args, operands), **fill(call.kwargs, operands))
        except TypeError:                                      # arguments that the rule does not know
            return None
    operands = _as_arrays(inputs, wanted)
    args = tuple(constant(x) if isinstance(x, np.generic) else x for x in fill(call.args, operands))
    return lower_numpy(function, args, fill(call.kwargs, operands), wanted)


def _of_numbers(node: Node) -> Optional[List[Node]]:
    """Arithmetic and comparisons of Python's numbers."""
    call, (value,) = node.attrs["call"], node.outputs
    rule = None if call.kwargs or getattr(call.function, "__hash__", None) is None else _NUMBER_RULES.get(call.function)
    if rule is None:
        return None
    builder = Builder("call")
    builder.loc = node.loc
    with building(builder):
        operands = [_as_number(item) for item in fill(call.args, node.inputs)]
        if any(x is None for x in operands):
            return None
        result = rule(*operands)
    if result.type != value.type:
        return None
    return [replace(new, outputs=tuple(value if v is result else v for v in new.outputs)) for new in builder.nodes]


def _as_number(item: Any) -> Optional[Value]:
    if isinstance(item, Value):
        return item if isinstance(item.type, Scalar) and item.type.kind != "numpy" else None
    return scalar.py_constant(value=item) if type(item) in (bool, int, float) else None


def _comparison(symbol: str) -> Callable[..., Value]:
    return lambda a, b: scalar.py_compare(a, b, op=symbol)


_NUMBER_RULES: Dict[Any, Callable[..., Value]] = {
    operator.add: scalar.py_add, operator.sub: scalar.py_sub, operator.mul: scalar.py_mul,
    operator.truediv: scalar.py_truediv, operator.floordiv: scalar.py_floordiv, operator.mod: scalar.py_mod,
    operator.neg: scalar.py_neg, operator.not_: scalar.py_not, abs: scalar.py_abs, bool: scalar.py_bool,
    int: scalar.py_int, float: scalar.py_float,
    operator.lt: _comparison("<"), operator.le: _comparison("<="), operator.gt: _comparison(">"),
    operator.ge: _comparison(">="), operator.eq: _comparison("=="), operator.ne: _comparison("!=")}


def _key(function: Any) -> Any:
    """How `lower_numpy` names a method or an attribute of arrays."""
    for kind in ("method", "attribute"):
        name = getattr(function, kind, None)
        if isinstance(name, str):
            return kind, name
    return function


def _as_arrays(values: Sequence[Value], wanted: Tensor) -> List[Value]:
    """The operands with numbers as arrays: Python's take the dtype of the result, or of the first array where they are compared.

    They stay numbers where they are of a greater kind than that.
    """
    arrays = [_as_array(v) for v in values]
    dtype = next((v.dtype for v in arrays if isinstance(v.type, Tensor)), None)
    if dtype is not None and wanted.dtype.kind in "iuf" and np.can_cast(dtype, wanted.dtype):
        dtype = wanted.dtype
    kinds = {"py_int": "iuf", "py_float": "f"}
    return [scalar_to_tensor(v, dtype=dtype) if dtype is not None and isinstance(v.type, Scalar)
            and dtype.kind in kinds.get(v.type.kind, "") else v for v in arrays]


def _as_array(value: Value) -> Value:
    is_number = isinstance(value.type, Scalar) and value.type.kind == "numpy" and value.dtype.kind in "biuf"
    return scalar_to_tensor(value, dtype=value.dtype) if is_number else value
