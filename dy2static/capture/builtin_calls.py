"""Calls of builtin functions and methods."""
from __future__ import annotations

import builtins
import collections
import functools
import random
import types
import warnings
from typing import TYPE_CHECKING, Any, Callable, Dict, Tuple

import chainer
import numpy as np

from ..control_flow.items import got
from ..heap.collection_shadows import COLLECTIONS, ShadowDeque
from ..heap.dict_shadows import ShadowDict
from ..heap.function_attributes import stop_at_parts
from ..heap.list_shadows import ShadowList
from ..heap.object_shadows import ShadowBase
from ..heap.ownership import is_immutable, is_library_class
from ..heap.set_shadows import ShadowSet
from ..ir.devices import is_gpu
from ..ir.types import type_of
from ..library_facts import numpy as numpy_facts
from ..library_facts.python import CLOCK_MODULES, CLOCKS, NUMBER_MODULES, PURE_MODULES, builtin
from ..library_facts.table import members
from ..runtime.devices import array_type
from ..symbolic.hidden_attributes import asks_classes, before_write, check_read, has
from ..symbolic.host_objects import GIVING_TEXT, BoundHostMethod, SymbolicObject
from ..symbolic.known_texts import SymbolicText, TextKeyed, fixed, is_expression
from ..symbolic.list_functions import length
from ..symbolic.lists import StagedList
from ..symbolic.sequences import Range, Rows
from ..symbolic.sums import total
from ..symbolic.texts import check_format, is_unknown_error, with_numbers
from ..symbolic.values import PARTS, SymbolicArray, SymbolicScalar, SymbolicVariable, is_symbolic
from .classes import TEXT
from .handlers import warned
from .number_calls import noted
from .policy import Rule, decided, itself, named_by

if TYPE_CHECKING:
    from .protocols import Calls

#: What `isinstance` looks at in place of objects that are of another class than they stand for.
_LIKE = {
    ShadowList: [], StagedList: [], ShadowDict: {}, ShadowSet: set(), ShadowDeque: collections.deque(), Range: range(0), Rows: ()}

_HOST_BUILTINS, _INSPECTING, _OF_NUMBERS = builtin("host"), builtin("inspects"), builtin("numbers")
_PLAIN_OWNERS = (str, bytes, int, float, complex, bool, tuple, list, dict, set, frozenset, range, slice, type, np.dtype,
                 types.GeneratorType, np.ufunc, types.FunctionType, types.MethodType)

#: Methods that are written in C, as their class has them.
_OF_CLASSES = (types.MethodDescriptorType, types.WrapperDescriptorType)

#: Modules of C code whose objects hold no more than what they are given.
_PLAIN_MODULES = ("builtins", "itertools", "collections", "functools")

#: Stand-ins of ours: their methods do the right thing already.
OWN = (ShadowDict, ShadowList, ShadowSet, StagedList, TextKeyed, SymbolicArray, SymbolicScalar, *PARTS, *COLLECTIONS.values())

#: Functions of the whole state of NumPy's generator, which are no methods of it.
_STATES = tuple(found for _, found in members(np.random, "state", numpy_facts.RANDOM))

#: What functions with a clock give.
_CLOCKS: Dict[Any, Tuple] = {f: (type_of(0.0),) for f in CLOCKS}


