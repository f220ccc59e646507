"""What runs when, as a table: for each kind of callable, what becomes of its calls.  `calls` carries that out."""
from __future__ import annotations

import functools
import operator
import pdb
import types
from typing import TYPE_CHECKING, Any, Callable, Tuple

import chainer
import numpy as np

from ..heap.function_attributes import is_generic
from ..heap.object_shadows import ShadowBase
from ..heap.objects import ShadowMeta
from ..heap.ownership import is_library
from ..library_facts.generators import GENERATORS
from ..runtime import backprop, updating
from ..runtime.staticness import StaticCallable
from ..symbolic.host_objects import BoundHostMethod, SymbolicObject
from ..symbolic.known_texts import TextMethod
from ..symbolic.values import ArrayMethod, SymbolicArray, SymbolicVariable
from .communication import average, communicates, is_average, refuse
from .devices import converter, is_converter
from .generic_functions import implementation
from .kernels import is_kernel, kernel
from .log_calls import asks_log, is_log_method, logged
from .placement import draws_on_gpu, function_of_numpy, of_device
from .policy import Rule, itself
from .weak_references import is_weak_reference, referent

if TYPE_CHECKING:
    from .protocols import Calls

_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
_DEBUGGERS = frozenset(("pdb", "bdb", "ipdb", "IPython.core.debugger"))

#: Objects of ours that are called.
_CALLABLE = (SymbolicObject, BoundHostMethod, ArrayMethod, TextMethod)

#: What is builtin but no function: there are kinds of that type, too.
_BUILTIN = (types.MethodWrapperType, types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)
_ORDER = type(functools.cmp_to_key(max))
_GETTERS = (operator.itemgetter, operator.attrgetter)

#: Chainer's methods, by those of ours that stand in their places.
ORIGINALS = {**backprop.ORIGINALS, **updating.ORIGINALS}


def target_of(function: Any) -> Any:
    """A function itself, of a bound method."""
    return function.__func__ if type(function) is types.MethodType else function


def _is_debugger(function: Any) -> bool:
    return type(function) in _FUNCTIONS and (
        function is breakpoint or function == pdb.set_trace or function.__module__ in _DEBUGGERS)


def _partial(calls: Calls, function: functools.partial) -> Callable[..., Any]:
    return functools.partial(calls.callee(function.func), *function.args, **function.keywords)


#: What runs when.
RULES: Tuple[Rule, ...] = (
    Rule("what `functools.cmp_to_key` gives", "now",           # first: it has no hash
         lambda calls, function: type(function) is _ORDER, itself),
    Rule("callables with a registered lowering", "their lowering",
         lambda calls, function: calls.lowering_of(function) is not None, lambda calls, function: calls.lowered(function)),
    Rule("methods of Chainer that dy2static replaces", "the original method",
         lambda calls, function: type(target_of(function)) is types.FunctionType and target_of(function) in ORIGINALS,
         lambda calls, function: calls.original(function)),
    Rule("debuggers", "the capture stops",
         lambda calls, function: _is_debugger(function),
         lambda calls, function: lambda *args, **kwargs: calls.capture.abort("a debugger is called here", final=True)),
    Rule("functions of CuPy that NumPy has, too", "typed by running NumPy's on stand-ins; a `numpy_call` node that calls CuPy's",
         lambda calls, function: function_of_numpy(calls, function) is not None, of_device),
    Rule("functions of `cupy.random`", "typed by the same draw of NumPy's; a host node",
         lambda calls, function: draws_on_gpu(calls, function),
         lambda calls, function: functools.partial(calls.draws.draw_on_gpu, function)),
    Rule("CUDA kernels", "the capture stops; those of Chainer's hooks become arithmetic",
         is_kernel, kernel),
    Rule("logging methods", "a host node; dropped where the logger is off for their level, guarded",
         lambda calls, function: is_log_method(function),
         lambda calls, function: functools.partial(logged, calls, function)),
    Rule("`isEnabledFor` of a logger", "a host node that gives a bool",
         lambda calls, function: is_log_method(function, ("isEnabledFor",)), asks_log),
    Rule("draws from the user's generators", "typed by the same draw from another generator; a host node",
         lambda calls, function: type(function) is BoundHostMethod and type(function.owner.real) in GENERATORS,
         lambda calls, function: functools.partial(calls.draws.draw, function, GENERATORS[type(function.owner.real)])),
    Rule("`multi_node_mean_grad` of a communicator of ChainerMN", "a host node that averages the gradients",
         lambda calls, function: is_average(function), average),
    Rule("functions of `chainermn.functions`, Links of `chainermn.links`", "the capture stops",
         lambda calls, function: communicates(function), refuse),
    Rule("weak references, but those to arrays and Variables", "now; a guard says what they refer to", is_weak_reference, referent),
    Rule("shadow classes, methods of arrays and strings, `SymbolicObject`s", "their own `__call__`",
         lambda calls, function: isinstance(function, ShadowMeta) or type(function) in _CALLABLE, itself),
    Rule("generic functions of `functools.singledispatch`", "the implementation for the type of the first argument, guarded",
         lambda calls, function: type(function) is types.FunctionType and is_generic(function), implementation),
    Rule("functions of the user, `chainer.links`, `Link`, `Sequential`, `contextlib`",
         "converted; functions of `chainer.functions` and NumPy, and pure functions: now; all others: a host node",
         lambda calls, function: type(function) is types.FunctionType, lambda calls, function: calls.function(function)),
    Rule("their methods", "as the function, or by the object to which they are bound",
         lambda calls, function: type(function) is types.MethodType, lambda calls, function: calls.method(function)),
    Rule("results of `to_static` and `load`", "part of this graph",
         lambda calls, function: isinstance(function, StaticCallable),
         lambda calls, function: function.captured(calls.capture)),
    Rule("`functools.partial`", "as the function that it calls",
         lambda calls, function: type(function) is functools.partial, _partial),
    Rule("classes", "`__init__` and `__new__` of the user's classes are converted",
         lambda calls, function: isinstance(function, type),
         lambda calls, function: calls.classes.callee(function)),
    Rule("objects of the user's classes", "their `__call__`",
         lambda calls, function: isinstance(function, ShadowBase), lambda calls, function: calls.shadow(function)),
    Rule("Chainer's converters", "their `__call__`", lambda calls, function: is_converter(function), converter),
    Rule("NumPy", "typed by running it on stand-ins; a `numpy_call` node",
         lambda calls, function: type(function) in (np.ufunc, type(np.sum)), lambda calls, function: calls.native(function)),
    Rule("builtin functions and methods", "by the table of `capture/builtin_calls.py`",
         lambda calls, function: isinstance(function, types.BuiltinFunctionType) or type(function) in _BUILTIN,
         lambda calls, function: calls.builtins.callee(function)),
    Rule("Variables and arrays, `itemgetter` and `attrgetter`, objects created in the call", "now",
         lambda calls, function: isinstance(function, (SymbolicVariable, SymbolicArray, chainer.Function))
         or type(function) in _GETTERS or not is_library(type(function).__module__), itself),
    Rule("everything else", "a host node", lambda calls, function: True, lambda calls, function: calls.host(function)),
)
