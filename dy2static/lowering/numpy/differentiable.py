"""Calls of NumPy as ops that have gradients: for calls that stay calls where they are computed, and whose gradient is asked for.

What these ops compute is only read by gradients.  The formulas are those of the ops: of the inverse and the determinant, and of
solutions by way of the inverse, M. Giles, Collected matrix derivative results for forward and reverse mode algorithmic
differentiation (2008), 2.2; of the Cholesky factor, I. Murray, Differentiation of the Cholesky decomposition (2016), for
symmetric changes.
"""
from __future__ import annotations

import functools
import math
import operator
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ... import ops
from ...ir.building import constant
from ...ir.graph import Node, Value
from ...ir.types import Tensor
from ...runtime.array_writes import write_at, write_at_checked
from ...runtime.host_calls import Call, Hole, fill
from ..host import checked_call, numpy_call
from .legalize import by_rule, key_of
from .operands import as_arrays, has_known_shape, is_array
from .table import Row, found
from .writes import fitting


def differentiable(node: Node) -> Optional[List[Node]]:
    """Nodes that compute the same as a call of NumPy, of ops with gradients; None where there are none."""
    return by_rule(node, _lowered)


def _lowered(call: Call, inputs: Sequence[Value], wanted: Tensor) -> Optional[Value]:
    function = key_of(call.function)
    row = found(_RULES, function)
    if row is None or not has_known_shape(wanted):
        return None
    operands = inputs if row.takes_numbers else as_arrays(inputs, wanted)
    args, kwargs = fill(call.args, operands), fill(call.kwargs, operands)
    if not all(map(has_known_shape, [value.type for value in operands if is_array(value)])):
        return None
    try:
        return row.rule(wanted, *args, **kwargs)        # type: ignore[no-any-return]
    except TypeError:                                   # arguments that the rule does not know
        return None


# Matrices -----------------------------------------------------------------------------------------------------------------


def _solution(wanted: Tensor, a: Value, b: Value) -> Optional[Value]:
    if a.ndim == 2 and b.ndim == 1:
        return ops.reshape(ops.matmul(ops.inv(a), ops.reshape(b, shape=(*b.shape, 1))), shape=b.shape)
    return ops.matmul(ops.inv(a), b) if a.ndim == b.ndim and a.shape[:-2] == b.shape[:-2] else None


def _factor(wanted: Tensor, a: Value) -> Optional[Value]:
    return ops.cholesky(a) if a.ndim == 2 else None


# Writes -------------------------------------------------------------------------------------------------------------------


def _written(write: Callable[..., Any], wanted: Tensor, contents: Value, steps: Tuple, function: Any, args: Tuple,
             kwargs: Dict[str, Any]) -> Optional[Value]:
    """Item assignment: each element is what it was, or one of those that are stored: the same assignment of numbers tells which."""
    if function is not operator.setitem or kwargs:
        return None
    index, given = args
    item = fitting(given, contents.dtype)
    if item is None or not has_known_shape(item.type) or item.dtype != contents.dtype:
        return None
    count = math.prod(item.shape)

    def assigned(old: Any, new: Any) -> Value:
        """What the assignment makes of an array of these numbers."""
        operands: List[Value] = []
        given = _template((constant(np.full(wanted.shape, old)), steps, function, (index, new), {}), operands)
        call = Call(write, given, {}, lambda result: [result], write.__name__, single=True)
        op = checked_call if write is write_at_checked else numpy_call
        made: Value = op(*operands, call=call, types=(Tensor(wanted.shape, np.asarray(old).dtype),))
        return made
    mask = assigned(False, True)
    if count == 1:
        stored = ops.broadcast_to(ops.reshape(item, shape=()), shape=wanted.shape)
    else:
        places = assigned(0, constant(np.arange(count).reshape(item.shape)))
        stored = ops.take(ops.reshape(item, shape=(count,)), places, axis=0)
    return ops.where(mask, stored, contents)


def _template(item: Any, operands: List[Value]) -> Any:
    """Arguments with holes in place of values, which ``operands`` gets."""
    if isinstance(item, Value):
        operands.append(item)
        return Hole(len(operands) - 1)
    if type(item) in (tuple, list):
        return type(item)([_template(part, operands) for part in item])
    if type(item) is slice:
        return slice(*[_template(part, operands) for part in (item.start, item.stop, item.step)])
    if type(item) is dict:
        return {name: _template(part, operands) for name, part in item.items()}
    return item


_ROWS: Tuple[Row, ...] = (
    Row(lambda wanted, a: ops.inv(a), (np.linalg.inv,), is_exact=False),
    Row(lambda wanted, a: ops.det(a), (np.linalg.det,), is_exact=False),
    Row(_solution, (np.linalg.solve,), is_exact=False),
    Row(_factor, (np.linalg.cholesky,), is_exact=False),
    Row(functools.partial(_written, write_at), (write_at,), is_exact=False, takes_numbers=True),
    Row(functools.partial(_written, write_at_checked), (write_at_checked,), is_exact=False, takes_numbers=True),
)
_RULES: Dict[Any, Row] = {key: row for row in _ROWS for key in row.callables}
