"""Which callable of NumPy has which rule: the one table of its lowerings."""
from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np

from ... import ops
from ...ir.building import constant
from ...ir.graph import Value
from ...library_facts import numpy as numpy_facts
from ...library_facts.table import members
from ...ops import scalar
from ...runtime.functions import real_power
from ...runtime.host_calls import Call
from . import along_axes, elements, exact, on_request, orders, products, rearranged
from .exact import Rule
from .membership import in_array
from .operands import has_known_shape, is_of_unknown_size
from .selections import selection
from .writes import written


@dataclass(frozen=True)
class Row:
    """How callables are said in ops.

    callables: functions, and of arrays ``("method", name)`` and ``("attribute", name)``.
    is_exact: the ops do what the call does, to the last bit and with the same memory.  Otherwise the last bits may differ, or the
        call becomes several nodes: only where a backend asks for it.
    takes_numbers: the rule knows numbers that are no arrays; others get 0-d arrays for them.
    """

    rule: Rule
    callables: Tuple[Any, ...]
    is_exact: bool = True
    takes_numbers: bool = False


def _row(rule: Rule, *callables: Any, **rest: bool) -> Row:
    return Row(rule, callables, **rest)


def _asked(rule: Rule, *callables: Any, **rest: bool) -> Row:
    return Row(rule, callables, is_exact=False, **rest)


def _method(name: str) -> Tuple[str, str]:
    return "method", name


