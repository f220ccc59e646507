"""NumPy's protocols: calls of its ufuncs and functions on lazy arrays."""
from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from ..errors import CaptureError
from .arrays import LazyArray, array_of_node, array_of_op
from .evaluation import tell
from .forms import Unsupported, call_of, operand
from .functions import (
    CHANGING,
    CHANGING_METHODS,
    FUNCTIONS,
    LATE_VIEWS,
    LOOKS,
    MAYBE_VIEWS,
    READ_ONLY_VIEWS,
    REFUSED_METHODS,
    VIEWS,
)
from .nodes import COMPUTED, NUMBERS, TRACED, call_node, leaf, writing
from .views import is_scalar, see_owner, view_in_memory, view_of, write
from .writes import Out, write_of

_frame = sys._getframe


def array_ufunc(self: LazyArray, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """``LazyArray.__array_ufunc__``."""
    frame = _frame(1)
    if method != "__call__":
        return called(getattr(ufunc, method), inputs, kwargs, frame, method != "at", method == "at")
    if kwargs or ufunc.nout > 1:
        return called(ufunc, inputs, kwargs, frame, ufunc.nout == 1)
    args = []
    for item in inputs:
        kind = type(item)
        if kind is LazyArray:
            args.append(item._node if item._view is None else item._now)
        elif kind in NUMBERS:
            args.append(item)
        else:
            made = operand(item)
            if made is None:
                if hasattr(item, "__array_ufunc__"):    # a masked array, or another object that decides itself
                    return NotImplemented
                return at_once(ufunc, inputs, {}, frame, False)     # NumPy knows how to convert it, or raises
            args.append(made)
    return array_of_op(ufunc, tuple(args), frame)


def array_function(self: LazyArray, function: Callable[..., Any], kinds: Any, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    """``LazyArray.__array_function__``."""
    if function is np.where and len(args) + len(kwargs) == 1:
        return array_function(self, np.nonzero, kinds, args or (kwargs["condition"],), {})
    if function in _BUILT and "out" not in kwargs:
        frame = _frame(1)
        try:
            call, operands = call_of(function, args, kwargs)
        except Unsupported:
            return at_once(function, args, kwargs, frame, False)
        return array_of_op(call, operands, frame)
    if function in _OF_TYPES and len(args) == 1 and not kwargs and type(args[0]) is LazyArray:
        return getattr(args[0], function.__name__)
    if function is np.nan_to_num and not (args[1] if len(args) > 1 else kwargs.get("copy", True)):
        return called(function, args, kwargs, _frame(1), False, True)
    return called(function, args, kwargs, _frame(1), function in FUNCTIONS, function in CHANGING)


_OF_TYPES = frozenset({np.shape, np.ndim, np.size})

#: Functions whose calls are operations, and see no memory of their operands.
_BUILT = FUNCTIONS - VIEWS - CHANGING - _OF_TYPES - {np.nan_to_num}


def called(function: Any, args: Tuple, kwargs: Dict[str, Any], frame: Any, is_lazy: bool, is_changing: bool = False) -> Any:
    """The lazy result of a call of a function of NumPy's; what enters no expression is called at once.

    is_changing: whether the function writes into its first argument.
    """
    out = _only(kwargs.get("out"))
    if is_lazy and out is None:
        return _lazily(function, args, kwargs, frame)
    if is_lazy and type(out) is LazyArray and not is_scalar(out):
        with writing:
            try:
                call, operands = call_of(function, args, {**_without_out(kwargs), "out": out})
            except Unsupported:
                return at_once(function, args, kwargs, frame, is_changing)
            write(out, call_node(write_of(Out, call), operands, frame), frame)
        return out
    return at_once(function, args, kwargs, frame, is_changing)


def _only(out: Any) -> Any:
    """What is given as ``out``, if it is one array."""
    return out[0] if type(out) is tuple and len(out) == 1 else out


def _without_out(kwargs: Dict[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in kwargs.items() if name != "out"}


def _lazily(function: Any, args: Tuple, kwargs: Dict[str, Any], frame: Any) -> Any:
    try:
        call, operands = call_of(function, args, kwargs)
    except Unsupported:
        return at_once(function, args, kwargs, frame, False)
    base = next((item for item in args if type(item) is LazyArray), None) if function in VIEWS else None
    if base is not None and (base is args[0] or len(operands) == 1):
        return view_of(base, call, operands[1:], frame, unsure=function in MAYBE_VIEWS, frozen=function in READ_ONLY_VIEWS,
                       late=function in LATE_VIEWS)
    return array_of_op(call, operands, frame)


# --- what is called at once -------------------------------------------------------------------------------------------------------

def at_once(function: Any, args: Tuple, kwargs: Dict[str, Any], frame: Any, is_changing: bool) -> Any:
    """Call a function on values.  Lazy arrays that it writes to get new versions."""
    if not is_changing and kwargs.get("out") is None:
        return _called_now(function, args, kwargs, frame, is_changing)
    with writing:
        return _called_now(function, args, kwargs, frame, is_changing)


def _called_now(function: Any, args: Tuple, kwargs: Dict[str, Any], frame: Any, is_changing: bool) -> Any:
    outs = kwargs.get("out")
    several = outs if type(outs) is tuple else (outs,)
    changed: List[Tuple[LazyArray, np.ndarray]] = []

    def copied(item: Any) -> Any:
        if type(item) is LazyArray and not is_scalar(item):     # scalars cannot be written to, as NumPy says
            changed.append((item, np.array(item.evaluate())))
            return changed[-1][1]
        return item
    if outs is not None:
        made = tuple([copied(each) for each in several])
        kwargs = {**kwargs, "out": made if type(outs) is tuple else made[0]}
    if is_changing and args:
        args = (copied(args[0]), *args[1:])
    if function not in LOOKS and outs is None and not is_changing and any_of((args, kwargs), lambda array: not array.is_evaluated):
        name = getattr(function, "__name__", str(function))
        tell(f"{name} of a lazy array is computed at once", "no expression holds it")
    def call() -> Any:
        return function(*values(args), **values(kwargs))
    found = call()
    if any([found is each for each in several if each is not None]):
        return found                                    # an array of the caller's that was to be written
    for array, copy in changed:
        write(array, leaf(copy, COMPUTED), frame)
    if function not in LOOKS and any_of((args, kwargs), lambda array: array._now.depth >= TRACED) and _has_floats(found):
        raise CaptureError(f"{getattr(function, '__name__', function)} has no gradient: no expression holds it",
                           hint="take values out with numpy.asarray where they are constants")
    base = next((item for item in args if type(item) is LazyArray), None)
    return _wrapped(_in_owner(found, base, call), changed, base)


def _in_owner(found: Any, base: Optional[LazyArray], call: Callable[[], Any]) -> Any:
    """What a call gave; called once more if it sees a view, which then sees the array that has the memory."""
    if base is None or base._view is None or not _sees(found, base.evaluate()):
        return found
    see_owner(base)
    return call()


def _sees(found: Any, memory: Any) -> bool:
    """Whether arrays in what a call gave see the memory of another one."""
    if isinstance(found, (tuple, list)):
        return any([_sees(part, memory) for part in found])
    return isinstance(found, np.ndarray) and np.may_share_memory(found, memory)


def any_of(item: Any, test: Callable[[LazyArray], bool]) -> bool:
    """Whether something holds of a lazy array among arguments."""
    if type(item) is LazyArray:
        return test(item)
    parts = item.values() if type(item) is dict else item if type(item) in (tuple, list) else ()
    return any([any_of(part, test) for part in parts])


def _has_floats(found: Any) -> bool:
    """Whether there are arrays of floats in what a call gave."""
    if isinstance(found, tuple) or type(found) is list:
        return any(map(_has_floats, found))
    return isinstance(found, (np.ndarray, np.generic)) and found.dtype.kind in "fc"


def values(item: Any) -> Any:
    """Arguments with the values of lazy arrays in their places."""
    kind = type(item)
    if kind is LazyArray:
        return item.evaluate()
    if kind in (tuple, list):
        return kind([values(part) for part in item])
    if kind is dict:
        return {name: values(part) for name, part in item.items()}
    if kind is slice:
        return slice(values(item.start), values(item.stop), values(item.step))
    return item


def _wrapped(found: Any, changed: List[Tuple[LazyArray, np.ndarray]], base: Optional[LazyArray]) -> Any:
    """What a call gave, with lazy arrays in place of arrays; those that see memory of the first operand go on seeing it."""
    for array, copy in changed:
        if found is copy:
            return array
    if type(found) is np.ndarray or isinstance(found, np.generic) and not isinstance(found, np.bool_):
        memory = base.evaluate() if base is not None else None
        if base is not None and isinstance(found, np.ndarray) and np.may_share_memory(found, memory):
            return view_in_memory(base, found)
        return array_of_node(leaf(found, COMPUTED))
    if type(found) in (tuple, list) or isinstance(found, tuple) and hasattr(found, "_make"):
        parts = [_wrapped(part, changed, base) for part in found]
        return found._make(parts) if hasattr(found, "_make") else type(found)(parts)
    return found


def other_attribute(self: LazyArray, name: str) -> Any:
    """``LazyArray.__getattr__``: attributes and methods of arrays that have no lazy form are those of the value."""
    if name.startswith("__") or not hasattr(np.ndarray, name):
        raise AttributeError(f"'LazyArray' object has no attribute {name!r}")
    if name in REFUSED_METHODS:
        raise AttributeError(f"{name} of a lazy array: only writes change it (use np.resize, reshape, or read-only copies)")
    if name in CHANGING_METHODS and callable(getattr(np.ndarray, name)) and not is_scalar(self):
        # (NumPy 2 tells what is no method any more)
        return lambda *args, **kwargs: at_once(getattr(np.ndarray, name), (self, *args), kwargs, _frame(1),
                                               name != "byteswap" or bool((*args, *kwargs.values(), False)[0]))
    found = getattr(self.evaluate(), name)
    if not callable(found):
        return found

    def method(*args: Any, **kwargs: Any) -> Any:
        def call() -> Any:
            return getattr(self.evaluate(), name)(*values(args), **values(kwargs))
        return _wrapped(_in_owner(call(), self, call), [], self)
    return method


def install() -> None:
    """Give lazy arrays the protocols."""
    LazyArray.__array_ufunc__ = array_ufunc             # type: ignore[attr-defined]
    LazyArray.__array_function__ = array_function       # type: ignore[attr-defined]
    LazyArray.__getattr__ = other_attribute             # type: ignore[attr-defined]


install()
