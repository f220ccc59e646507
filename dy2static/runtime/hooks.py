"""Callbacks from the run time to the compiler; only `pipeline.install` and `symbolic` set them."""
from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Set, Tuple

if TYPE_CHECKING:
    from ..capture_context import CaptureContext


def _not_installed(*_: Any, **__: Any) -> Any:
    raise RuntimeError("dy2static.runtime was used before dy2static.pipeline.install()")


#: ``convert(function)`` gives the staged form of a Python function.
convert: Callable[..., Any] = _not_installed

#: ``compile_backward(segment, targets, given, again)`` gives a `runtime.segment.BackwardProgram`.
compile_backward: Callable[..., Any] = _not_installed

#: ``backward_batch()`` gives what makes several of these at the same time: ``begin`` with the same arguments, then ``finish()``.
backward_batch: Callable[[], Any] = _not_installed

#: The types of values that are known at run time only: where one decides, `dy` asks the handler of that name.
symbolic_types: Set[type] = set()

#: ``handlers[name](capture, *arguments)`` takes over ``_dy.name``; it may give NotImplemented to decline.
handlers: Dict[str, Callable[..., Any]] = {}


#: What gives the array that an argument stands for, by the type of such arguments: lazy arrays, where those are used.
values: Dict[type, Callable[[Any], Any]] = {}


def with_values(args: Tuple, kwargs: Mapping[str, Any]) -> Tuple[Tuple, Mapping[str, Any]]:
    """Arguments with arrays in place of what stands for them."""
    def value(given: Any) -> Any:
        find = values.get(type(given))
        return given if find is None else find(given)
    return tuple(map(value, args)), {name: value(given) for name, given in kwargs.items()}


class Staging(threading.local):
    """The capture that runs on this thread, or what records the functions it applies, if any."""

    capture: Optional[CaptureContext] = None
    observer: Optional[Any] = None


#: ``stage.capture`` is asked by `dy` for everything that may be symbolic.
stage = Staging()