ROWS: Tuple[Row, ...] = (
    # arithmetic
    _row(exact.elementwise(ops.add, "fiu"), operator.add, np.add),
    _row(exact.elementwise(ops.sub, "fiu"), operator.sub, np.subtract),
    _row(exact.elementwise(ops.mul, "fiu"), operator.mul, np.multiply),
    _row(exact.elementwise(ops.div), operator.truediv, np.true_divide),
    _row(exact.elementwise(ops.neg, "fi"), operator.neg, np.negative),
    _row(exact.elementwise(ops.abs, "fi"), abs, operator.abs, np.abs),
    _row(exact.elementwise(ops.maximum, "fiu"), np.maximum),
    _row(exact.elementwise(ops.minimum, "fiu"), np.minimum),
    _row(exact.elementwise(ops.exp), np.exp),
    _row(exact.elementwise(ops.log), np.log),
    _row(exact.elementwise(ops.sqrt), np.sqrt),
    _row(exact.elementwise(ops.square), np.square),
    _row(exact.elementwise(ops.sin), np.sin),
    _row(exact.elementwise(ops.cos), np.cos),
    _row(exact.elementwise(ops.tanh), np.tanh),
    *(_asked(elements.in_result_dtype(getattr(ops, name)), getattr(np, name)) for name in (
        "arccos", "arcsin", "arctan", "arctan2", "cbrt", "ceil", "cosh", "exp2", "expm1", "floor", "log10", "log1p", "log2",
        "logaddexp", "rint", "sinh", "tan", "trunc")),
    _asked(elements.in_result_dtype(ops.sign, "fi"), np.sign),
    _asked(elements.in_result_dtype(elements.negated, "u"), operator.neg, np.negative),
    _asked(elements.in_result_dtype(ops.copy, "u"), abs, operator.abs, np.abs),
    _asked(elements.in_result_dtype(ops.arctanh), np.arctanh),
    _asked(elements.in_result_dtype(ops.abs), np.fabs),
    _asked(elements.rounded, np.round, np.around, _method("round")),
    _asked(elements.in_result_dtype(elements.reciprocal), np.reciprocal),
    _asked(elements.in_result_dtype(elements.hypot), np.hypot),
    _asked(elements.in_result_dtype(elements.heaviside), np.heaviside),
    _asked(elements.in_result_dtype(elements.sinc), np.sinc),
    _asked(elements.in_result_dtype(elements.multiplied(math.pi / 180)), np.radians, np.deg2rad),
    _asked(elements.in_result_dtype(elements.multiplied(180 / math.pi)), np.degrees, np.rad2deg),
    *(_asked(elements.in_result_dtype(op, "fiu"), *callables) for op, callables in (
        (ops.add, (operator.add, np.add)), (ops.sub, (operator.sub, np.subtract)), (ops.mul, (operator.mul, np.multiply)),
        (ops.maximum, (np.maximum,)), (ops.minimum, (np.minimum,)))),
    _asked(elements.in_result_dtype(ops.div), operator.truediv, np.true_divide),
    _asked(on_request.divided(ops.floor_divide), operator.floordiv, np.floor_divide),
    _asked(on_request.divided(ops.remainder), operator.mod, np.remainder),
    _asked(on_request.divided(ops.fmod), np.fmod),
    _asked(on_request.power, operator.pow, np.power),
    _asked(on_request.fixed, np.positive, np.bool_),
    # comparisons and truths
    _row(exact.comparison(ops.greater), operator.gt, np.greater),
    _row(exact.comparison(ops.greater_equal), operator.ge, np.greater_equal),
    _row(exact.comparison(ops.less), operator.lt, np.less),
    _row(exact.comparison(ops.less_equal), operator.le, np.less_equal),
    _row(exact.comparison(ops.equal), operator.eq, np.equal),
    _row(exact.comparison(ops.not_equal), operator.ne, np.not_equal),
    _row(exact.of_bools(ops.logical_and), operator.and_, np.logical_and),
    _row(exact.of_bools(ops.logical_or), operator.or_, np.logical_or),
    _row(exact.of_bools(ops.logical_not), operator.inv, operator.invert, np.logical_not),
    _row(exact.where, np.where),
    *(_asked(elements.compared(op), *callables) for op, callables in (
        (ops.greater, (operator.gt, np.greater)), (ops.greater_equal, (operator.ge, np.greater_equal)),
        (ops.less, (operator.lt, np.less)), (ops.less_equal, (operator.le, np.less_equal)),
        (ops.equal, (operator.eq, np.equal)), (ops.not_equal, (operator.ne, np.not_equal)))),
    _asked(elements.of_truths(ops.logical_and), np.logical_and),
    _asked(elements.of_truths(ops.logical_or), np.logical_or),
    _asked(elements.of_truths(ops.logical_not), np.logical_not),
    _asked(elements.of_truths(ops.not_equal), np.logical_xor),
    _asked(elements.of_bits(ops.logical_and, ops.bitwise_and), operator.and_, np.bitwise_and),
    _asked(elements.of_bits(ops.logical_or, ops.bitwise_or), operator.or_, np.bitwise_or),
    _asked(elements.of_bits(ops.not_equal, ops.bitwise_xor), operator.xor, np.bitwise_xor),
    _asked(elements.of_bits(ops.logical_not, ops.bitwise_not), operator.inv, operator.invert, np.invert),
    _asked(elements.in_result_dtype(ops.left_shift, "iu"), operator.lshift, np.left_shift),
    _asked(elements.in_result_dtype(ops.right_shift, "iu"), operator.rshift, np.right_shift),
    _asked(elements.tested(ops.isnan), np.isnan),
    _asked(elements.tested(ops.isfinite), np.isfinite),
    _asked(elements.tested(elements.isinf), np.isinf),
    _asked(elements.nan_to_num, np.nan_to_num),
    _asked(elements.chosen(ops.greater), max),
    _asked(elements.chosen(ops.less), min),
    _asked(elements.where, np.where),
    _asked(elements.selected, np.select),
    _asked(elements.among, np.isin),
    _asked(in_array, operator.contains),
    # memory
    _row(exact.astype, _method("astype")),
    _row(exact.copy, _method("copy")),
    _row(exact.getitem, operator.getitem),
    _asked(on_request.item_at, operator.getitem, takes_numbers=True),
    _row(exact.reshape, np.reshape, _method("reshape")),
    _asked(on_request.ravel, np.ravel, _method("ravel")),
    _row(exact.transpose, np.transpose, _method("transpose"), ("attribute", "T")),
    _row(exact.broadcast_to, np.broadcast_to),
    _row(exact.joined(ops.concat), np.concatenate),
    _row(exact.joined(ops.stack), np.stack),
    _asked(rearranged.permuted(np.swapaxes), np.swapaxes, _method("swapaxes")),
    _asked(rearranged.permuted(np.moveaxis), np.moveaxis),
    _asked(rearranged.permuted(np.rollaxis), np.rollaxis),
    _asked(rearranged.reshaped, np.expand_dims, np.squeeze, _method("squeeze"), np.atleast_1d, np.atleast_2d, np.atleast_3d),
    _asked(rearranged.fresh(rearranged.flattened), _method("flatten")),
    _asked(rearranged.flipped, np.flip),
    _asked(rearranged.flipped_along(0), np.flipud),
    _asked(rearranged.flipped_along(1), np.fliplr),
    _asked(rearranged.rotated, np.rot90),
    _asked(rearranged.concatenated, np.concatenate),
    _asked(rearranged.stacked, np.stack),
    _asked(rearranged.array, np.array, np.asarray),
    _asked(rearranged.joined(lambda axes: 0, 2), np.vstack),
    _asked(rearranged.joined(lambda axes: min(axes - 1, 1), 1), np.hstack),
    _asked(rearranged.joined(lambda axes: 2, 3), np.dstack),
    _asked(rearranged.columns, np.column_stack),
    _asked(rearranged.appended, np.append),
    _asked(rearranged.fresh(rearranged.tiled), np.tile),
    _asked(rearranged.fresh(rearranged.repeated), np.repeat, _method("repeat")),
    _asked(rearranged.fresh(rearranged.rolled), np.roll),
    _asked(rearranged.fresh(rearranged.padded), np.pad),
    _asked(rearranged.deleted, np.delete),
    _asked(rearranged.taken, np.take, _method("take")),
    _asked(rearranged.taken_along, np.take_along_axis),
    _asked(rearranged.diagonal, np.diagonal, _method("diagonal")),
    _asked(rearranged.diag, np.diag),
    _asked(rearranged.trace, np.trace, _method("trace")),
    # new arrays
    _row(exact.full(0), np.zeros, np.zeros_like),
    _row(exact.full(1), np.ones, np.ones_like),
    _row(exact.filled, np.full),
    _asked(rearranged.counted, np.arange),
    _asked(rearranged.diagonal_of_ones, np.eye, np.identity),
    _asked(rearranged.ones_below, np.tri),
    # reductions and products
    _row(exact.reduction(ops.sum), np.sum, _method("sum")),
    _row(exact.reduction(ops.max), np.max, _method("max")),
    _row(exact.reduction(ops.min), np.min, _method("min")),
    _row(exact.argument(ops.argmax), np.argmax, _method("argmax")),
    _row(exact.argument(ops.argmin), np.argmin, _method("argmin")),
    _asked(on_request.filled, np.full, takes_numbers=True),
    _asked(along_axes.over_truths(ops.all), np.all, _method("all")),
    _asked(along_axes.over_truths(ops.any), np.any, _method("any")),
    _asked(along_axes.over_truths(ops.all, axis=0), np.logical_and.reduce),
    _asked(along_axes.over_truths(ops.any, axis=0), np.logical_or.reduce),
    *(_asked(along_axes.reduced(op), *callables) for op, callables in (
        (ops.sum, (np.sum, _method("sum"))), (ops.prod, (np.prod, _method("prod"))), (ops.max, (np.max, _method("max"))),
        (ops.min, (np.min, _method("min"))))),
    *(_asked(along_axes.reduced(op, axis=0), ufunc.reduce) for op, ufunc in (
        (ops.sum, np.add), (ops.prod, np.multiply), (ops.max, np.maximum), (ops.min, np.minimum))),
    _asked(along_axes.argument(ops.argmax), np.argmax, _method("argmax")),
    _asked(along_axes.argument(ops.argmin), np.argmin, _method("argmin")),
    _asked(along_axes.count_nonzero, np.count_nonzero),
    _asked(along_axes.spread, np.ptp),
    _asked(orders.median, np.median),
    _asked(orders.quantile(1), np.quantile),
    _asked(orders.quantile(100), np.percentile),
    _asked(along_axes.without_nan(ops.sum), np.nansum),
    _asked(along_axes.without_nan(ops.mean), np.nanmean),
    _asked(along_axes.norm, np.linalg.norm),
    _asked(along_axes.differences, np.diff),
    _asked(along_axes.mean, np.mean, _method("mean")),
    _asked(along_axes.deviation(root=False), np.var, _method("var")),
    _asked(along_axes.deviation(root=True), np.std, _method("std")),
    _asked(along_axes.covariance, np.cov),
    _asked(along_axes.running(ops.cumsum), np.cumsum, _method("cumsum")),
    _asked(along_axes.running(ops.cumprod), np.cumprod, _method("cumprod")),
    _asked(on_request.triangle(lower=True), np.tril),
    _asked(on_request.triangle(lower=False), np.triu),
    _asked(products.dot, np.dot, _method("dot")),
    _asked(products.matmul, np.matmul, operator.matmul),
    _asked(products.outer, np.outer),
    *(_asked(products.of_all_pairs(rule), ufunc.outer) for rule, ufunc in (
        (elements.in_result_dtype(ops.add, "fiu"), np.add), (elements.in_result_dtype(ops.sub, "fiu"), np.subtract),
        (elements.in_result_dtype(ops.mul, "fiu"), np.multiply), (elements.in_result_dtype(ops.div), np.true_divide),
        (elements.in_result_dtype(ops.maximum, "fiu"), np.maximum), (elements.in_result_dtype(ops.minimum, "fiu"), np.minimum),
        (elements.compared(ops.greater), np.greater), (elements.compared(ops.greater_equal), np.greater_equal),
        (elements.compared(ops.less), np.less), (elements.compared(ops.less_equal), np.less_equal),
        (elements.compared(ops.equal), np.equal), (elements.compared(ops.not_equal), np.not_equal))),
    _asked(products.kron, np.kron),
    _asked(products.vdot, np.vdot),
    _asked(products.inner, np.inner),
    _asked(products.tensordot, np.tensordot),
    _asked(products.einsum, np.einsum),
    _asked(orders.argsort, np.argsort, _method("argsort")),
    _asked(orders.sort, np.sort),
    _asked(along_axes.clip, np.clip, _method("clip")),
)

