"""Indexing of lazy arrays: reading, and item assignment."""
from __future__ import annotations

import operator
import sys
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from .arrays import LazyArray, array_of_node, array_of_op
from .calls import NO_NAMES, Call
from .evaluation import compute_small, result_of
from .forms import MOST_FORMS, Index, Unsupported, call_of, operand
from .nodes import COMPUTED, NUMBERS, TRACED, Node, call_node, leaf, writing
from .protocols import values
from .sites import caller_at_line
from .views import has_axes, is_alone, is_constant, is_scalar, view_of, write, write_now
from .writes import Stored, write_of

_frame = sys._getframe
_basic: Dict[Any, Tuple[Call, bool]] = {}

#: What a slice is in the key of a basic index: 8, and one bit for each bound that is given.
_SLICE = 8


def _basic_call(index: Any) -> Optional[Tuple[Call, bool, List[int]]]:
    """Of an index of whole numbers, slices of such, None and Ellipsis: its call, whether it may choose one element, and its
    numbers, which are the operands.  None for another index, which may choose by arrays.
    """
    rest: List[int] = []
    kind = type(index)
    key: Any
    if kind is int:
        rest.append(index)
        key = int
    else:
        codes: List[Any] = []
        for part in index if kind is tuple else (index,):
            kind = type(part)
            if kind is int:
                rest.append(part)
                codes.append(int)
            elif kind is slice:
                code = _SLICE
                for bound, bit in ((part.start, 1), (part.stop, 2), (part.step, 4)):
                    if type(bound) is int:
                        rest.append(bound)
                        code += bit
                    elif bound is not None:
                        return None
                codes.append(code)
            elif part is None or part is Ellipsis:
                codes.append(part)
            else:
                return None
        codes.append(type(index))                       # x[1:] is not x[1:,]
        key = tuple(codes)
    found = _basic.get(key)
    if found is None:
        if len(_basic) >= MOST_FORMS:
            _basic.clear()
        form = call_of("__getitem__", (leaf(None), Index(index)), {}, is_method=True)[0]
        found = _basic.setdefault(key, (form, _gives_scalars(index)))
    return found[0], found[1], rest


def _gives_scalars(index: Any) -> bool:
    """Whether a basic index may choose one element."""
    return all([type(part) is int for part in index]) if type(index) is tuple else type(index) is int


def _sees(index: Any) -> bool:
    """Whether an index chooses without arrays, but for the bounds of slices, so that NumPy gives a view, or a scalar.

    A string is the name of a field.
    """
    parts = index if type(index) is tuple else (index,)
    return all([part is None or part is Ellipsis or type(part) in (int, slice, str) for part in parts])


def _may_see(index: Any) -> bool:
    """Whether an index may be such an index, since its lazy arrays may be whole numbers."""
    parts = index if type(index) is tuple else (index,)
    return all([_sees(part) or type(part) is LazyArray and not has_axes(part._now) for part in parts])


def _plain(index: Any) -> Any:
    """An index with NumPy's whole numbers as Python's."""
    if type(index) is tuple:
        return tuple([_plain(part) for part in index])
    return int(index) if isinstance(index, np.integer) else index


def _getitem(self: LazyArray, index: Any) -> Any:
    basic = _basic_call(index)
    frame = _frame(1)
    if basic is None:
        return _chosen(self, _plain(index), frame)
    call, is_scalar_index, rest = basic
    node = self._node if self._view is None else self._now
    if is_scalar_index and _is_element(self, node, index):
        return _element(node, index, call, rest)
    result = node.result
    if result is None:
        return view_of(self, call, tuple(rest), frame, unsure=is_scalar_index)
    return view_of(self, call, tuple(rest), frame, there=result[index])


def _element(node: Node, index: Any, call: Call, rest: List[int]) -> Any:
    """One element of an array that is there.  It lets go of the array, which then may be written to without a copy.

    An object in an array of objects is no array.
    """
    found = node.result[index]
    if not isinstance(found, np.generic):
        return found
    made = leaf(found, COMPUTED)
    made.type = weakref.ref(node), call, rest
    return array_of_node(made)


def _chosen(self: LazyArray, index: Any, frame: Any) -> Any:
    """What an index chooses that is not plainly basic."""
    try:
        call, operands = call_of("__getitem__", (self, Index(index)), {}, is_method=True)
    except Unsupported:
        return array_of_node(leaf(result_of(self._now)[values(index)], COMPUTED))
    if _sees(index):
        return view_of(self, call, operands[1:], frame, unsure=self._now.result is None and _gives_scalars(index))
    if _may_see(index):
        return view_of(self, call, operands[1:], frame, unsure=True, late=True)
    return array_of_op(call, operands, frame)


def _is_element(self: LazyArray, node: Node, index: Any) -> bool:
    """Whether an index chooses one element of an array that has been computed, and through which no gradient goes."""
    result = node.result
    count = len(index) if type(index) is tuple else 1
    return (result is not None and result.ndim == count and self._view is None and node.depth < TRACED
            and _gives_scalars(index))


def _is_there(index: Any) -> bool:
    """Whether all arrays in an index have been computed."""
    if type(index) is tuple:
        return all(map(_is_there, index))
    return type(index) is not LazyArray or index.is_evaluated


