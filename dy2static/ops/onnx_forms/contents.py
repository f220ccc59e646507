"""Calls of NumPy whose results have as many elements as arrays decide, as nodes of ONNX."""
from __future__ import annotations

import math
import operator
from typing import Any, Callable, Dict, Hashable, Optional, Sequence, Tuple

import numpy as np

from ...ir.onnx_forms import Name, NotInOnnx, OnnxWriter
from ...ir.types import Type
from .indexing import flat
from .movement import reshaped


def has_form(call: Any) -> bool:
    """Whether a call may have a form here."""
    return _rule(call) is not None


def called(o: OnnxWriter, operand_types: Sequence[Type], results: Sequence[Type], /, *operands: Name, call: Any, types: Any,
           extents: Any = ()) -> Any:
    """A call that picks elements by a mask or finds their places: ``x[mask]``, ``nonzero``, ``unique``; others are refused.

    Its operands stand in the call by their numbers.
    """
    rule = _rule(call)
    if rule is None:
        raise NotInOnnx(f"{call} is no operator of ONNX")
    return rule(o, operand_types, results, *operands, args=call.args)


def _rule(call: Any) -> Optional[Callable[..., Any]]:
    function = getattr(call, "function", None)
    function = getattr(function, "method", function)
    count = 2 if function is operator.getitem else 1         # ``np.where`` of three arguments is something else
    is_plain = isinstance(function, Hashable) and not call.kwargs and len(call.args) == count and \
        getattr(call.args[0], "index", None) == 0
    return _FORMS.get(function) if is_plain else None


def _picked(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, *masks: Name, args: Tuple) -> Name:
    """``x[mask]`` and ``x[:, mask]``: the elements, or parts, where a mask holds."""
    key = args[1] if type(args[1]) is tuple else (args[1],)
    before = key[:-1]
    if len(masks) != 1 or getattr(key[-1], "index", None) != 1 or any(entry != slice(None) for entry in before) or \
            types[1].dtype.kind != "b":
        raise NotInOnnx("only one mask, behind whole axes, picks elements")
    axis, count, shape = len(before), types[1].ndim, types[0].shape
    if count > 1:                                       # these axes as one
        x = reshaped(o, x, (*shape[:axis], math.prod(shape[axis:axis + count]), *shape[axis + count:]))
    return o.node("Compress", x, flat(o, masks[0]), axis=axis)


def _places(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, *, args: Tuple) -> Any:
    """The places of what is not zero, an array for each axis."""
    found = o.node("NonZero", _truths(o, x))
    places = tuple(o.node("Gather", found, o.constant(axis, np.int64), axis=0) for axis in range(types[0].ndim))
    return places if len(results) > 1 else places[0]


def _flat_places(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, *, args: Tuple) -> Name:
    return o.node("Gather", o.node("NonZero", flat(o, _truths(o, x))), o.constant(0, np.int64), axis=0)


def _rows_of_places(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, *, args: Tuple) -> Name:
    return o.node("Transpose", o.node("NonZero", _truths(o, x)), perm=[1, 0])


def _distinct(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, *, args: Tuple) -> Name:
    dtype = types[0].dtype
    if not np.can_cast(dtype, np.int64):
        raise NotInOnnx(f"distinct numbers of {dtype}, of which several NaN are one for NumPy")
    return o.cast(o.node("Unique", flat(o, o.cast(x, np.dtype("int64"))), sorted=1), dtype)


def _truths(o: OnnxWriter, x: Name) -> Name:
    """Which elements are not zero."""
    return o.cast(x, np.dtype(bool))


def _itself(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], x: Name, *, args: Tuple) -> Name:
    return o.node("Identity", x)


_FORMS: Dict[Any, Callable[..., Any]] = {
    operator.getitem: _picked, np.nonzero: _places, "nonzero": _places, np.where: _places, np.flatnonzero: _flat_places,
    np.argwhere: _rows_of_places, np.unique: _distinct, np.ascontiguousarray: _itself}
