"""What functions make of a list of unknown length: its length, and its items as one array."""
from __future__ import annotations

import sys
import types
from typing import Any, Callable, Collection, Dict, Optional

import chainer
import chainer.functions as F
import numpy as np

from ..capture_context import Calls
from ..heap.collection_shadows import ShadowDeque
from ..heap.list_shadows import ShadowList
from ..heap.object_shadows import ShadowBase
from ..ir.dims import Dim
from ..ir.graph import Value
from ..ir.op import OPS
from ..ir.types import Scalar, Tensor
from ..library_facts import numpy as numpy_facts
from ..library_facts.table import named
from ..runtime import dy
from ..runtime.host_calls import EmptyCall, EmptyStack
from ..runtime.list_arrays import DTYPES
from ..threads.quiet import quiet
from .known_texts import SymbolicText
from .list_items import Items
from .lists import StagedList, symbolic_items, uneven_items
from .sequences import PARTING, Parts, Rows
from .sizes import Size
from .values import SymbolicArray, SymbolicScalar, SymbolicVariable


def length(calls: Calls, function: Callable, value: Any) -> Any:
    """``len``."""
    kind = type(value)
    if kind is ShadowList:
        return value.length()
    if issubclass(kind, ShadowBase) and isinstance(getattr(kind, "__len__", None), types.FunctionType):
        return _own_length(kind.__len__(value))
    if kind is StagedList and value.slots is not None:
        return value.slots.size
    uneven = uneven_items(value)
    if uneven is not None:
        return uneven.length
    items = symbolic_items(value)
    if items is not None:
        return items.length
    if kind is ShadowDeque:
        return value.length()
    if isinstance(value, Parts):
        return value.array.shape[value.axis] if type(value) is Rows else calls.capture.numpy.call(max, (value.length, 0), {})
    if isinstance(value, (SymbolicVariable, SymbolicArray)) and value.shape and isinstance(value.shape[0], Dim):
        return value.shape[0]
    if type(value) is SymbolicText:
        return calls.capture.texts.call(function, (value,))
    return function(value)


class _Given:
    """Has the length that a method ``__len__`` has given, for Python to look at it."""

    def __init__(self, found: Any):
        self.found = found

    def __len__(self) -> int:
        return self.found               # type: ignore[no-any-return]


def _own_length(found: Any) -> Any:
    """What a method ``__len__`` has given: a number that changes from call to call need not be known; Python checks others."""
    if type(found) is Size:
        return found
    is_number = type(found) is SymbolicScalar and found.text is not None and found.kind == "py_int"
    return found if is_number and 0 <= found <= sys.maxsize else len(_Given(found))


def stack(calls: Calls, function: Callable, xs: Any, axis: int = 0) -> Any:
    """``F.stack``."""
    items = symbolic_items(xs)
    return calls.native(function)(xs, axis) if items is None else _joined(items, axis, function, False)


def concat(calls: Calls, function: Callable, xs: Any, axis: int = 1) -> Any:
    """``F.concat``."""
    uneven = uneven_items(xs)
    if uneven is not None:
        return calls.native(function)([_joined(uneven.items, axis, function, True), *uneven.rest], axis=axis)
    items = symbolic_items(xs)
    return calls.native(function)(xs, axis=axis) if items is None else _joined(items, axis, function, True)


def _joined(items: Items, axis: Any, function: Callable, along: bool) -> Any:
    """The items along a new axis, or along one that they have."""
    capture = items.capture
    elem = items.elem
    ndim = elem.ndim if isinstance(elem, Tensor) and items.kind in ("variable", "array") else -1
    if type(axis) is not int or not -ndim - (not along) <= axis < ndim + (not along) or items.uncertain:
        capture.abort(f"{function.__name__} of a list whose length depends on array values", because=items)
    axis %= ndim + (not along)
    value = stacked(items, axis, function)
    if along:
        shape = list(elem.shape)
        shape[axis] = value.shape[axis] * elem.shape[axis]
        value = OPS["reshape"](value, shape=tuple(shape))
    connected = items.requires_grad and bool(chainer.config.enable_backprop)
    return capture.chainer.result(value, [], items.requires_grad, connected)


def vstack(calls: Calls, function: Callable, xs: Any) -> Any:
    """``F.vstack``."""
    uneven = uneven_items(xs)
    if uneven is not None and _ndim(uneven.items) > 1:
        return concat(calls, F.concat, xs, 0)
    items = symbolic_items(xs)
    ndim = 0 if items is None else _ndim(items)
    return calls.native(function)(xs) if items is None else _joined(items, 0, function if ndim else F.stack, ndim > 1)


def hstack(calls: Calls, function: Callable, xs: Any) -> Any:
    """``F.hstack``."""
    items = symbolic_items(xs)
    ndim = 0 if items is None else _ndim(items)
    return calls.native(function)(xs) if items is None else _joined(items, int(ndim > 1), function, ndim > 0)


