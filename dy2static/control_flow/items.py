"""Items of Python's containers, chosen by numbers that only the run knows."""
from __future__ import annotations

import numbers
import operator
from typing import Any, Callable, List, Optional

import numpy as np

from ..capture_context import CaptureContext
from ..heap.dict_shadows import ShadowDict
from ..heap.list_shadows import ShadowList
from ..heap.object_shadows import ShadowBase
from ..heap.stand_ins import is_stand_in
from ..ir.size_bounds import not_below
from ..runtime import dy
from ..symbolic.known_texts import SymbolicText
from ..symbolic.lists import StagedList, symbolic_items
from ..symbolic.sizes import Size
from ..symbolic.values import SymbolicArray, SymbolicScalar, is_symbolic

#: Of longer containers an item is not chosen by one decision after the other.
_MOST = 32

#: What the ends of slices are that ``np.mgrid`` makes integers of.
_WHOLE = {type(None), int, Size}


def item(capture: CaptureContext, container: Any, index: Any) -> Any:
    """``container[index]``: a decision for each item; NotImplemented where Python itself can do it."""
    if capture is not None and type(container).__module__.startswith("numpy."):
        return _computed(capture, container, index)
    if type(index) is SymbolicText and isinstance(container, ShadowBase):
        return container[index.fix()]                               # a method of a library's, such as that of a Chain
    if type(index) is SymbolicScalar and index.kind == "py_float" and isinstance(container, (list, tuple, str, bytes)):
        return container[0.5]                                       # it has an `__index__`, and floats have none: Python says so
    number = None if capture is None else unknown_number(capture, index)
    if type(number) is SymbolicScalar and isinstance(container, dict) and hasattr(type(container), "__missing__"):
        return container[bool(number) if number.kind == "py_bool" else number.fix()]
    if type(container) is StagedList and container.slots is not None:
        return NotImplemented                                       # the list knows
    if number is not None and (type(container) is ShadowDict or isinstance(container, ShadowList)):
        container.check_place(number)
    if number is None or not _is_plain(container) or symbolic_items(container) is not None or len(container) > _MOST:
        return NotImplemented
    if isinstance(container, dict):
        return _of_dict(container, number)
    size, name = len(container), "tuple" if isinstance(container, tuple) else "list"

    def fail() -> Any:
        raise IndexError(f"{name} index out of range")
    if not size:
        return fail()
    bound = capture.bound_of(number)
    arrays = list(container)
    if size > 1 and type(arrays[0]) is SymbolicArray and all(type(x) is SymbolicArray and x.type == arrays[0].type for x in arrays):
        return _of_arrays(capture, arrays, number, bound, fail)
    if bound is not None and 0 < bound <= size:
        return _first([lambda place=place: number == place for place in range(bound - 1)], lambda place: container[place],
                      lambda: container[bound - 1])
    places: List[Callable[[], Any]] = [lambda place=place: dy.any_of(number == place, lambda: number == place - size)
                                       for place in range(size)]

    def chosen() -> Any:
        return _first(places[:-1], lambda place: container[place], lambda: container[size - 1])
    fits = dy.all_of(number >= -size, lambda: number < size)
    if capture.effects.is_protected():                          # the error is raised now, on one way through the function
        return chosen() if fits else fail()
    return dy.if_exp(fits, chosen, fail)


def _computed(capture: CaptureContext, container: Any, index: Any) -> Any:
    """What ``np.r_``, ``np.mgrid`` and their like make of an index; what sizes depend on is fixed, but sizes."""
    is_grid = container is np.mgrid or container is np.ogrid
    if is_grid and type(index) is slice and index.step in (None, 1) and {type(index.start), type(index.stop)} <= _WHOLE:
        return capture.numpy.call(np.arange, (index.start or 0, index.stop), {})
    lengths = [_length(part) for part in index] if is_grid and type(index) is tuple else [None]
    if None not in lengths:
        if container is np.mgrid:
            return capture.numpy.call(np.indices, (tuple(lengths),), {})
        rows = [capture.numpy.call(np.arange, (n,), {}) for n in lengths]
        found = [row[(None,) * k + (slice(None),) + (None,) * (len(rows) - 1 - k)] for k, row in enumerate(rows)]
        return type(container[:1, :1])(found)
    parts = [_with_known_ends(part) if type(part) is slice else part for part in (index if type(index) is tuple else (index,))]
    if any(type(part) is slice for part in parts) and not any(map(is_symbolic, parts)):
        return container[tuple(parts) if type(index) is tuple else parts[0]]
    return capture.numpy.call(operator.getitem, (container, tuple(parts) if type(index) is tuple else parts[0]), {})


