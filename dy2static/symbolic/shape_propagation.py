"""How the sizes of what NumPy gives follow those of its operands: as a rule for all sizes, not for the few that are tried."""
from __future__ import annotations

import math
import operator
from typing import Any, Callable, Hashable, Optional, Sequence, Tuple

import numpy as np

from ..ir.dims import Dim, equal, less
from ..ir.graph import Value
from ..ir.op import OPS
from ..ir.shapes import with_axes
from ..ir.size_bounds import maximum
from ..ir.types import Tensor, type_of
from ..library_facts.by_name import known_as
from ..runtime.host_calls import fill

#: Our own functions that give an array like the first operand.
_LIKE_FIRST = ("write_at", "write_at_checked", "overlaid")
_DIAGONALS = (np.diag, np.diagonal)
#: Functions that join arrays: so many axes each part has at least, and the axis, of parts of so many.
_JOINING = {np.vstack: (2, lambda axes: 0), np.hstack: (1, lambda axes: min(axes - 1, 1)), np.dstack: (3, lambda axes: 2)}
#: Functions of whose results the type is computed.
_BY_RULE = frozenset((operator.getitem, np.arange, np.delete, *_DIAGONALS)).union((np.concatenate, np.diff), _JOINING)
_FOLLOWING = known_as("follows").union(("class_counts", "true_rows"), _LIKE_FIRST)


