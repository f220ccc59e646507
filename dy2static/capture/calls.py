"""What runs when: which callables are converted, which run at capture, and which wait for the host at every run."""
from __future__ import annotations

import collections
import copy
import dis
import functools
import itertools
import logging
import operator
import os
import pathlib
import pdb
import random
import time
import types
import warnings
from typing import Any, Callable, Dict, Set, Tuple

import chainer
import numpy as np

from ..ir.types import type_of
from ..lowering.registration import registered
from ..runtime import backprop, updating
from ..runtime.frames import warn
from ..runtime.staticness import StaticCallable
from ..symbolic import patches, stand_ins
from ..symbolic.known_texts import SymbolicText, TextKeyed, TextMethod, fixed, is_expression
from ..symbolic.lists import FUNCTIONS, StagedList, length
from ..symbolic.texts import is_unknown_error
from ..symbolic.values import (
    ArrayMethod,
    BoundHostMethod,
    SymbolicArray,
    SymbolicObject,
    SymbolicScalar,
    SymbolicVariable,
    is_symbolic,
)
from ..world.collection_shadows import COLLECTIONS, ShadowDeque
from ..world.objects import ShadowMeta
from ..world.shadows import ShadowBase, ShadowDict, ShadowList, ShadowSet
from ..world.trust import is_converted, is_generated, is_immutable, is_left_alone, is_library, is_library_class
from .classes import COLLECTION_KINDS, PURE_MODULES, TEXT, Classes
from .draws import GENERATORS, Draws
from .function_copies import copied_function
from .number_calls import NumberCalls
from .self_contained import is_self_contained

_HOST_BUILTINS = frozenset((print, open, input, exec, eval, compile, globals, locals, id, __import__))
_INSPECTING = frozenset((isinstance, hasattr, getattr, callable))
_PLAIN_OWNERS = (str, bytes, int, float, complex, bool, tuple, list, dict, set, frozenset, range, slice, type, np.dtype,
                 types.GeneratorType, np.ufunc, types.FunctionType, types.MethodType)
_NUMBER_MODULES = frozenset(("math", "operator", "_operator"))
#: What these are given to call is called by C code: it must be what the capture would call.
_CALLING = frozenset((map, filter, functools.reduce, itertools.starmap, itertools.takewhile, itertools.dropwhile,
                      itertools.filterfalse, itertools.accumulate, itertools.groupby))

_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
_DEBUGGERS = frozenset(("pdb", "bdb", "ipdb", "IPython.core.debugger"))

#: Modules with classes whose class methods look at the clock or the system.
_WITH_CLOCKS = frozenset(("datetime", "_datetime", "_pydatetime", "pathlib", "pathlib._local", "uuid"))

#: Stand-ins of ours: their methods do the right thing already.
_OWN = (ShadowDict, ShadowList, ShadowSet, StagedList, TextKeyed, SymbolicArray, SymbolicScalar, *COLLECTIONS.values())

#: Chainer's methods, by those of ours that stand in their places.
_ORIGINALS = {**backprop.ORIGINALS, **updating.ORIGINALS}

#: Functions of the whole state of NumPy's generator, which are no methods of it.
_STATES = (np.random.seed, np.random.get_state, np.random.set_state)

#: Functions that answer yes or no, as the world is when they are called.
_ASKING = (os.path.exists, os.path.isfile, os.path.isdir)

#: What functions with a clock give.
_CLOCKS: Dict[Any, Tuple] = {f: (type_of(0.0),) for f in (time.time, time.perf_counter, time.monotonic, time.process_time)}