def _ndim(items: Items) -> int:
    return items.elem.ndim if isinstance(items.elem, Tensor) else 0


def of_numbers(calls: Calls, function: Callable, items: Any) -> Any:
    """What ``max``, ``min``, ``any``, ``all`` and ``sorted`` give for a list of numbers; NotImplemented for anything else."""
    found = symbolic_items(items)
    if found is None:
        return NotImplemented
    if found.kind not in ("py_bool", "py_int", "py_float"):
        calls.capture.abort(f"`{function.__name__}` of a list whose length depends on array values, and which holds no numbers",
                            because=found)
    return called(calls, found, function)


def called(calls: Calls, items: Items, function: Callable) -> Any:
    """What a function of Python's gives for a list of numbers."""
    capture = calls.capture
    if function in (max, min):                          # which may fail
        capture.effects.store_writes()
    capture.event("staged", function.__name__)
    value, = capture.builder.add(OPS["list_call"], (items.value,), {"function": function}, name=function.__name__)
    return StagedList(capture, [items.replaced(value)]) if function is sorted else capture.wrap(value)


def of_array(calls: Calls, function: Callable, xs: Any, *rest: Any, **options: Any) -> Any:
    """A function of NumPy's on a list: on the array that NumPy makes of it, which is one of floats where it is empty."""
    uneven = uneven_items(xs)
    if uneven is not None and uneven.items.kind == "array" and function in (np.concatenate, np.vstack) and "out" not in options:
        whole = SymbolicArray(calls.capture, stacked(uneven.items, 0, function))
        whole = calls.capture.numpy.call(function, (whole, *rest), options)
        return calls.capture.numpy.call(function, ([whole, *uneven.rest], *rest), options)
    capture, items = calls.capture, symbolic_items(xs)
    assert items is not None
    name = getattr(function, "__name__", "")
    known = getattr(np, name, None) is function and name in _LISTED and _KEYWORDS.issuperset(options)
    given = _given_array(items, function, *rest, **options)
    if given is not None:
        return capture.numpy.call(function, (given, *rest), options)
    if items.kind == "py_float" and function in (np.array, np.asarray) and not _is_of_floats(*rest, **options):
        capture.abort("an array of ints is made of a list of floats whose length differs from call to call", because=items)
    counts_in_loop = capture.staging.in_loop and items.kind != "array"
    if not known or counts_in_loop or items.kind not in ("array", "py_bool", "py_float"):
        capture.abort(f"a list whose length depends on array values is given to `{name}`", because=items)

    def of_items() -> Any:
        return capture.numpy.call(function, (SymbolicArray(capture, _as_array(items, function)), *rest), options)

    def of_nothing() -> Any:
        _raise_like(function, rest, options)
        empty = OPS["full"](shape=(0,), value=0.0, dtype=np.dtype(float))
        return capture.numpy.call(function, (SymbolicArray(capture, empty), *rest), options)
    is_array = isinstance(items.elem, Tensor)
    if items.is_sure or is_array and _fails_as_alone(function, rest, options) and not capture.effects.is_protected():
        return of_items()                               # without items `stacked` fails as the function does
    if function in (np.array, np.asarray) and _is_of_one_dtype(items, *rest, **options):
        array = SymbolicArray(capture, _array_of_numbers(items, "items"))
        return capture.numpy.call(function, (array, *rest), options)
    return dy.if_exp(items.length > 0, of_items, of_nothing)


def _given_array(items: Items, function: Callable, *rest: Any, **options: Any) -> Any:
    """The array that NumPy makes of items before a function gets it, where it is known as a whole; None elsewhere."""
    name = getattr(function, "__name__", "")
    if items.arrays is None or getattr(np, name, None) is not function or name not in _LISTED or not _KEYWORDS.issuperset(options):
        return None
    named = {**dict(zip(("dtype",), rest)), **options} if function in (np.array, np.asarray) else {}
    text = text_of(named.get("dtype"))
    if len(rest) > 1 and named or not (items.is_sure or text is not None and isinstance(items.elem, Scalar)):
        return None                                     # of no items, NumPy makes an array of floats, or none
    is_of_arrays = isinstance(items.elem, Tensor)
    array = items.arrays(None if is_of_arrays else text) if is_of_arrays or text in DTYPES else None
    return None if array is None else items.capture.numpy.call(np.array, (array,), {})


def text_of(dtype: Any) -> Optional[str]:
    """What a dtype is called in paths; "" for what is none that NumPy knows without asking."""
    is_plain = isinstance(dtype, (str, np.dtype)) or type(dtype) is type and issubclass(dtype, (int, float, np.generic))
    return None if dtype is None else np.dtype(dtype).str if is_plain else ""