#: The rows by the callable: exact ones, and those that a backend may ask for.
_EXACT, _ON_REQUEST = ({key: row for row in ROWS if row.is_exact is wanted for key in row.callables} for wanted in (True, False))

#: Arithmetic and comparisons of Python's numbers, by the function.
OF_NUMBERS: Dict[Any, Any] = {
    operator.add: scalar.py_add, operator.sub: scalar.py_sub, operator.mul: scalar.py_mul, operator.truediv: scalar.py_truediv,
    operator.floordiv: scalar.py_floordiv, operator.mod: scalar.py_mod, operator.pow: scalar.py_pow, real_power: scalar.py_pow,
    operator.and_: scalar.py_and, operator.or_: scalar.py_or, operator.xor: scalar.py_xor, operator.lshift: scalar.py_lshift,
    operator.rshift: scalar.py_rshift, operator.inv: scalar.py_invert, operator.invert: scalar.py_invert,
    operator.neg: scalar.py_neg, operator.not_: scalar.py_not, abs: scalar.py_abs, bool: scalar.py_bool, int: scalar.py_int,
    float: scalar.py_float,
    **{function: functools.partial(scalar.py_compare, op=symbol) for symbol, function in scalar.COMPARISONS.items()}}


def found(table: Mapping[Any, Any], function: Any) -> Any:
    """What a table has for a function; None for nothing, and for functions without hash."""
    try:
        return table.get(function)
    except TypeError:
        return None