class Calls(Classes, Draws, NumberCalls):
    """The dispatch of one capture.  entry: the function that it is of."""

    entry: Any = None

    def __init__(self, capture: Any):
        self.capture = capture
        self.staged_codes = _StagedCodes()
        self._lowering: Set[int] = set()                # callables whose own lowering runs
        self.reporting = _reporting()

    def callee(self, function: Any) -> Callable:
        """What to call for ``function``."""
        self.capture.world.rely_on_names(function)
        kind = type(function)
        target = function.__func__ if kind is types.MethodType else function
        lowering = registered(target)
        if lowering is not None and not isinstance(target, type) and id(target) not in self._lowering:
            given = (function.__self__,) if kind is types.MethodType else ()
            return functools.partial(self._lowered, function, target, lowering, given)
        if type(target) is types.FunctionType and target in _ORIGINALS:
            original = _ORIGINALS[target]
            return self.callee(original if target is function else types.MethodType(original, function.__self__))
        if kind in _FUNCTIONS and (function is breakpoint or function == pdb.set_trace or function.__module__ in _DEBUGGERS):
            return lambda *args, **kwargs: self.capture.abort("a debugger is called here", final=True)
        if kind is BoundHostMethod and isinstance(function.owner.real, logging.Logger) and function.name in _LOGGED:
            return functools.partial(_host_without_result, self, function)
        if kind is BoundHostMethod and isinstance(function.owner.real, logging.Logger) and function.name == "isEnabledFor":
            return lambda level: self.capture.host_call(function, (level,), {}, (type_of(True),), name="isEnabledFor")
        if kind is BoundHostMethod and type(function.owner.real) in GENERATORS:
            return functools.partial(self._draw, function, GENERATORS[type(function.owner.real)])
        if isinstance(function, ShadowMeta) or kind in (SymbolicObject, BoundHostMethod, ArrayMethod, TextMethod):
            return function
        if kind is types.FunctionType:
            return self._function(function)
        if kind is types.MethodType:
            return self._method(function)
        if isinstance(function, StaticCallable):
            return function.captured(self.capture)
        if kind is functools.partial:
            inner = self.callee(function.func)
            return functools.partial(inner, *function.args, **function.keywords)
        if isinstance(function, type):
            return self._class(function)
        if isinstance(function, ShadowBase):
            return self._callable_object(function)
        if kind in (np.ufunc, type(np.sum)):
            return self.native(function)
        if isinstance(function, types.BuiltinFunctionType) or kind in (             # there are kinds of that type
                types.MethodWrapperType, types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType):
            return self._builtin(function)
        if isinstance(function, (SymbolicVariable, SymbolicArray)) or kind in (operator.itemgetter, operator.attrgetter):
            return function
        if not is_library(type(function).__module__) or isinstance(function, (chainer.Function,)):
            return function                              # made during the capture: its methods are staged already
        return self.host(function)

    def _lowered(self, function: Any, target: Any, lowering: Callable, given: Tuple, *args: Any, **kwargs: Any) -> Any:
        """What the user's lowering gives in place of a call; where that is NotImplemented, the call itself."""
        self._lowering.add(id(target))
        try:
            result = self.callee(lowering)(*given, *args, **kwargs)
            return self.callee(function)(*args, **kwargs) if result is NotImplemented else result
        finally:
            self._lowering.discard(id(target))

    # --- Python functions ---------------------------------------------------------------------------------------------

    def _function(self, function: types.FunctionType) -> Callable:
        if is_generated(function):
            return functools.partial(self._initialise, function) if function.__name__ == "__init__" else function
        if function.__code__ in self.staged_codes:
            return function
        if is_left_alone(function, self.entry):
            return self.host(function)
        if function in _ASKING:
            return lambda *args: self.capture.host_call(function, args, {}, (type_of(True),), name=function.__name__)
        handler = _HANDLERS.get(function)
        if handler is not None:
            return functools.partial(handler, self, function)
        if is_converted(function):
            return self.capture.staged(function)
        name = function.__module__ or ""
        if name.startswith(("chainer.", "numpy.", "six.")) or name in ("chainer", "numpy", "six"):
            if name.startswith(_HOST_LIBRARIES):
                return self.host(function)
            return self.native(function)
        return self.native(function) if name in PURE_MODULES else self.host(function)

    def _method(self, method: types.MethodType) -> Callable:
        function, owner = method.__func__, method.__self__
        if owner is np.random.mtrand._rand:             # bound methods in newer versions of NumPy
            return functools.partial(self._draw, method, np.random.RandomState)
        if isinstance(owner, (np.random.RandomState, np.random.Generator)):
            return self.host(method)
        if isinstance(owner, random.Random) and owner is random.random.__self__:
            return functools.partial(self._draw, method, random.Random)
        if isinstance(function, types.FunctionType):
            if function in _HANDLERS:
                return functools.partial(_HANDLERS[function], self, function, owner)
            if function.__code__ in self.staged_codes:
                return method
            if is_left_alone(function, self.entry):
                return self.host(method)
            if is_generated(function):
                return functools.partial(self._function(function), owner)
            if is_converted(function):
                return functools.partial(self.capture.staged(function), owner)
            if isinstance(owner, SymbolicVariable) or type(owner) in _OWN:
                return functools.partial(self._sort, method) if function.__name__ == "sort" else method
            if isinstance(owner, (ShadowBase, chainer.FunctionNode, chainer.Function, type, chainer.Variable)):
                return self.native(method)
            if is_immutable(owner) and (not isinstance(owner, pathlib.PurePath) or
                                        pathlib.PurePath.__dict__.get(function.__name__) is function):
                return self.native(method)
            home = type(owner).__module__
            if (function.__module__ or "") in PURE_MODULES and (home in PURE_MODULES or not is_library(home)):
                return self.native(method)              # but not of `os.environ`, whose methods are those of any mapping
            return self.host(method)
        if isinstance(function, StaticCallable):
            return functools.partial(self.callee(function.python_function), owner)
        return functools.partial(self.callee(function), owner)

    def _callable_object(self, shadow: ShadowBase) -> Callable:
        cls = type(shadow)._dy2static_class
        for base in cls.__mro__:
            if "__call__" in base.__dict__:
                return self.callee(types.MethodType(base.__dict__["__call__"], shadow))
        raise TypeError(f"{cls.__name__!r} object is not callable")

    def _text(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        if getattr(function, "__name__", "") == "join" and args:
            args = (list(args[0]),)
            found: Any = args[0]
        else:
            found = (*args, *kwargs.values())
        if any(is_symbolic(x) and not is_expression(x) or is_unknown_error(x) for x in found):
            return self.capture.host_call(function, args, kwargs)
        if any(map(is_expression, found)):
            return self.capture.of_texts(function, tuple(map(_as_tuple, args)), kwargs)
        return function(*args, **kwargs)

    # --- builtin functions and methods --------------------------------------------------------------------------------

    def _builtin(self, function: Any) -> Callable:
        if function in TEXT:
            return functools.partial(self._text, function)
        if function is len:
            return functools.partial(length, self, function)
        if function is hash:
            return self._hash
        if function is warnings.warn:
            return functools.partial(_warn, self, function)
        if function in _INSPECTING:
            return functools.partial(self._inspect, function)
        if function in _HOST_BUILTINS:
            return self.host(function)
        if function in (max, min):
            return functools.partial(self._extreme, function)
        if function in (any, all):
            return functools.partial(self._of_truths, function)
        if function is sorted:
            return functools.partial(self._sorted, function)
        if any(function is other for other in _STATES):
            return self.host(function)
        if function in _CLOCKS:
            return lambda *args, **kwargs: self.capture.host_call(
                function, args, kwargs, _CLOCKS[function], name=f"time.{function.__name__}")
        owner = getattr(function, "__self__", None)
        if isinstance(owner, np.random.RandomState) and owner is np.random.mtrand._rand:
            return functools.partial(self._draw, function, np.random.RandomState)
        if isinstance(owner, random.Random):
            return functools.partial(self._draw, function, random.Random)
        if isinstance(owner, BaseException):
            return function                             # made here; only holds its arguments, whatever they are
        module = getattr(function, "__module__", None) or ""
        if isinstance(owner, types.ModuleType) or owner is None:
            if module in _NUMBER_MODULES or function in (abs, round, pow, divmod):
                return functools.partial(self._of_numbers, function)
            pure = module in PURE_MODULES or module.startswith(("numpy.core", "numpy._core")) or owner is None
            return self.native(function) if pure else self.host(function)
        if type(owner) in _OWN or isinstance(owner, ShadowBase) or is_symbolic(owner):
            return functools.partial(self._sort, function) if function.__name__ == "sort" else function
        if isinstance(owner, str) and function.__name__ in ("format", "join"):
            return functools.partial(self._text, function)
        if isinstance(owner, type) and is_library_class(owner) and owner.__module__ in _WITH_CLOCKS:
            return self.host(function)                  # `datetime.now`
        if isinstance(owner, _PLAIN_OWNERS) or not is_library_class(type(owner)) or is_immutable(owner) or \
                type(owner).__module__ in ("builtins", "itertools", "collections", "functools"):
            return self.native(function)
        return self.host(function)

    def _inspect(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """A question about what kind of object something is: not answered for what only the host knows."""
        kind = type(args[0]) if args else None
        if kind is SymbolicText and function is not getattr:
            return function(args[0].hint, *args[1:])
        if args:
            self.capture.staging.need_exact(args[0])
        known = kind is SymbolicObject and args[0].real is not SymbolicObject.Missing and function is isinstance
        if (kind is SymbolicObject and not known or kind is BoundHostMethod) and not (function is getattr and len(args) == 2):
            self.capture.abort(f"{function.__name__}() of an object that is known at run time only", of_host=True)
        if function is isinstance and len(args) == 2 and isinstance(args[0], ShadowBase):
            for cls in args[1] if type(args[1]) is tuple else args[1:]:
                self.capture.world.is_subclass(kind, cls)
        if kind is ShadowDeque and function is isinstance:
            return self.native(function)(collections.deque(), *args[1:])     # the shadow is a list
        return self.native(function)(*args, **kwargs)

    def _hash(self, item: Any) -> int:
        """``hash(item)``, which may be that of the very object."""
        if isinstance(item, ShadowBase) and type(item).__hash__ is object.__hash__:
            item = self.capture.world.identified(item)
        return hash(item)

    # --- the three ways to call -----------------------------------------------------------------------------------------

    def host(self, function: Any) -> Callable:
        """Wait for the host."""
        def later(*args: Any, **kwargs: Any) -> Any:
            types_ = () if function in _NO_RESULT else None
            structure = None if function in _NO_RESULT else stand_ins.LEAF
            return self.capture.host_call(function, args, kwargs, types_, structure)
        return later

    def native(self, function: Any) -> Callable:
        """Run now; arrays that it makes belong to the graph, functions it gets are staged."""
        is_numpy = (getattr(function, "__module__", None) or "").partition(".")[0] == "numpy" or isinstance(function, np.ufunc)

        def now(*args: Any, **kwargs: Any) -> Any:
            if function is functools.partial:
                return function(*args, **kwargs)        # what is to be called is looked at when it is …
            if not isinstance(getattr(function, "__self__", None), (list, dict, set)) or function.__name__ == "sort":
                args = tuple([self._called_by_c(x) for x in args])      # … also when C code does that
                kwargs = {name: self._called_by_c(x) for name, x in kwargs.items()}
            if function in _CALLING:
                args = tuple([self.callee(x) if isinstance(x, type) or type(x) is types.BuiltinFunctionType else x for x in args])
            args, kwargs = _without_texts(function, args, kwargs)
            args = tuple([self._argument(x) for x in args])
            kwargs = {name: self._argument(x) for name, x in kwargs.items()}
            if any(type(x) is SymbolicObject for x in args) or any(type(x) is SymbolicObject for x in kwargs.values()):
                return self.capture.host_call(function, args, kwargs)
            if is_numpy:
                return self._numpy(function, args, kwargs)
            return function(*args, **kwargs)
        return now

    def _sort(self, method: Callable, *args: Any, **kwargs: Any) -> Any:
        """``sort`` of one of our lists, or of an array: Python calls the key, which must be what the capture would call."""
        if kwargs.get("key") is not None:
            kwargs["key"] = self.callee(kwargs["key"])
        return method(*args, **kwargs)

    def _called_by_c(self, value: Any) -> Any:
        return self.callee(value) if type(value) is functools.partial else value

    def _argument(self, value: Any) -> Any:
        if type(value) in (ShadowList, ShadowDict, *COLLECTION_KINDS):
            if isinstance(value, ShadowList) or not value.whole:
                value.load_all()
            return value
        if type(value) in (types.FunctionType, types.MethodType):
            function = value.__func__ if type(value) is types.MethodType else value
            if isinstance(function, types.FunctionType) and is_converted(function):
                return self.callee(value)
        return value

    def _numpy(self, function: Any, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        name = getattr(function, "__name__", "")
        if name in _NUMPY_OF_TYPES and not any(self.capture.materialiser.holds_symbolic(x) for x in args):
            return function(*args, **kwargs)
        if isinstance(function, type) or not self._gives_arrays(function, args, kwargs):
            return function(*args, **kwargs)
        return self.capture.numpy_call(function, args, kwargs)

    def _gives_arrays(self, function: Any, args: Tuple, kwargs: Dict[str, Any]) -> bool:
        """Whether the call makes or takes arrays; calls on plain numbers and types are done now."""
        if any(self.capture.materialiser.holds_symbolic(x) for x in (*args, *kwargs.values())):
            return True
        result = function(*args, **kwargs)
        return any(isinstance(leaf, np.ndarray) for leaf in stand_ins.flatten(result)[1])

    def _forget(self, function: Callable, called: Any, *xs: Any) -> Any:
        """``F.forget``: what it calls runs at every run and again in its backward, out of the sight of the capture."""
        if not is_self_contained(called):
            self.capture.abort("F.forget calls a function that reads or changes more than its arguments",
                               hint="one that only calls functions of Chainer and NumPy on them is compiled")
        return self.native(function)(called, *xs)

    # --- around the capture -----------------------------------------------------------------------------------------------

    def outside(self) -> Any:
        """Run something with Chainer as it is."""
        return patches.suspended()


def _as_tuple(item: Any) -> Any:
    return tuple(item) if type(item) is list else item


def _without_texts(function: Any, args: Tuple, kwargs: Dict[str, Any]) -> Tuple[Tuple, Dict[str, Any]]:
    """The arguments with the texts themselves for what is not converted, unless it only keeps them."""
    if not any(type(x) in (SymbolicText, TextMethod) for x in (*args, *kwargs.values())):
        return args, kwargs
    owner = getattr(function, "__self__", None)
    if isinstance(owner, (list, collections.deque)) or hasattr(function, "_fields"):
        return args, kwargs
    if isinstance(owner, dict) or function is dict:
        return (*map(fixed, args[:1]), *args[1:]), kwargs           # what comes first is a key
    return tuple(map(fixed, args)), {name: fixed(item) for name, item in kwargs.items()}


class _StagedCodes:
    """The code objects of functions that are converted already, with all functions inside them."""

    def __init__(self) -> None:
        self._codes: Dict[int, types.CodeType] = {}     # equal ones may be the user's: where a conversion changed nothing

    def add(self, code: types.CodeType) -> None:
        self._codes[id(code)] = code
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                self.add(const)

    def __contains__(self, code: types.CodeType) -> bool:
        return id(code) in self._codes


_HOST_LIBRARIES = ("chainer.reporter", "chainer.serializers", "chainer.training", "chainer.iterators", "chainer.datasets",
                   "chainer.dataset")
_NUMPY_OF_TYPES = frozenset(("dtype", "issubdtype", "promote_types", "finfo", "iinfo", "errstate"))
_LOGGED = ("debug", "info", "warning", "error", "critical", "exception", "log")
_LOGGING = tuple(getattr(logging, name) for name in _LOGGED)
_NO_RESULT = frozenset((print, chainer.report, time.sleep, *_LOGGING))


#: Called on the host, these look at their arguments, fail only where the program is at an end, and change nothing.
HARMLESS = tuple(_NO_RESULT | TEXT | frozenset((id,)))


#: Of these, those that do not even keep their arguments.
KEEPING_NOTHING = (print, time.sleep, id, *TEXT)


def writable_cells(function: types.FunctionType) -> Tuple[Any, ...]:
    """The closure cells that the code of a function assigns."""
    written = set()
    waiting = [function.__code__]
    while waiting:
        code = waiting.pop()
        written.update(i.argval for i in dis.get_instructions(code) if i.opname in ("STORE_DEREF", "DELETE_DEREF"))
        waiting += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return tuple(cell for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()) if name in written)


def _refuse(what: str) -> Callable:
    def handler(calls: Calls, function: Any, *args: Any, **kwargs: Any) -> Any:
        return calls.capture.abort(what)
    return handler


def _report(calls: Calls, function: Any, *args: Any, **kwargs: Any) -> None:
    if calls.reporting != _reporting():
        calls.capture.abort("values are reported under a reporter or scope that is entered inside the compiled function",
                            hint="enter it around the call")
    calls.capture.reports.note()
    plain = calls.capture.reports.is_plain(*args, **kwargs)
    return calls.capture.host_call(function, args, kwargs, (), None, plainly=plain)


def _reporting() -> Tuple:
    """What takes the values that are reported now: the reporter and its observation, by identity."""
    reporters = chainer.reporter._get_reporters()
    return tuple([(id(reporter), id(reporter.observation)) for reporter in reporters[-1:]])


def _host_without_result(calls: Calls, function: Any, *args: Any, **kwargs: Any) -> None:
    return calls.capture.host_call(function, args, kwargs, (), None, name=getattr(function, "name", ""))


def _warn(calls: Calls, function: Any, *args: Any, **kwargs: Any) -> None:
    return calls.capture.host_call(warn, args, kwargs, (), None)


_HANDLERS: Dict[Any, Callable] = {
    warnings.warn: _warn,
    copy.copy: copied_function,
    chainer.grad: lambda calls, function, *args, **kwargs: calls.capture.gradients.grad(*args, **kwargs),
    chainer.backward: _refuse("chainer.backward is called inside the compiled function"),
    chainer.report: _report,
    chainer._get_link_hooks: lambda calls, function: calls.capture.world.link_hooks(),
    chainer.functions.forget: lambda calls, function, *args: calls._forget(function, *args),
    np.seterr: _refuse("NumPy's error handling is changed"),
    np.geterr: _refuse("NumPy's error handling is read"),
    np.geterrcall: _refuse("NumPy's error handling is read"),
    np.get_printoptions: _refuse("how NumPy prints arrays is read"),
    np.seterrcall: _refuse("NumPy's error handling is changed"),
    np.set_printoptions: _refuse("how NumPy prints arrays is changed"),
    np.printoptions: _refuse("how NumPy prints arrays is changed"),
}
_HANDLERS.update(FUNCTIONS)
_HANDLERS.update({function: _host_without_result for function in _LOGGING})
