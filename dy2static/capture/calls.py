"""Calls of a capture: each is converted, runs now, or waits for the host at every run, as `call_rules` says."""
from __future__ import annotations

import collections
import dis
import functools
import os
import pathlib
import random
import types
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Set, Tuple

import chainer
import numpy as np

from ..heap.dict_shadows import ShadowDict
from ..heap.list_shadows import ShadowList
from ..heap.object_shadows import ShadowBase, class_of
from ..heap.ownership import fetches, is_converted, is_generated, is_immutable, is_left_alone, is_library, tells_progress
from ..heap.stand_ins import is_stand_in, name_in_messages
from ..ir.types import type_of
from ..library_facts import numpy as numpy_facts
from ..library_facts.python import CALLING, KEEPING, KEEPING_MODULES, MAY_CALL, PURE_MODULES
from ..library_facts.table import named
from ..lowering.registration import registered
from ..runtime.array_parts import array_of_flat
from ..runtime.host_calls import LEAF, flatten
from ..runtime.staticness import StaticCallable
from ..symbolic.elements import Flat
from ..symbolic.host_objects import SymbolicObject
from ..symbolic.known_texts import SymbolicText, TextMethod, fixed
from ..symbolic.list_functions import of_array
from ..symbolic.lists import as_staged, symbolic_items, uneven_items
from ..symbolic.sizes import as_shape
from ..symbolic.values import PARTS, SymbolicScalar, SymbolicVariable
from .builtin_calls import OWN, BuiltinCalls
from .call_rules import ORIGINALS, RULES, target_of
from .classes import COLLECTION_KINDS, Classes
from .devices import adopted
from .draws import Draws
from .handlers import HANDLERS, NO_RESULT, refused_fetch
from .host_results import check_computing
from .kind_questions import asks_kind, of_kind
from .list_arrays import array_given
from .number_calls import NumberCalls, note_order
from .policy import Rule, decided, named_by
from .purity import is_of_python, may_do_more

if TYPE_CHECKING:
    from .protocols import Capture

#: The methods of update rules that an optimizer calls for each Parameter.
_OF_RULES = frozenset(("update_core", "update_core_cpu", "update_core_gpu"))

#: Functions that answer yes or no, as the heap is when they are called.
_ASKING = (os.path.exists, os.path.isfile, os.path.isdir)

_TEXTS = frozenset((SymbolicText, TextMethod))

#: What is read before code that is not converted can look at it.
_LOADED_WHOLE = frozenset((ShadowList, ShadowDict, *COLLECTION_KINDS))

#: Types of functions that `map` and its like may be given, beside classes and functions of the user's.
_IN_C = {types.BuiltinFunctionType, np.ufunc, type(np.stack)} - {types.FunctionType}


