"""Lists whose length only the run knows, and arrays made of their items.

A list is a value like any other: ``list_append`` gives a new one.  The gradient of a list is a list of gradients of the
same length, in which None stands for an item without one; an empty one has none, at any length.  Gradients of lists are present
as a whole (each item has one) or `BY_ITEM`.
"""
from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Optional, Sequence, Tuple
from typing import List as Items

import numpy as np

from ..ir.dims import Dim
from ..ir.op import BY_ITEM, LAST, OpDef, declare
from ..ir.types import List, Scalar, Tensor, Type, python_scalar
from .onnx_forms import lists as forms
from .rules import normal_axis
from .scalar import py_constant


def _need_list(type: Type) -> List:
    if not isinstance(type, List):
        raise TypeError(f"a list is needed, not {type}")
    return type


def _same_list(xs: Type, *_: Type, **attrs: Any) -> List:
    return _need_list(xs)


def _need_tensor(type: Type) -> Tensor:
    if not isinstance(type, Tensor):
        raise TypeError(f"an array is needed, not {type}")
    return type


def _zeros(elem: Tensor) -> np.ndarray:
    return np.zeros(elem.shape, elem.dtype)


def _there(present: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """The operand that says whether the gradient of a node's output is there; none where it always is."""
    return () if present[0] is True else present


def _nothing(there: Tuple[Any, ...]) -> Tuple[None, ...]:
    return (None,) * len(there)


def _of_item(gradient: Any, gs: Any, index: int, present: Tuple[Any, ...]) -> Any:
    """The gradient of one item, with whether it is there."""
    return gradient if present[0] is True else (gradient, list_has(gs, _number(index)))


# Making and reading ---------------------------------------------------------------------------------------------


def _new_infer(*items: Type, elem: Any) -> List:
    elem = items[0] if elem is None and items else elem
    if elem is None or any(item != elem for item in items):
        raise TypeError(f"items of a list must have one type: ({', '.join(map(str, items))})")
    return List(elem)


def _append_infer(xs: Type, item: Type) -> Type:
    if _need_list(xs).elem != item:
        raise TypeError(f"{item} does not fit into {xs}")
    return xs


def _append_infer_all(xs: Type, ys: Type) -> Type:
    if _need_list(xs) != ys:
        raise TypeError(f"{ys} does not continue {xs}")
    return xs


def _called_infer(xs: Type, *, function: Callable) -> Type:
    elem = _need_list(xs).elem
    if not isinstance(elem, Scalar):
        raise TypeError(f"{xs} holds no numbers")
    return python_scalar("py_bool") if function in (any, all) else xs if function is sorted else elem


def _number(value: int) -> Any:
    return py_constant(value=value)


def _length_infer(xs: Type) -> Scalar:
    _need_list(xs)
    return python_scalar("py_int")


def _truth_infer(xs: Type, *_: Type) -> Scalar:
    _need_list(xs)
    return python_scalar("py_bool")


def _without_last(xs: Sequence[Any]) -> Items[Any]:
    if not xs:
        raise IndexError("pop from empty list")
    return list(xs[:-1])


#: A list of the operands; ``elem`` names the item type of an empty one.
list_new: OpDef = declare(
    "list_new", "*items", {"elem": None}, kind="control", infer=_new_infer, numpy="[{items}]", asks_present=True,
    vjp=lambda g, y, *items, elem, present: tuple([
        _of_item(list_part(g, item, index=i, count=len(items)), g, i, present) for i, item in enumerate(items)]),
    onnx=forms.new,
)

list_append: OpDef = declare(
    "list_append", "xs item", kind="control", infer=_append_infer, numpy="{xs} + [{item}]", asks_present=True,
    vjp=lambda g, y, xs, item, present: (list_rest(g), _of_item(list_last(g, item), g, -1, present)),
    onnx=forms.append,
)

#: One item.  is_last: it is the last one, here or in an iteration of the loop around, which does not make the list.
list_get: OpDef = declare(
    "list_get", "xs index", {"is_last": False}, kind="control", may_raise=True,
    infer=lambda xs, index, *, is_last: _need_list(xs).elem, numpy="{xs}[{index}]", asks_present=True,
    vjp=lambda g, y, xs, index, *, is_last, present: (
        (list_put(g, xs, index, *_there(present)), LAST if is_last and present[0] is True else BY_ITEM), None),
    onnx=forms.get,
)

list_len: OpDef = declare("list_len", "xs", kind="control", infer=_length_infer, numpy="len({xs})", onnx=forms.length)

#: The list without its last item, which there must be.
list_pop: OpDef = declare(
    "list_pop", "xs", kind="control", may_raise=True, infer=_same_list, numpy=_without_last,
    vjp=lambda g, y, xs: ((list_grown(g), BY_ITEM),),
    onnx=forms.pop,
)

#: Some of the items: ``xs[start:stop:step]``; of a gradient, too.  is_whole: all of them, in this order or backwards.
list_slice: OpDef = declare(
    "list_slice", "xs start stop", {"step": 1, "is_whole": False}, kind="control", infer=_same_list,
    numpy=lambda xs, start, stop, *, step, is_whole: xs[start:stop:step],
    vjp=lambda g, y, xs, start, stop, *, step, is_whole: (
        list_slice(g, start, stop, step=step, is_whole=True) if is_whole else
        (list_unslice(g, xs, start, stop, step=step), BY_ITEM), None, None),
    onnx=forms.slice_,
)

#: The items of two lists.
list_extend: OpDef = declare(
    "list_extend", "xs ys", kind="control", infer=_append_infer_all, numpy="{xs} + {ys}",
    vjp=lambda g, y, xs, ys: (list_slice(g, _number(0), list_len(xs)), list_slice(g, list_len(xs), _number(sys.maxsize))),
    onnx=forms.extend,
)

#: What a function of Python's gives for a list of Python's numbers.
list_call: OpDef = declare("list_call", "xs", {"function": None}, kind="control", may_raise=True, infer=_called_infer,
                           numpy=lambda xs, *, function: function(xs), onnx=forms.call)

# Gradients of lists ---------------------------------------------------------------------------------------------


def _part(xs: Sequence[Any], like: Any, *, index: int, count: int) -> Any:
    item = xs[index] if xs else None
    return np.zeros_like(like) if item is None else item


def _alone(item: Any, there: bool = True, *, index: int, count: int) -> Items[Any]:
    found: Items[Any] = [None] * count
    found[index] = item if there else None
    return found


def _last(xs: Sequence[Any], like: Any) -> Any:
    return np.zeros_like(like) if not xs or xs[-1] is None else xs[-1]


def _as_last(item: Any, xs: Sequence[Any], there: bool = True) -> Items[Any]:
    return [None] * (len(xs) - 1) + [item] if xs and there else []


def _put(item: Any, xs: Sequence[Any], index: int, there: bool = True) -> Items[Any]:
    found: Items[Any] = [None] * len(xs)
    if xs:
        found[index] = item if there else None
    return found


def _unsliced(gs: Sequence[Any], xs: Sequence[Any], start: int, stop: int, *, step: int) -> Items[Any]:
    found: Items[Any] = [None] * len(xs)
    if not gs or not xs:
        return []
    found[start:stop:step] = gs
    return found


def _taken(gs: Sequence[Any], like: Any, index: int) -> Any:
    item = gs[index] if gs else None
    return np.zeros_like(like) if item is None else item


def _add(a: Sequence[Any], b: Sequence[Any]) -> Sequence[Any]:
    if not a or not b:
        return a or b
    return [y if x is None else x if y is None else x + y for x, y in zip(a, b)]


def _item_type(xs: Type, like: Type, *_: Type, **attrs: Any) -> Type:
    if _need_list(xs).elem != like:
        raise TypeError(f"{like} is no item of {xs}")
    return like


#: No gradient for any item.
list_zeros: OpDef = declare("list_zeros", "", {"elem": None}, kind="control", infer=lambda *, elem: List(elem), numpy="[]")

#: Whether an item of a gradient is there; whether any is.
list_has: OpDef = declare(
    "list_has", "gs index", kind="control", infer=_truth_infer,
    numpy=lambda gs, index: bool(gs) and gs[index] is not None)
list_has_any: OpDef = declare(
    "list_has_any", "gs", kind="control", infer=_truth_infer,
    numpy=lambda gs: any([item is not None for item in gs]))

#: One item of a gradient whose length is known; ``like`` has its type.
list_part: OpDef = declare(
    "list_part", "xs like", {"index": 0, "count": 1}, kind="control", infer=_item_type, numpy=_part, asks_present=True,
    vjp=lambda g, y, xs, like, *, index, count, present: (
        (list_alone(g, *_there(present), index=index, count=count), BY_ITEM), None),
)
#: In this and what follows, ``there``: False where the item is not there; without it, it is.
list_alone: OpDef = declare(
    "list_alone", "item *there", {"index": 0, "count": 1}, kind="control", infer=lambda item, *there, **attrs: List(item),
    numpy=_alone, asks_present=True,
    vjp=lambda g, y, item, *there, index, count, present: (
        _of_item(list_part(g, item, index=index, count=count), g, index, present), *_nothing(there)),
)

#: A gradient without that of the last item, and that alone.
list_rest: OpDef = declare(
    "list_rest", "xs", kind="control", infer=_same_list, numpy="{xs}[:-1]", vjp=lambda g, y, xs: ((list_grown(g), BY_ITEM),))
list_last: OpDef = declare(
    "list_last", "xs like", kind="control", infer=_item_type, numpy=_last, asks_present=True,
    vjp=lambda g, y, xs, like, present: ((list_as_last(g, xs, *_there(present)), BY_ITEM), None),
)
list_as_last: OpDef = declare(
    "list_as_last", "item xs *there", kind="control", infer=lambda item, xs, *there: _need_list(xs), numpy=_as_last,
    asks_present=True,
    vjp=lambda g, y, item, xs, *there, present: (_of_item(list_last(g, item), g, -1, present), None, *_nothing(there)),
)

#: A gradient with none for one item more.
list_grown: OpDef = declare(
    "list_grown", "xs", kind="control", infer=_same_list, numpy=lambda xs: [*xs, None] if xs else [],
    vjp=lambda g, y, xs: (list_rest(g),),
)

#: The gradient of a list of which one item has one; ``xs`` has the length.  And that item of a gradient.
list_put: OpDef = declare(
    "list_put", "item xs index *there", kind="control", infer=lambda item, xs, index, *there: _need_list(xs), numpy=_put,
    vjp=lambda g, y, item, xs, index, *there: (
        (list_taken(g, item, index), list_has(g, index)), None, None, *_nothing(there)),
)
list_taken: OpDef = declare(
    "list_taken", "gs like index", kind="control", infer=_item_type, numpy=_taken, asks_present=True,
    vjp=lambda g, y, gs, like, index, present: ((list_put(g, gs, index, *_there(present)), BY_ITEM), None, None),
)

#: The gradient of a list of which a slice has one; ``xs`` has the length.
list_unslice: OpDef = declare(
    "list_unslice", "gs xs start stop", {"step": 1}, kind="control", infer=lambda gs, xs, start, stop, *, step: _need_list(xs),
    numpy=_unsliced,
    vjp=lambda g, y, gs, xs, start, stop, *, step: (list_slice(g, start, stop, step=step), None, None, None),
)

list_add: OpDef = declare("list_add", "a b", kind="control", infer=_same_list, numpy=_add, vjp=lambda g, y, a, b: (g, g))

# Arrays of all items --------------------------------------------------------------------------------------------


def _stack_canonical(xs: Type, *, axis: int, extent: Any, refuse: Any, size: Any = None) -> Dict[str, Any]:
    return {"axis": normal_axis(axis, _need_tensor(_need_list(xs).elem).ndim + 1)}


def _stacked(elem: Tensor, axis: int, extent: Any) -> Tensor:
    return Tensor((*elem.shape[:axis], extent, *elem.shape[axis:]), elem.dtype)


def _stack(xs: Sequence[np.ndarray], *, axis: int, extent: Dim, refuse: Optional[Callable[[], Any]],
           size: Optional[Dim] = None) -> np.ndarray:
    made = refuse() if not xs and refuse is not None else None
    if made is not None:
        return made
    if not xs or axis >= xs[0].ndim:
        return np.stack(xs, axis=axis)
    shape = xs[0].shape
    return np.concatenate(xs, axis=axis).reshape(*shape[:axis], len(xs), *shape[axis:])     # faster than `np.stack`


def _parts(x: np.ndarray, there: bool = True, *, axis: int) -> Items[np.ndarray]:
    return [] if not there else list(x if axis == 0 else np.moveaxis(x, axis, 0))


def _joined(xs: Sequence[Any], like: np.ndarray, *, axis: int) -> np.ndarray:
    if any(x is not None for x in xs) and None not in [x if x is None else 0 for x in xs]:
        return np.stack(xs, axis=axis)
    result = np.zeros(like.shape, like.dtype)
    parts = np.moveaxis(result, axis, 0)
    for i, x in enumerate(xs):
        if x is not None:
            parts[i] = x
    return result


def _unstacked(g: Any, axis: int, present: Tuple[Any, ...]) -> Any:
    items = list_unstack(g, *_there(present), axis=axis)
    return items if present[0] is True else (items, BY_ITEM)


#: The items along a new axis.  From here on ``extent`` is the length of the list.  refuse: raises what an empty list
#: raises, or gives what becomes of it.  size: the length by sizes that were known before, if it is.
list_stack: OpDef = declare(
    "list_stack", "xs", {"axis": 0, "extent": None, "refuse": None, "size": None}, kind="control", may_raise=True,
    canonical=_stack_canonical,
    infer=lambda xs, *, axis, extent, refuse, size: _stacked(_need_tensor(_need_list(xs).elem), axis,
                                                             extent if size is None else size),
    numpy=_stack, asks_present=True,
    vjp=lambda g, y, xs, *, axis, extent, refuse, size, present: (_unstacked(g, axis, present),),
    onnx=forms.stack,
)

def _dtype_of_numbers(xs: Type) -> np.dtype:
    elem = _need_list(xs).elem
    return elem.dtype if elem.kind == "numpy" else np.dtype({"py_bool": bool, "py_float": float}[elem.kind])


#: An array of numbers, of Python's or NumPy's.  extent, size: as of `list_stack`.
list_array: OpDef = declare(
    "list_array", "xs", {"extent": None, "dtype": None, "size": None}, kind="control", may_raise=True,
    canonical=lambda xs, *, extent, dtype, size: {"dtype": _dtype_of_numbers(xs)},
    infer=lambda xs, *, extent, dtype, size: Tensor((extent if size is None else size,), dtype),
    numpy=lambda xs, *, extent, dtype, size: np.array(xs, dtype),
    onnx=forms.array,
)

#: Every ``x[..., i, ...]`` along ``axis``, which goes; and the array of such a list, with zeros for what is None.
list_unstack: OpDef = declare(
    "list_unstack", "x *there", {"axis": 0}, kind="control",
    infer=lambda x, *there, axis: List(Tensor(x.shape[:axis] + x.shape[axis + 1:], x.dtype)), numpy=_parts,
    asks_present=True,
    vjp=lambda g, y, x, *there, axis, present: (
        list_join(g, x, axis=axis) if present[0] is True else (list_join(g, x, axis=axis), list_has_any(g)),
        *_nothing(there)),
    onnx=forms.unstack,
)

#: The elements of an array of one axis as numbers: of Python's where ``elem`` is such, else of NumPy's.
list_numbers: OpDef = declare(
    "list_numbers", "x", {"elem": None}, kind="control", infer=lambda x, *, elem: List(elem),
    numpy=lambda x, *, elem: list(x) if elem.kind == "numpy" else x.tolist(),
)
list_join: OpDef = declare(
    "list_join", "xs like", {"axis": 0}, kind="control", infer=lambda xs, like, *, axis: _need_tensor(like),
    numpy=_joined, asks_present=True, vjp=lambda g, y, xs, like, *, axis, present: (_unstacked(g, axis, present), None),
)