class BuiltinCalls:
    """The calls of builtin functions and methods in one capture."""

    def __init__(self, calls: Calls):
        self.calls, self.capture = calls, calls.capture
        self._rules: Dict[Any, Rule] = {}

    def callee(self, function: Any) -> Callable[..., Any]:
        """What to call for a builtin function or method."""
        key = named_by(function)
        rule = None if key is None else self._rules.get(key)
        if rule is None:
            rule = decided(RULES, self.calls, function)
            self._rules.update({} if key is None else {key: rule})
        return rule.callee(self.calls, function)

    def text(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Run a method of a text, or a function of texts; symbolic operands make a symbolic text."""
        if getattr(function, "__name__", "") == "join" and len(args) == 1 and not kwargs:
            args = (list(args[0]),)
            found: Any = args[0]
        else:
            args = tuple(map(with_numbers, args))
            found = (*args, *kwargs.values())
        if any(is_symbolic(x) and not is_expression(x) or is_unknown_error(x) or type(x) is tuple and any(map(is_symbolic, x))
               for x in found):
            if getattr(function, "__name__", "") == "format":
                check_format(function, args, kwargs)
            made = self.capture.host.call(function, args, kwargs)
            is_text = function in TEXT or isinstance(getattr(function, "__self__", None), str) and function.__name__ in GIVING_TEXT
            return SymbolicObject(self.capture, made.value, is_text=True) if is_text else made
        if any(map(is_expression, found)):
            return self.capture.texts.call(function, (tuple(args[0]),) if found is args[0] else args, kwargs)
        return function(*args, **kwargs)

    def inspect(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """A question about what kind of object something is: not answered for what only the host knows."""
        kind = type(args[0]) if args else None
        if kind is SymbolicText and function is not getattr:
            return function(args[0].hint, *args[1:])
        if args:
            self.capture.staging.need_exact(args[0])
        known = kind is SymbolicObject and args[0].real is not SymbolicObject.Missing and function is isinstance
        if (kind is SymbolicObject and not known or kind is BoundHostMethod) and not (function is getattr and len(args) == 2):
            self.capture.abort(f"{function.__name__}() of an object that is known at run time only", of_host=True)
        if kind in (types.FunctionType, types.MethodType):
            self._of_method(function, *args)
        if function is dir and args and is_symbolic(args[0]):
            self.capture.abort("dir() of an array or Variable is used inside the compiled function")
        if function is isinstance and len(args) == 2 and isinstance(args[0], ShadowBase):
            for cls in args[1] if type(args[1]) is tuple else args[1:]:
                self.capture.heap.objects.is_subclass(kind, cls)
        if function is isinstance and len(args) == 2 and (kind in _LIKE or asks_classes(args[1])):
            return self.calls.native(function)(_example_of(args[0]), args[1])
        if kind is SymbolicArray and len(args) > 1 and function is not isinstance:
            return self._attribute(function, *args)
        if function is vars and args:
            try:
                check_read(self.capture, args[0], "__dict__")
            except AttributeError:
                raise TypeError("vars() argument must have __dict__ attribute") from None
        if function in (hasattr, getattr) and len(args) > 1:
            try:
                check_read(self.capture, args[0], fixed(args[1]))
            except AttributeError:
                if function is getattr and len(args) == 2:
                    raise
                return False if function is hasattr else args[2]
        if function is hasattr and isinstance(args[0], SymbolicVariable) and has(_class_of(args[0]), fixed(args[1])):
            return True                                 # also what they have outside of compiled functions only
        if len(args) > 1 and issubclass(kind, types.ModuleType):
            return self._of_module(function, *args)
        return self.calls.native(function)(*args, **kwargs)

    def write_attribute(self, function: Callable, item: Any, *rest: Any) -> Any:
        """``setattr`` and ``delattr``."""
        before_write(self.capture, item)
        return self.calls.native(function)(item, *rest)

    def of_object(self, function: Callable, *args: Any) -> Any:
        """``object.__getattribute__``, ``__setattr__`` or ``__delattr__`` of it, also through ``super()``."""
        shadow, name, *value = args if type(function) is types.WrapperDescriptorType else (function.__self__, *args)
        attributes, method = self.capture.heap.attributes, function.__name__
        if not isinstance(shadow, ShadowBase):
            return self.calls.native(function)(*args)
        if method == "__getattribute__":
            return attributes.read_attribute(shadow, fixed(name))
        return attributes.write_plainly(method, shadow, fixed(name), *value)

    def _attribute(self, function: Callable, array: SymbolicArray, name: Any, *default: Any) -> Any:
        """``hasattr`` or ``getattr`` of an array."""
        if function is hasattr and is_gpu(array.place):
            return hasattr(array_type(array.place), fixed(name))
        if function is hasattr:
            return hasattr(_example_of(array), fixed(name))
        if fixed(name) in numpy_facts.HIDDEN:
            self.capture.abort(f"`.{fixed(name)}` of an array is used inside the compiled function")
        return self.calls.native(function)(array, name, *default)

    def _of_module(self, function: Callable, module: types.ModuleType, name: Any, *default: Any) -> Any:
        """``hasattr`` or ``getattr`` of a module: relied on, where the name stands for nothing, or for what is not called."""
        found = self.calls.native(function)(module, name, *default)
        if type(module) is types.ModuleType and not callable(vars(module).get(fixed(name))):
            self.capture.heap.definitions.add_name(module, fixed(name))
        return found

    def _of_method(self, function: Callable, method: Any, *rest: Any) -> None:
        """Rely on the attribute of a method that is asked for, or on its absence; those of other functions are guarded already."""
        if function is getattr and rest:
            stop_at_parts(self.capture, method, fixed(rest[0]))
        method = method.__func__ if type(method) is types.MethodType else method
        if type(method) is not types.FunctionType or method not in self.capture.heap.objects.methods:
            return
        if function is dir:
            self.capture.abort("dir() of a method is used inside the compiled function")
        if function in (hasattr, getattr) and rest:
            self.capture.heap.definitions.add_entry(method.__qualname__, vars(method), fixed(rest[0]))

    def of_class(self, function: Callable, *args: Any) -> Any:
        """A method of numbers that is called through their class (``int.bit_length(n)``)."""
        return self.calls.native(function)(*[item.fix() if type(item) is SymbolicScalar else item for item in args])

    def hash(self, item: Any) -> int:
        """``hash(item)``, which may be that of the very object."""
        if isinstance(item, ShadowBase) and type(item).__hash__ is object.__hash__:
            item = self.capture.heap.attributes.identified(item)
        return builtins.hash(item)

    def sort(self, method: Callable, *args: Any, **kwargs: Any) -> Any:
        """``sort`` of one of our lists, or of an array: Python calls the key, which must be what the capture would call."""
        if kwargs.get("key") is not None:
            kwargs["key"] = noted(self.capture, self.calls.callee(kwargs["key"]))
        return method(*args, **kwargs)


def _clock(calls: Calls, function: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: calls.capture.host.call(
        function, args, kwargs, _CLOCKS[function], name=f"time.{function.__name__}")


def _owner(function: Any) -> Any:
    return getattr(function, "__self__", None)


def _is_of_module(function: Any) -> bool:
    """Whether this is a function, or a method that is not bound to anything."""
    return _owner(function) is None or isinstance(_owner(function), types.ModuleType)


def _is_of_numbers(function: Any) -> bool:
    return _is_of_module(function) and (
        getattr(function, "__module__", None) in NUMBER_MODULES or function in _OF_NUMBERS)


def _is_access(function: Any) -> bool:
    return type(function) in (types.WrapperDescriptorType, types.MethodWrapperType) and function.__objclass__ is object and \
        function.__name__ in ("__getattribute__", "__setattr__", "__delattr__")


def _is_pure(function: Any) -> bool:
    module = getattr(function, "__module__", None) or ""
    return _owner(function) is None or module in PURE_MODULES or module.startswith(("numpy.core", "numpy._core"))


def _is_of_own(function: Any) -> bool:
    owner = _owner(function)
    return type(owner) in OWN or isinstance(owner, ShadowBase) or is_symbolic(owner)


def _is_of_error(function: Any) -> bool:
    """Whether this is a method of an exception, or of a class of them."""
    return isinstance(_owner(function), BaseException) or issubclass(getattr(function, "__objclass__", object), BaseException)


def _has_clock(function: Any) -> bool:
    """Whether this is a method like ``datetime.now``."""
    owner = _owner(function)
    return isinstance(owner, type) and is_library_class(owner) and owner.__module__ in CLOCK_MODULES


def _is_of_plain(function: Any) -> bool:
    owner = _owner(function)
    return isinstance(owner, _PLAIN_OWNERS) or not is_library_class(type(owner)) or is_immutable(owner) or \
        type(owner).__module__ in _PLAIN_MODULES


#: What runs when, of builtin functions and methods.
RULES: Tuple[Rule, ...] = (
    Rule("`str`, `repr`, `format`, `ascii`", "now; a symbolic text, or a host node, of what is symbolic",
         lambda calls, function: function in TEXT,
         lambda calls, function: functools.partial(calls.builtins.text, function)),
    Rule("`len`", "now; a size of the graph, of what is symbolic",
         lambda calls, function: function is len,
         lambda calls, function: functools.partial(length, calls, function)),
    Rule("`sum`", "now; a loop, of what only the run knows the length of",
         lambda calls, function: function is sum,
         lambda calls, function: functools.partial(total, calls, function)),
    Rule("`hash`", "now, of the object that a shadow stands for",
         lambda calls, function: function is hash,
         lambda calls, function: calls.builtins.hash),
    Rule("`warnings.warn`", "a host node",
         lambda calls, function: function is warnings.warn,
         lambda calls, function: functools.partial(warned, calls, function)),
    Rule("`isinstance`, `hasattr`, `getattr`, `callable`, `dir`, `vars`", "now; not of what only the host knows",
         lambda calls, function: function in _INSPECTING,
         lambda calls, function: functools.partial(calls.builtins.inspect, function)),
    Rule("`setattr`, `delattr`", "now; not of what belongs to a library",
         lambda calls, function: function in (setattr, delattr),
         lambda calls, function: functools.partial(calls.builtins.write_attribute, function)),
    Rule("`print`, `open`, `input`, `exec`, `eval`, `globals`, `id` and their like", "a host node",
         lambda calls, function: function in _HOST_BUILTINS,
         lambda calls, function: calls.host(function)),
    Rule("`max`, `min`", "now; in the graph, of symbolic numbers",
         lambda calls, function: function in (max, min),
         lambda calls, function: functools.partial(calls.numbers.extreme, function)),
    Rule("`any`, `all`", "now; in the graph, of symbolic numbers",
         lambda calls, function: function in (any, all),
         lambda calls, function: functools.partial(calls.numbers.of_truths, function)),
    Rule("`sorted`", "now; in the graph, of symbolic numbers",
         lambda calls, function: function is sorted,
         lambda calls, function: functools.partial(calls.numbers.ordered, function)),
    Rule("the state of NumPy's generator", "a host node",
         lambda calls, function: any(function is other for other in _STATES),
         lambda calls, function: calls.host(function)),
    Rule("clocks", "a host node that gives a number",
         lambda calls, function: function in _CLOCKS, _clock),
    Rule("draws from NumPy's global generator", "typed by the same draw from another generator; a host node",
         lambda calls, function: _owner(function) is np.random.mtrand._rand,
         lambda calls, function: functools.partial(calls.draws.draw, function, np.random.RandomState)),
    Rule("draws from Python's generators", "typed by the same draw from another generator; a host node",
         lambda calls, function: isinstance(_owner(function), random.Random),
         lambda calls, function: functools.partial(calls.draws.draw, function, random.Random)),
    Rule("methods of exceptions", "now",                # made here; they only hold their arguments, whatever they are
         lambda calls, function: _is_of_error(function), itself),
    Rule("`math`, `operator`, `abs`, `round`, `pow`, `divmod`", "now; in the graph, of symbolic numbers",
         lambda calls, function: _is_of_numbers(function),
         lambda calls, function: functools.partial(calls.numbers.of_numbers, function)),
    Rule("methods of numbers that are called through their class", "now; a number of the graph must be known",
         lambda calls, function: type(function) in _OF_CLASSES and function.__objclass__ in (int, float, bool, complex),
         lambda calls, function: functools.partial(calls.builtins.of_class, function)),
    Rule("`object.__getattribute__`, `object.__setattr__`, `object.__delattr__`", "now, of the object that a shadow stands for",
         lambda calls, function: _is_access(function),
         lambda calls, function: functools.partial(calls.builtins.of_object, function)),
    Rule("functions of other pure parts of the standard library and of NumPy", "now",
         lambda calls, function: _is_of_module(function) and _is_pure(function),
         lambda calls, function: calls.native(function)),
    Rule("all other functions of modules", "a host node",
         lambda calls, function: _is_of_module(function),
         lambda calls, function: calls.host(function)),
    Rule("`get` of dicts", "now; a decision for each key, if only the run knows the number that is looked up",
         lambda calls, function: isinstance(_owner(function), dict) and function.__name__ == "get",
         lambda calls, function: functools.partial(got, calls.capture, function)),
    Rule("methods of shadows and symbolic values", "now",
         lambda calls, function: _is_of_own(function),
         lambda calls, function: functools.partial(calls.builtins.sort, function) if function.__name__ == "sort" else function),
    Rule("`format` and `join` of a text", "now; a symbolic text, or a host node, of what is symbolic",
         lambda calls, function: isinstance(_owner(function), str) and function.__name__ in ("format", "join"),
         lambda calls, function: functools.partial(calls.builtins.text, function)),
    Rule("class methods that look at the clock or the system", "a host node",
         lambda calls, function: _has_clock(function),
         lambda calls, function: calls.host(function)),
    Rule("methods of plain values and containers, and of objects that are made here", "now",
         lambda calls, function: _is_of_plain(function),
         lambda calls, function: calls.native(function)),
    Rule("all other methods", "a host node",
         lambda calls, function: True,
         lambda calls, function: calls.host(function)),
)


def _example_of(item: Any) -> Any:
    """An object of the class that `isinstance` and `hasattr` are to see; our arrays and numbers also have methods of their own."""
    if type(item) is SymbolicArray and not is_gpu(item.place):
        return np.zeros((1,) * item.ndim, item.dtype)[() if item.is_scalar else ...]
    return item.python_type() if type(item) is SymbolicScalar else _LIKE.get(type(item), item)


def _class_of(variable: SymbolicVariable) -> type:
    return chainer.Parameter if isinstance(variable, chainer.Parameter) else chainer.Variable