def _raise_like(function: Callable, rest: Any, named: Any) -> None:
    """Raise what a function of NumPy's raises for an empty list, if it does, by a statement (`raising.is_raised`)."""
    raised = _raised(function, rest, named)
    if raised is not None:
        kind, args = raised
        raise kind(*args)


def _fails_as_alone(function: Callable, rest: Any, named: Any) -> bool:
    """Whether a function of NumPy's raises for an empty list, and the same with these arguments as without."""
    raised = _raised(function, rest, named)
    return raised is not None and raised == _raised(function, (), {})


def _raised(function: Callable, rest: Any, named: Any) -> Any:
    """The class and arguments of what a function of NumPy's raises for an empty list; None if it raises nothing."""
    try:
        with quiet():
            function([], *rest, **named)
    except (ValueError, TypeError, IndexError) as error:
        return type(error), error.args
    return None


def _is_of_one_dtype(items: Items, dtype: Any = None, **options: Any) -> bool:
    """Whether an array of numbers is of the same dtype where there are none, so that these are an array of no elements."""
    return isinstance(items.elem, Scalar) and not options and (dtype is not None or items.elem.dtype == np.dtype(float))


def _is_of_floats(dtype: Any = None, **_: Any) -> bool:
    """Whether an array of this dtype takes all floats: ints are made one by one, and some floats are none."""
    return dtype is None or np.dtype(dtype).kind in "fb"


def _as_array(items: Items, function: Callable) -> Value:
    return stacked(items, 0, function) if isinstance(items.elem, Tensor) else _array_of_numbers(items)


def _array_of_numbers(items: Items, size: str = "length") -> Value:
    """An array of all numbers.  size: how the name of its size begins (`ir.size_symbols`)."""
    builder = items.capture.builder
    attrs = {"extent": _extent_of(builder, items, size), "size": items.size if isinstance(items.size, Dim) else None}
    return builder.add(OPS["list_array"], (items.value,), attrs, name="array")[0]


def variables_together(items: Items) -> SymbolicVariable:
    """The Variables of a list that leaves the function, as the rows of one: `variables_of`."""
    capture, elem = items.capture, items.elem
    leaves = items.has_leaves or items.requires_grad and not items.connected
    if not items.is_new or items.uncertain or leaves and chainer.config.enable_backprop:
        capture.abort("a list whose length depends on array values leaves the compiled function with Variables in it that are "
                      "not all results of functions", because=items)
    value = stacked(items, 0, F.separate, EmptyStack(elem.shape, elem.dtype))
    made = capture.chainer.result(value, [], items.requires_grad, items.connected)
    made.__dict__.update(origins=items.origins, decision=items.decision)
    return made


def stacked(items: Items, axis: int, function: Callable, refuse: Any = None) -> Value:
    """All items as one array; what the symbol in its shape means is known from there on.

    refuse: what becomes of no items; else they fail as the function does.
    """
    capture = items.capture
    if items.arrays is not None and axis == 0 and items.is_sure and isinstance(items.elem, Tensor):
        return capture.numpy.call(np.array, (items.arrays(None),), {}).now()
    capture.effects.store_writes()
    extent = _extent_of(capture.builder, items)
    capture.event("staged", function.__name__)
    size = items.size if isinstance(items.size, Dim) else None
    value, = capture.builder.add(OPS["list_stack"], (items.value,), {
        "axis": axis, "extent": extent, "refuse": refuse or EmptyCall(function), "size": size}, name="stacked")
    return value


_LISTED, _KEYWORDS = named("listed", numpy_facts.FUNCTIONS), frozenset(("axis", "dtype", "keepdims", "ddof"))

_MAKING_ARRAYS = ("list_stack", "list_array")


def _extent_of(builder: Any, items: Items, size: str = "length") -> Dim:
    """The symbol for the length of a list: that of an array of another list that is known to be as long.

    size: how its name begins, if it is a new one.
    """
    length, more = items.count
    alike = length.users.setdefault(more, {})
    alike[items.value] = None
    return _extent(builder, items.value, alike, size)


def _extent(builder: Any, items: Value, alike: Collection[Value] = (), size: str = "length") -> Dim:
    """The symbol for the length of a list: that of an earlier array of it, or the next; the same in every capture.

    alike: lists of the same length.  size: how its name begins.
    """
    count = 0
    while builder is not None:
        for node in builder.nodes:
            if node.op.name in _MAKING_ARRAYS and (node.inputs[0] is items or node.inputs[0] in alike):
                return node.attrs["extent"]
            count += sum(inner.op.name in _MAKING_ARRAYS for inner in node.walk())
        builder = builder.outer
    return Dim(f"{size}_{count}")


#: What is called in place of functions that get a list: ``handler(calls, function, *args)``.
FUNCTIONS: Dict[Any, Callable] = {F.stack: stack, F.concat: concat, F.vstack: vstack, F.hstack: hstack, **PARTING}