def _setitem(self: LazyArray, index: Any, value: Any) -> None:
    frame = _frame(1)
    if not _gives_scalars(index):
        index = _plain(index)
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{type(value).__name__} cannot be stored in a lazy array")
    if type(value) is LazyArray and value._view is not None and _is_seen_by(self, index, value):
        return                                          # y[1:] += 1 stores the view that it has changed
    given = operand(value)
    if is_scalar(self):
        raise TypeError(f"'numpy.{type(result_of(self._now)).__name__}' object does not support item assignment")
    if type(given) is Node and given.result is None and given.depth < TRACED and is_constant(self._now):
        if _is_element(self, self._node, index):
            result_of(given)                            # an expression of the array with it would copy the array
        else:
            compute_small((given,))
    with writing:
        if given is None:                               # a text, or another object that NumPy knows how to convert
            _store_now(self, index, value, frame)
        else:
            _store(self, index, given, frame)


def _is_seen_by(self: LazyArray, index: Any, value: LazyArray) -> bool:
    """Whether an array is the view of another one by an index."""
    now, view, basic = value._now, value._view, _basic_call(index)
    if view is None or view.base is not self or view.seen is not self._now:
        return False
    if basic is not None:
        is_here = view.op is basic[0] and view.rest == tuple(basic[2])
    elif _may_see(index):
        call, operands = call_of("__getitem__", (self, Index(index)), {}, is_method=True)
        is_here = view.op is call and all(map(operator.is_, view.rest, operands[1:]))
    else:
        return False
    return is_here and view.is_view() and now is value._node


def _store(self: LazyArray, index: Any, given: Any, frame: Any) -> None:
    """Item assignment of a node or number, by the one thread that writes."""
    if is_constant(self._now) and (type(given) is not Node or is_constant(given)) and _is_there(index):
        index = values(index)
        result = given.result if type(given) is Node else given
        if self._view is not None and write_now(self, lambda there: stored(there, index, result, frame)):
            return
        if self._view is None:                          # perhaps since just now: a view of nothing is none
            del given
            memory = self._node.result if is_alone(self) else self._node.result.copy(order="K")
            stored(memory, index, result, frame)
            self._node = leaf(memory, COMPUTED)         # elements that were taken are not of this version
            return
    basic = _basic_call(index)
    if basic is not None:
        write(self, call_node(write_of(Stored, basic[0]), (self._now, *basic[2], given), frame), frame)
        return
    try:
        call, operands = call_of("__getitem__", (self, Index(index)), {}, is_method=True)
    except Unsupported:
        _store_now(self, index, result_of(given) if type(given) is Node else given, frame)
        return
    write(self, call_node(write_of(Stored, call), (*operands, given), frame), frame)


def stored(memory: np.ndarray, index: Any, value: Any, frame: Any) -> None:
    """Store a value in an array that is there.  Warnings of a conversion name the line of the frame."""
    if type(value) in NUMBERS or getattr(value, "dtype", None) is memory.dtype:
        memory[index] = value
    else:
        caller_at_line(frame)(operator.setitem, (memory, index, value), NO_NAMES)


def _store_now(self: LazyArray, index: Any, value: Any, frame: Any) -> None:
    """Item assignment of a value that no expression holds, or by such an index."""
    changed = np.array(result_of(self._now))
    stored(changed, values(index), value, frame)
    write(self, leaf(changed, COMPUTED), frame)


def _compared(operation: Callable[[Any, Any], Any]) -> Callable[["Flat", Any], LazyArray]:
    def method(self: "Flat", other: Any) -> LazyArray:
        return operation(self[:], values(other))        # type: ignore[no-any-return]
    return method


class Flat:
    """``y.flat``: the elements in a row, which can be read and written by number, and iterated over."""

    def __init__(self, array: LazyArray):
        self._array = array
        self._place = 0

    @property
    def base(self) -> LazyArray:
        """The array whose elements they are."""
        return self._array

    def __len__(self) -> int:
        return self._array.size

    def __iter__(self) -> "Flat":
        return self

    def __next__(self) -> Any:
        if self._place >= len(self):
            raise StopIteration
        self._place += 1
        return self[self._place - 1]

    def __getitem__(self, index: Any) -> LazyArray:
        return array_of_node(leaf(np.asarray(self._array.evaluate()).flat[values(index)], COMPUTED))

    def __setitem__(self, index: Any, value: Any) -> None:
        array, value = self._array, values(value)
        if is_scalar(array):                            # which has elements, but is not changed
            result_of(array._now).flat[values(index)] = value
            return
        with writing:
            if array._view is None and array.is_evaluated and is_alone(array):
                array._node.result.flat[values(index)] = value
                array._node = leaf(array._node.result, COMPUTED)
                return
            changed = np.array(array.evaluate())
            changed.flat[values(index)] = value
            write(array, leaf(changed, COMPUTED), _frame(1))

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        return np.array(self._array.evaluate(), dtype).reshape(-1)

    def copy(self) -> LazyArray:
        """The elements as an array of one axis."""
        return self[:]

    __eq__ = _compared(operator.eq)                     # type: ignore[assignment]
    __ne__ = _compared(operator.ne)                     # type: ignore[assignment]
    __lt__ = _compared(operator.lt)
    __le__ = _compared(operator.le)
    __gt__ = _compared(operator.gt)
    __ge__ = _compared(operator.ge)


def _set_flat(self: LazyArray, value: Any) -> None:
    if is_scalar(self):
        result_of(self._now).flat = value               # NumPy says that it is not writable
    Flat(self)[...] = value


def install() -> None:
    """Give lazy arrays their indexing."""
    LazyArray.flat = property(Flat, _set_flat)                                      # type: ignore[attr-defined]
    LazyArray.__getitem__, LazyArray.__setitem__ = _getitem, _setitem               # type: ignore[attr-defined]


install()