def result_of(function: Callable, template: Tuple[Any, Any], types: Sequence[Any]) -> Any:
    """The type of a result that is known without a trial: of parts of an array, of what is written, of a range; None for others.

    types: of the operands; the `Dim` for one that is a size.
    """
    args, kwargs = template
    if getattr(function, "__name__", "") in _LIKE_FIRST:
        return types[args[0].index]
    if getattr(function, "__name__", "") == "reshape" and not kwargs:
        return _reshaped(*fill(args, [t if isinstance(t, Dim) else Value(t) for t in types]))
    if not isinstance(function, Hashable) or function not in _BY_RULE:
        return None
    operands = [t if isinstance(t, Dim) else Value(t) for t in types]
    filled = fill(args, operands)
    if function in _DIAGONALS or function is np.delete:
        return _part(function, *filled, **kwargs)
    if function is np.concatenate or function in _JOINING:
        return _joined(*_JOINING.get(function, (1, None)), *filled, **kwargs)
    if function is np.diff:
        return _differences(*filled, **fill(kwargs, operands))
    if function is operator.getitem and isinstance(filled[0], Value) and _is_basic(filled[1]):
        index = filled[1] if isinstance(filled[1], tuple) else (filled[1],)
        op, of = OPS["getitem"], filled[0].type
        found = op.infer(of, **op.canonical(of, index=index))
        is_element = not found.shape and not any(entry is Ellipsis for entry in index)
        return type_of(found.dtype.type(0)) if is_element else found
    if function is np.arange and set(kwargs) <= {"dtype"} and all(type(n) is int or isinstance(n, Dim) for n in filled):
        start, stop, step = filled if len(filled) == 3 else (*filled, 1) if len(filled) == 2 else (0, filled[0], 1)
        if type(step) is int and step > 0:
            return Tensor((maximum(0, (stop - start + step - 1) // step),), np.arange(1, **kwargs).dtype)
    return None


def _reshaped(x: Any, *shape: Any) -> Any:
    """The type of an array with another shape; None where it is not certain to have as many elements."""
    shape = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if not isinstance(x, Value) or not isinstance(x.type, Tensor) or not all(type(n) is int or isinstance(n, Dim) for n in shape):
        return None
    try:
        op = OPS["reshape"]
        found = op.infer(x.type, **op.canonical(x.type, shape=shape))       # type: ignore[misc]
    except (TypeError, ValueError):
        return None
    return found if equal(math.prod(found.shape), math.prod(x.shape)) else None


def _joined(least: int, axis_of: Optional[Callable[[int], int]], arrays: Any, axis: Any = 0, **options: Any) -> Any:
    """The type of arrays that are joined; None where other sizes than those along the axis are not certain to be equal.

    least, axis_of: see `_JOINING`.
    """
    if axis_of is not None and (axis != 0 or options):
        return None
    arrays = arrays if type(arrays) in (list, tuple) else ()
    parts = [Tensor(with_axes(x.shape, least), x.dtype) if axis_of is not None else x.type
             for x in arrays if isinstance(x, Value) and isinstance(x.type, Tensor)]
    axis = axis if axis_of is None or not parts else axis_of(parts[0].ndim)
    if len(parts) < max(len(arrays), 1) or type(axis) is not int or options or len({t.ndim for t in parts}) > 1 or \
            not -parts[0].ndim <= axis < parts[0].ndim:
        return None
    axis %= parts[0].ndim
    shape = list(parts[0].shape)
    if not all(i == axis or equal(t.shape[i], n) for t in parts for i, n in enumerate(shape)):
        return None
    shape[axis] = sum([t.shape[axis] for t in parts])
    return Tensor(tuple(shape), np.result_type(*[t.dtype for t in parts]))


def _differences(a: Any, n: Any = 1, axis: Any = -1, **ends: Any) -> Any:
    """The type of differences between neighbors, taken ``n`` times; None for what is not known.

    ends: what is put before and behind, ``prepend`` and ``append``.
    """
    if not isinstance(a, Value) or not isinstance(a.type, Tensor) or type(n) is not int or n < 0 or type(axis) is not int or \
            not -a.ndim <= axis < a.ndim:
        return None
    one = list(a.shape)
    one[axis] = 1
    parts = [a, *[Value(Tensor(tuple(one), np.asarray(x).dtype)) if type(x) in (int, float) else x for x in ends.values()]]
    whole = _joined(1, None, parts if n else [a], axis)
    if whole is None:
        return None
    shape = list(whole.shape)
    shape[axis] = maximum(0, shape[axis] - n)
    return Tensor(tuple(shape), whole.dtype)


def _part(function: Callable, x: Any, *rest: Any, **named: Any) -> Any:
    """The type of a diagonal, of a matrix with this diagonal, or of an array without some places along an axis."""
    given = dict(zip(("obj", "axis") if function is np.delete else ("offset", "axis1", "axis2"), rest), **named)
    if not isinstance(x, Value) or not isinstance(x.type, Tensor):
        return None
    if function is np.delete:
        places, axis = given.get("obj"), given.get("axis")
        places = [places] if type(places) is int else places
        are_known = type(places) is list and all(type(place) is int and place >= 0 for place in places)
        if not are_known or type(axis) is not int:
            return None
        axis %= x.ndim
        return Tensor((*x.shape[:axis], x.shape[axis] - len(set(places)), *x.shape[axis + 1:]), x.dtype)
    offset, *axes = (given.get(name, default) for name, default in (("k", given.get("offset", 0)), ("axis1", 0), ("axis2", 1)))
    if not all(type(n) is int for n in (offset, *axes)):
        return None
    if x.ndim == 1:
        return Tensor((x.shape[0] + abs(offset),) * 2, x.dtype) if function is np.diag else None
    op = OPS["diagonal"]
    return op.infer(x.type, **op.canonical(x.type, offset=offset, axes=tuple(axes)))    # type: ignore[misc]


def follows(function: Callable, name: str, template: Tuple[Any, Any], sizes: Sequence[Dim]) -> bool:
    """Whether the result of a call has sizes that follow those of its operands, so that trials show how.

    sizes: the operands that are sizes.
    """
    if any(less(n, 0) is not False for n in sizes):
        return False
    if function is operator.getitem:
        entries = template[0][1] if isinstance(template[0][1], tuple) else (template[0][1],)
        return not any(type(entry) is slice and entry != slice(None) for entry in entries)
    return isinstance(function, np.ufunc) or name in _FOLLOWING


def _is_basic(index: Any) -> bool:
    """Whether an index selects a view, by ints and sizes that are not negative; steps are ints."""
    for entry in index if isinstance(index, tuple) else (index,):
        ends = (entry.start, entry.stop) if type(entry) is slice else (entry,)
        if type(entry) is slice and type(entry.step) not in (int, type(None)) or \
                not all(end is None or end is Ellipsis or type(end) is int or
                        isinstance(end, Dim) and less(end, 0) is False for end in ends):
            return False
    return True