def lower_numpy(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], type_: Any, of_any_size: bool = False
                ) -> Optional[Value]:
    """The result of a call of NumPy as a value of new ops that do exactly that; None where there is no such op.

    function: as in `NumPyCalls.call`.  type_: what NumPy gives.  of_any_size: also of arrays with sizes that only the run knows.
    """
    row = found(_EXACT, function)
    if row is None or not of_any_size and (not has_known_shape(type_) or any(map(is_of_unknown_size, args))):
        return None
    try:
        return row.rule(type_, *args, **kwargs)
    except (TypeError, ValueError):                     # arguments, or sizes, that the rule does not know
        return None


def on_request_row(call: Call, function: Any) -> Optional[Row]:
    """The row of a call for backends that ask; None where there is none but perhaps an exact one.

    function: that of the call, methods and attributes as in a `Row`.
    """
    if getattr(call.function, "in_place", None) is not None:
        return _WRITTEN
    rule = selection(call)
    if rule is not None:
        return _asked(rule)
    row = found(_ON_REQUEST, function)
    if row is None and (rule := on_request.number_of(call.function)) is not None:
        return _asked(rule, takes_numbers=True)
    return row


_WRITTEN = _asked(written, takes_numbers=True)


def fixed(call: Any) -> Optional[Value]:
    """A new array that holds what a call gives whose operands are all known: the same in every run.

    None for a large one, and for functions that may look at something else.
    """
    value = fixed_array(call)
    is_plain = value is not None and value.flags.c_contiguous and value.nbytes <= _MOST_BYTES
    return ops.copy(constant(value)) if is_plain else None


def fixed_array(call: Any) -> Optional[np.ndarray]:
    """What a call gives that is the same in every run; None for functions that may look at something else, and for numbers."""
    function = call.function
    if not isinstance(function, np.ufunc) and function not in _CREATING or _holds_objects([call.args, call.kwargs]):
        return None
    value = call()[0]
    return value if type(value) is np.ndarray else None


def _holds_objects(item: Any) -> bool:
    if type(item) in (list, tuple):
        return any(map(_holds_objects, item))
    if type(item) is dict:
        return any(map(_holds_objects, item.values()))
    return not isinstance(item, (int, float, str, type(None), type, np.dtype))


_CREATING = frozenset(found for _, found in members(np, "constant", numpy_facts.FUNCTIONS))

#: Larger arrays are made anew in every run, not kept in the program.
_MOST_BYTES = 1 << 16
