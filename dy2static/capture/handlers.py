"""Functions that a capture replaces by forms of its own, and what is known of those that wait for the host."""
from __future__ import annotations

import copy
import time
import warnings
from typing import TYPE_CHECKING, Any, Callable, Dict

import chainer
import numpy as np
from chainer.utils.cache import cached_property

from ..library_facts.python import LOGGING_CALLS
from ..runtime.array_gradients import array_gradients
from ..runtime.frames import warn
from ..symbolic.list_functions import FUNCTIONS
from ..symbolic.patches import REPLACEMENTS
from ..symbolic.values import SymbolicScalar
from .array_gradients import array_gradients as gradients_of_arrays
from .classes import TEXT
from .crf_calls import FIELDS
from .devices import DEVICE_HANDLERS
from .entered_reporters import REPORTER_HANDLERS
from .exit_stacks import EXIT_STACK_HANDLERS
from .function_copies import copied_deeply, copied_function
from .kernels import KERNEL_HANDLERS
from .log_calls import logged
from .recurrent_calls import RECURRENT
from .rule_states import STATE_HANDLERS
from .self_contained import is_self_contained
from .sequence_sizes import OF_SEQUENCES

if TYPE_CHECKING:
    from .protocols import Calls

NO_RESULT = frozenset((print, chainer.report, time.sleep, *LOGGING_CALLS))

#: Called on the host, these look at their arguments, fail only where the program is at an end, and change nothing.
HARMLESS = tuple(NO_RESULT | TEXT | frozenset((id,)))


#: Of these, those that do not even keep their arguments.
KEEPING_NOTHING = (print, time.sleep, id, *TEXT)


def _refuse(what: str) -> Callable:
    def handler(calls: Calls, function: Any, *args: Any, **kwargs: Any) -> Any:
        return calls.capture.abort(what)
    return handler


def refused_fetch(calls: Calls) -> Any:
    """The next examples of an iterator of Chainer's: it knows how far it is, and shuffles."""
    return calls.capture.abort("`__next__` is called inside the compiled function", hint="call `__next__` outside of it")


def warned(calls: Calls, function: Any, *args: Any, **kwargs: Any) -> None:
    """Leave a warning to the host."""
    return calls.capture.host.call(warn, args, kwargs, (), None)


def _forget(calls: Calls, function: Callable, called: Any, *xs: Any) -> Any:
    """``F.forget``: what it calls runs at every run and again in its backward, out of the sight of the capture."""
    if not is_self_contained(called):
        calls.capture.abort("F.forget calls a function that reads or changes more than its arguments",
                            hint="one that only calls functions of Chainer and NumPy on them is compiled")
    return calls.native(function)(called, *xs)


def _cached(calls: Calls, function: Callable, descriptor: Any, item: Any, cls: type) -> Any:
    """A ``chainer.utils.cache.cached_property`` of an object: one value with backprop, and one without."""
    known = item.__dict__.setdefault(descriptor.__name__, {})
    enabled = chainer.config.enable_backprop
    if enabled not in known:
        known[enabled] = calls.callee(descriptor.func)(item)
    return known[enabled]


def _is_scalar(calls: Calls, function: Callable, element: Any) -> Any:
    """``np.isscalar``, which needs no number to be known."""
    return type(element) is SymbolicScalar or calls.native(function)(element)


def _of_parent(calls: Calls, function: Callable, hyperparameter: Any, name: str) -> Any:
    """``Hyperparameter.__getattr__``, which each update of a Parameter calls several times: what the optimizer has."""
    if "_parent" not in hyperparameter.__dict__:
        raise AttributeError("_parent is not set up yet")
    return getattr(hyperparameter._parent, name)


#: What is called for these functions: ``handler(calls, function, *args, **kwargs)``.
HANDLERS: Dict[Any, Callable] = {
    warnings.warn: warned,
    copy.copy: copied_function,
    copy.deepcopy: copied_deeply,
    chainer.grad: lambda calls, function, *args, **kwargs: calls.capture.gradients.grad(*args, **kwargs),
    array_gradients: gradients_of_arrays,
    chainer.backward: _refuse("chainer.backward is called inside the compiled function"),
    **REPORTER_HANDLERS,
    **EXIT_STACK_HANDLERS,
    chainer._get_link_hooks: lambda calls, function: calls.capture.heap.makers.link_hooks(),
    chainer.functions.forget: _forget,
    cached_property.__get__: _cached,
    chainer.initializers.generate_array:
        lambda calls, function, *args, **kwargs: calls.capture.made_parameters.array(*args, **kwargs),
    chainer.optimizer.Hyperparameter.__getattr__: _of_parent,
    np.isscalar: _is_scalar,
    np.seterr: _refuse("NumPy's error handling is changed"),
    np.geterr: _refuse("NumPy's error handling is read"),
    np.geterrcall: _refuse("NumPy's error handling is read"),
    np.get_printoptions: _refuse("how NumPy prints arrays is read"),
    np.seterrcall: _refuse("NumPy's error handling is changed"),
    np.set_printoptions: _refuse("how NumPy prints arrays is changed"),
    np.printoptions: _refuse("how NumPy prints arrays is changed"),
}
HANDLERS.update({**FUNCTIONS, **DEVICE_HANDLERS, **KERNEL_HANDLERS, **RECURRENT, **FIELDS, **STATE_HANDLERS, **OF_SEQUENCES})
HANDLERS.update({function: lambda calls, function, *args: function(*args) for function in REPLACEMENTS})
HANDLERS.update({function: _refuse("what becomes of warnings is changed")
                 for function in (warnings.simplefilter, warnings.filterwarnings, warnings.resetwarnings)})
HANDLERS.update({function: logged for function in LOGGING_CALLS})