class Calls:
    """The dispatch of one capture.  entry: the function that it is of.

    apart: the functions whose calls are captured by themselves, by file and name.  of_rules: those that have updated a
    Parameter as a method of its rule.
    """

    entry: Any = None

    def __init__(self, capture: Capture):
        self.capture = capture
        self.builtins, self.classes, self.numbers = BuiltinCalls(self), Classes(self), NumberCalls(self)
        self.draws = Draws(capture)
        self.staged_codes = _StagedCodes()
        self.apart: Set[Tuple[str, str]] = set()
        self.of_rules: Set[Tuple[str, str]] = set()
        self._lowering: Set[int] = set()                # callables whose own lowering runs
        self._rules: Dict[Any, Rule] = {}               # which one is for a function; it holds throughout a capture

    def callee(self, function: Any) -> Callable[..., Any]:
        """What to call for ``function``."""
        if is_stand_in(type(function)) and not callable(function):
            return function                             # Python says so when it is called
        self.capture.heap.rely_on_names(function)
        key = None if self._lowering else named_by(function)
        if key is None:
            return decided(RULES, self, function).callee(self, function)
        rule = self._rules.get(key)
        if rule is None:
            rule = self._rules[key] = decided(RULES, self, function)
        return rule.callee(self, function)

    def lowering_of(self, function: Any) -> Optional[Callable[..., Any]]:
        """The lowering that somebody registered for a function, unless it runs: then it calls the function itself."""
        target = target_of(function)
        return None if isinstance(target, type) or id(target) in self._lowering else registered(target)

    def lowered(self, function: Any) -> Callable[..., Any]:
        """Let the user's lowering give what a call gives."""
        given = (function.__self__,) if type(function) is types.MethodType else ()
        return functools.partial(self._lowered, function, target_of(function), self.lowering_of(function), given)

    def original(self, function: Any) -> Callable[..., Any]:
        """Call the method of Chainer's that one of ours stands in the place of."""
        original = ORIGINALS[target_of(function)]
        return self.callee(types.MethodType(original, function.__self__) if type(function) is types.MethodType else original)

    def _lowered(self, function: Any, target: Any, lowering: Callable, given: Tuple, *args: Any, **kwargs: Any) -> Any:
        """What the user's lowering gives in place of a call; where that is NotImplemented, the call itself."""
        self._lowering.add(id(target))
        try:
            result = self.callee(lowering)(*given, *args, **kwargs)
            return self.callee(function)(*args, **kwargs) if result is NotImplemented else result
        finally:
            self._lowering.discard(id(target))

    # --- Python functions ---------------------------------------------------------------------------------------------

    def function(self, function: types.FunctionType) -> Callable:
        """What to call for a Python function."""
        if is_generated(function):
            return functools.partial(self.classes.initialise, function) if function.__name__ == "__init__" else function
        if function.__code__ in self.staged_codes:
            return function
        if is_left_alone(function, self.entry):
            return self.host(function)
        if function in _ASKING:
            return lambda *args: self.capture.host.call(function, args, {}, (type_of(True),), name=function.__name__)
        handler = of_kind if asks_kind(function) else HANDLERS.get(function)
        if handler is not None:
            return functools.partial(handler, self, function)
        if is_converted(function) and not (self.capture.heap.stale and tells_progress(function)):
            return self._converted(function)
        name = function.__module__ or ""
        if name.startswith(("chainer.", "numpy.", "six.")) or name in ("chainer", "numpy", "six"):
            if name.startswith(_HOST_LIBRARIES):
                return self.host(function)
            return self.native(function)
        return self.native(function) if name in PURE_MODULES else self.host(function)

    def _converted(self, function: types.FunctionType) -> Callable:
        staged = self.capture.functions.staged(function)
        is_apart = self.apart and _place(function) in self.apart
        return functools.partial(self.capture.staging.blocks.apart, staged) if is_apart else staged

    def method(self, method: types.MethodType) -> Callable:
        """What to call for a bound method."""
        function, owner = method.__func__, method.__self__
        if owner is np.random.mtrand._rand:             # bound methods in newer versions of NumPy
            return functools.partial(self.draws.draw, method, np.random.RandomState)
        if owner is random.random.__self__:
            return functools.partial(self.draws.draw, method, random.Random)
        is_shadow = issubclass(type(owner), ShadowBase)         # whose ``__class__`` `isinstance` would read
        if not is_shadow and isinstance(owner, (np.random.RandomState, np.random.Generator)):
            return self.host(method)
        if isinstance(function, types.FunctionType):
            if function in HANDLERS:
                return functools.partial(HANDLERS[function], self, function, owner)
            if function.__code__ in self.staged_codes:
                return method
            if is_left_alone(function, self.entry):
                return self.host(method)
            if is_generated(function):
                return functools.partial(self.function(function), owner)
            if is_converted(function):
                if function.__name__ in _OF_RULES and isinstance(owner, chainer.UpdateRule):
                    self.of_rules.add(_place(function))
                return functools.partial(self._converted(function), owner)
            if not is_shadow and isinstance(owner, SymbolicVariable):
                return functools.partial(self._of_variable, method)
            if type(owner) in OWN:
                return functools.partial(self.builtins.sort, method) if function.__name__ == "sort" else method
            if is_shadow and fetches(function):
                return functools.partial(refused_fetch, self)
            if is_shadow or isinstance(owner, (chainer.FunctionNode, chainer.Function, type, chainer.Variable)):
                return self.native(method)
            if is_immutable(owner) and (not isinstance(owner, pathlib.PurePath) or
                                        pathlib.PurePath.__dict__.get(function.__name__) is function):
                return self.native(method)
            home = type(owner).__module__
            if (function.__module__ or "") in PURE_MODULES and (home in PURE_MODULES or not is_library(home)):
                return self.native(method)              # but not of `os.environ`, whose methods are those of any mapping
            return self.host(method)
        if isinstance(function, StaticCallable):
            return functools.partial(function.captured(self.capture), owner)
        return functools.partial(self.callee(function), owner)

    def shadow(self, shadow: ShadowBase) -> Callable:
        """What to call for an object of the user's."""
        cls = class_of(shadow)
        for base in cls.__mro__:
            if "__call__" in base.__dict__:
                return self.callee(types.MethodType(base.__dict__["__call__"], shadow))
        raise TypeError(f"{name_in_messages(cls)!r} object is not callable")

    # --- the three ways to call -----------------------------------------------------------------------------------------

    def host(self, function: Any) -> Callable:
        """Wait for the host."""
        def later(*args: Any, **kwargs: Any) -> Any:
            types_ = () if function in NO_RESULT else None
            structure = None if function in NO_RESULT else LEAF
            return self.capture.host.call(function, args, kwargs, types_, structure)
        return later

    def native(self, function: Any) -> Callable:
        """Run now; arrays that it makes belong to the graph, functions it gets are staged."""
        package = (getattr(function, "__module__", None) or "").partition(".")[0]
        is_numpy = package == "numpy" or isinstance(function, np.ufunc)
        keeps = _keeps_functions(function)

        def now(*args: Any, **kwargs: Any) -> Any:
            if function is functools.partial:
                return function(*args, **kwargs)        # what is to be called is looked at when it is …
            if is_numpy and (is_of_python(function) or may_do_more((*args, *kwargs.values()))):
                self.capture.abort(f"`np.{function.__name__}` calls a function that may do more than compute")
            if not keeps:
                args = tuple(map(self._called_by_c, args))              # … also when C code does that
                kwargs = {name: self._called_by_c(x) for name, x in kwargs.items()}
            if function in CALLING:
                args = tuple([self.callee(x) if isinstance(x, type) or type(x) in _IN_C else x for x in args])
            args, kwargs = _without_texts(function, args, kwargs)
            if function is np.array and args and type(args[0]) is Flat:
                return self.capture.numpy.call(array_of_flat, (args[0].owner, *args[1:]), kwargs)
            args = array_given(self.capture, function, args, kwargs)
            args = tuple([self._argument(x, is_numpy) for x in args])
            kwargs = {name: self._argument(x, is_numpy) for name, x in kwargs.items()}
            objects = [x for x in (*args, *kwargs.values()) if type(x) is SymbolicObject]
            if objects:
                check_computing(self.capture, function, is_numpy, objects)
                return self.capture.host.call(function, args, kwargs)
            if is_numpy:
                return self._numpy(function, args, kwargs)
            called = functools.partial(self._of_variable, function) if package == "chainer" else function
            return adopted(self, called(*args, **kwargs))
        return now

    def _of_variable(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """What a function of Chainer's or a method of a Variable gives: sizes are compared as such."""
        return function(*map(self._sized, args), **{name: self._sized(x) for name, x in kwargs.items()})

    def _called_by_c(self, value: Any) -> Any:
        if type(value) in (types.FunctionType, types.MethodType):
            function = value.__func__ if type(value) is types.MethodType else value
            return self.callee(value) if isinstance(function, types.FunctionType) and is_converted(function) else value
        return self.callee(value) if type(value) is functools.partial else value

    def _argument(self, value: Any, is_numpy: bool) -> Any:
        value = as_staged(value)
        if type(value) in _LOADED_WHOLE:
            if isinstance(value, ShadowList) or not value.whole:
                value.load_all()
            return value
        return value.as_array() if is_numpy and type(value) in PARTS else value

    def _sized(self, item: Any) -> Any:
        """A number or a tuple for a function of Chainer's, with sizes where they are known: those of lists that loops make."""
        return as_shape(self.capture.expressions.with_sizes(item)) if type(item) in (tuple, SymbolicScalar) else item

    def _numpy(self, function: Any, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        if args and (uneven_items(args[0]) is not None or symbolic_items(args[0]) is not None):
            return of_array(self, function, *args, **kwargs)
        name = getattr(function, "__name__", "")
        if name == "argsort" and args:
            note_order(self.capture, args[0])
        if name in _NUMPY_OF_TYPES and not any(self.capture.operands.holds_symbolic(x) for x in args):
            return function(*args, **kwargs)
        if isinstance(function, type) or not self._gives_arrays(function, args, kwargs):
            return function(*args, **kwargs)
        return self.capture.numpy.call(function, args, kwargs)

    def _gives_arrays(self, function: Any, args: Tuple, kwargs: Dict[str, Any]) -> bool:
        """Whether the call makes or takes arrays; calls on plain numbers and types are done now."""
        if any(self.capture.operands.holds_symbolic(x) for x in (*args, *kwargs.values())):
            return True
        result = function(*args, **kwargs)
        return any(isinstance(leaf, np.ndarray) for leaf in flatten(result)[1])


def _place(function: types.FunctionType) -> Tuple[str, str]:
    return function.__code__.co_filename, function.__qualname__


def _keeps_functions(function: Any) -> bool:
    """Whether a function, method or class takes functions as any other object, and calls none of them."""
    if function in MAY_CALL:
        return False
    owner, module = getattr(function, "__self__", None), getattr(function, "__module__", None) or ""
    if hasattr(owner, "_fields") or module.startswith("namedtuple_"):
        return True                                     # what `namedtuple` gives a class
    if isinstance(function, type):
        return module in KEEPING_MODULES or issubclass(function, (tuple, BaseException))
    if owner is None or isinstance(owner, types.ModuleType):
        return function in KEEPING or asks_kind(function) or \
            type(function) is types.BuiltinFunctionType and module in KEEPING_MODULES
    kind = owner if isinstance(owner, type) else type(owner)
    return type(function) in (types.BuiltinMethodType, types.MethodWrapperType) and function.__name__ != "sort" and (
        kind.__module__ in KEEPING_MODULES or issubclass(kind, (list, dict, set, frozenset, tuple, collections.deque, ShadowBase)))


def _without_texts(function: Any, args: Tuple, kwargs: Dict[str, Any]) -> Tuple[Tuple, Dict[str, Any]]:
    """The arguments with the texts themselves for what is not converted, unless it only keeps them."""
    if not any([type(x) in _TEXTS for x in (*args, *kwargs.values())]):
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

    def __contains__(self, code: object) -> bool:
        return id(code) in self._codes


_HOST_LIBRARIES = ("chainer.reporter", "chainer.serializers", "chainer.training", "chainer.iterators", "chainer.datasets",
                   "chainer.dataset")
_NUMPY_OF_TYPES = named("asks", numpy_facts.FUNCTIONS)


def writable_cells(function: types.FunctionType) -> Tuple[Any, ...]:
    """The closure cells that the code of a function assigns."""
    written = set()
    waiting = [function.__code__]
    while waiting:
        code = waiting.pop()
        written.update(i.argval for i in dis.get_instructions(code) if i.opname in ("STORE_DEREF", "DELETE_DEREF"))
        waiting += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return tuple(cell for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()) if name in written)