def _length(part: Any) -> Any:
    """What a slice ends with that counts from zero; None for others."""
    is_count = type(part) is slice and part.start in (None, 0) and part.step in (None, 1) and type(part.stop) in (int, Size)
    return part.stop if is_count and not_below(part.stop, 0) else None


def _with_known_ends(span: slice) -> slice:
    return slice(*[end.fix() if type(end) is SymbolicScalar else int(end) if type(end) is Size else end
                   for end in (span.start, span.stop, span.step)])


def _of_arrays(capture: CaptureContext, arrays: List[SymbolicArray], number: Any, bound: Optional[int],
               fail: Callable[[], Any]) -> SymbolicArray:
    """One of several arrays of one type.  No decision has blocks, so that there may be many."""
    size = len(arrays)
    is_sure = bound is not None and 0 < bound <= size
    if not is_sure:
        fits = dy.all_of(number >= -size, lambda: number < size)
        if not capture.effects.is_protected():
            dy.cond(fits, tuple, fail, ())
        elif not fits:
            fail()
    found = arrays[bound - 1 if is_sure else -1]
    for place in reversed(range((bound if is_sure else size) - 1)):
        is_it = number == place if is_sure else (number == place) | (number == place - size)
        found = capture.staging.either(is_it, arrays[place], found)
    return found


def got(capture: CaptureContext, method: Callable, key: Any, default: Any = None) -> Any:
    """``get`` of a dict: a decision for each key, if only the run knows the number that is looked up."""
    container, number = method.__self__, unknown_number(capture, key)     # type: ignore[attr-defined]
    if number is None or not _is_plain(container) or len(container) > _MOST:
        return method(key, default)
    if type(container) is ShadowDict:
        container.check_place(number)
    return _of_dict(container, number, lambda: default)


def _of_dict(container: dict, number: Any, otherwise: Optional[Callable[[], Any]] = None) -> Any:
    keys = [key for key in container if isinstance(key, (numbers.Number, np.bool_))]     # `{4.0: x}` has a 4

    def raising() -> Any:
        raise KeyError(number)
    fail = otherwise or raising
    tests: List[Callable[[], Any]] = [lambda key=key: number == key for key in keys]
    if type(number) is SymbolicScalar and number.kind == "py_bool" and {True, False}.issubset(keys):
        return _first(tests[:-1], lambda place: container[keys[place]], lambda: container[keys[-1]]) if len(keys) == 2 \
            else _first(tests, lambda place: container[keys[place]], fail)
    return _first(tests, lambda place: container[keys[place]], fail)


def _first(tests: List[Callable[[], Any]], chosen: Callable[[int], Any], otherwise: Callable[[], Any], place: int = 0) -> Any:
    """What belongs to the first test that holds."""
    if place == len(tests):
        return otherwise()
    return dy.if_exp(tests[place](), lambda: chosen(place), lambda: _first(tests, chosen, otherwise, place + 1))


def unknown_number(capture: CaptureContext, index: Any) -> Any:
    """An integer that only the run knows; None for any other index."""
    if type(index) is Size:
        return index.number
    if type(index) is SymbolicScalar:
        return index if index.text is None and index.kind in ("py_int", "py_bool") else None
    if type(index) is SymbolicArray and index.shape == () and index.dtype.kind in "iu" and capture.decides(index):
        return index
    return None


def _is_plain(container: Any) -> bool:
    """Whether reading an item is what Python's own containers do."""
    base = next((base for base in (list, tuple, dict) if isinstance(container, base)), None)
    return base is not None and (type(container).__getitem__ is base.__getitem__
                                 or is_stand_in(type(container)))
