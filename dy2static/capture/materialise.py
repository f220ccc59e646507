"""From shadows back to real objects: as templates for host calls, and as builds for results and writes."""
from __future__ import annotations

import collections
import copy
import enum
import functools
import operator
import types
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

import chainer
import numpy as np

from ..heap.object_shadows import ShadowBase, attributes_of
from ..heap.objects import ShadowMeta, real_class
from ..heap.ownership import changes_itself, is_immutable, is_library, is_library_class
from ..heap.wording import a_type, type_name
from ..record.builds import (
    Again,
    Build,
    Call,
    Choice,
    Const,
    Cycle,
    DictOf,
    Fillable,
    FromSource,
    FromValue,
    FromVariable,
    ListOf,
    Method,
    Number,
    ObjectOf,
    Partial,
    SetOf,
    TupleOf,
)
from ..runtime.devices import DEVICES
from ..runtime.host_calls import variables_of
from ..runtime.instances import array_of, make_of
from ..runtime.staticness import is_static_function, is_static_method
from ..symbolic.host_objects import BoundHostMethod, SymbolicObject
from ..symbolic.known_texts import SymbolicText, TextKeyed, TextMethod
from ..symbolic.list_functions import variables_together
from ..symbolic.lists import StagedList
from ..symbolic.size_trials import without_sizes
from ..symbolic.values import ArrayMethod, Maybe, SymbolicArray, SymbolicScalar, SymbolicVariable, is_symbolic
from ..symbolic.variable_identity import LEAF, NEW
from .closures import MadeFunctions
from .operands import pairs_of

if TYPE_CHECKING:
    from .protocols import Capture

_ATOMS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented), np.dtype, range,
          types.BuiltinFunctionType, np.ufunc, type(np.sum), types.GetSetDescriptorType, types.MethodDescriptorType)


_HEAP_TYPE = 1 << 9                 # the flag of classes that are written in Python

#: Callable objects whose contents are no attributes in a dict.
_HOLDING = (functools.partial, operator.attrgetter, operator.itemgetter, operator.methodcaller)

#: Callables that are no such objects of a library's.
_NO_OBJECTS = (ShadowBase, *_ATOMS, type, enum.Enum, np.generic, types.FunctionType)

#: Objects whose methods are not constants.
_WITH_CONTENTS = (list, dict, set, tuple, collections.deque, types.GeneratorType)


class Materialiser:
    """Turns what user code holds at the end of a capture into instructions for making it at every run."""

    def __init__(self, capture: Capture):
        self.capture = capture
        self.built: Dict[int, Tuple[Any, Build]] = {}
        self._open: Dict[int, object] = {}
        self._in_itself: set = set()
        self.functions: Optional[MadeFunctions] = None

    def check_known(self, item: StagedList) -> None:
        """Stop at a list of Variables of which only the run knows the length."""
        if item.symbolic is not None and (item.symbolic.kind == "variable"):
            self.capture.abort("a list whose length depends on array values is given with Variables in it to a call that is not "
                               "compiled, or stored before one", because=item.symbolic)

    def leave(self) -> None:
        """The function is over: what is built now, also functions that were made in it, does not change any more."""
        self.functions = MadeFunctions(self.capture, self.build)

    def check(self) -> None:
        """Stop if a name of a function that leaves was changed since."""
        if self.functions is not None:
            self.functions.check()

    def is_constant(self, item: Any) -> bool:
        """Whether an object is the same in every call."""
        if isinstance(item, types.BuiltinFunctionType) and isinstance(item.__self__, _WITH_CONTENTS):
            return False
        if type(item) is ArrayMethod:
            self.capture.abort(f"the method {item.__name__!r} of an array leaves the compiled function", hint="call it inside")
        return (isinstance(item, _ATOMS) and not is_symbolic(item)
                or isinstance(item, (type, types.ModuleType, enum.Enum, np.generic))
                or is_static_function(item) or self._is_callable_of_library(item)
                or type(item) in (frozenset, *DEVICES) or is_immutable(item)
                or type(item) is slice and not self.capture.operands.holds_symbolic(item))

    def is_changeable(self, item: Any) -> bool:
        """Whether this is a constant of which the user may set attributes once he gets hold of it: an initializer, for example."""
        return not is_symbolic(item) and not isinstance(item, (types.MethodType, *_HOLDING)) and not is_static_function(item) and \
            self._is_callable_of_library(item) and type(getattr(item, "__dict__", None)) is dict

    def _is_callable_of_library(self, item: Any) -> bool:
        """Whether this is a callable object of a library's, an initializer for example, with nothing in it that is of this call."""
        if not callable(item) or isinstance(item, _NO_OBJECTS) or not is_library(type(item).__module__):
            return False
        if isinstance(item, (chainer.FunctionNode, chainer.Function)) or changes_itself(type(item)):
            return False                                # it has been applied, or will be
        return not any(map(self._holds_of_call, (item,) if isinstance(item, _HOLDING) else getattr(item, "__dict__", {}).values()))

    def _holds_of_call(self, part: Any) -> bool:
        """Whether something of this call, which may change, is in what a callable object of a library holds."""
        if isinstance(part, functools.partial):
            return any(map(self._holds_of_call, (part.func, *part.args, *part.keywords.values())))
        if isinstance(part, tuple):
            return any(map(self._holds_of_call, part))
        if isinstance(part, _WITH_CONTENTS):
            return True
        if isinstance(part, _HOLDING):
            return self._holds_of_call(part.__reduce__())
        return isinstance(part, types.FunctionType) and self._is_made_here(part) or \
            self.capture.operands.holds_symbolic(part)

    def _is_made_here(self, function: types.FunctionType) -> bool:
        return function.__code__ in self.capture.calls.staged_codes and self.capture.functions.unstaged(function) is None

    def build(self, item: Any) -> Build:
        """How to make the object at every run."""
        item = without_sizes(item)
        kind = type(item)
        if kind is Maybe:                               # of a converted `return`: only where nothing was returned is it unbound
            return self.build(item.value)
        if kind is SymbolicScalar:
            self.capture.staging.need_exact(item)
            return FromValue(item.value) if item.text is None else Number(item.text)
        if kind is SymbolicText:
            return Number(item.text)
        if kind is TextMethod:
            return Const(item.fix())
        if kind is SymbolicArray:
            return self.capture.array_writes.built(item) if item.choice is None or item.memory is not None else \
                self._chosen_array(item)
        if kind is SymbolicObject:
            return FromValue(item.value)
        if kind is BoundHostMethod:
            item.refuse()
        if isinstance(item, SymbolicVariable):
            source = item.__dict__.get("source")
            return FromSource(source) if source is not None else self._variable(item)
        source = self.capture.heap.source_of(item)
        if source is not None:
            return FromSource(source)
        if isinstance(item, ShadowMeta):
            return Const(real_class(item))
        if isinstance(item, types.FunctionType) and self.functions is not None and self._is_made_here(item):
            return self._compound(item)
        if isinstance(item, types.FunctionType) or (
                self.is_constant(item) and not isinstance(item, (tuple, list, dict, set, types.MethodType, functools.partial))
                and not is_static_method(item) and not self.is_changeable(item)):
            return Const(self.capture.functions.real(item))
        return self._compound(item)

    def _variable(self, item: SymbolicVariable) -> Build:
        if item._data[0] is None:                       # a Parameter that is not initialized
            return FromValue(item.__dict__["made"].value)
        if "choice" not in item.__dict__:
            return FromVariable(self.capture.escaping.record(item))
        number, among = item.__dict__["choice"]
        return Choice(FromValue(number), tuple([(k, self._chosen(item, k, v)) for k, v in among.items()]))

    def _chosen_array(self, item: SymbolicArray) -> Build:
        """The array of a Variable that is one of several: of the user's own, their array itself."""
        number, among = item.choice
        value = self.capture.array_writes.built(item)
        own = {k: Call(array_of, (self.build(v),)) for k, v in among.items()
               if v is not None and "source" in v.__dict__}
        return Choice(FromValue(number), tuple([(k, own.get(k, value)) for k in among])) if own else value

    def _chosen(self, item: SymbolicVariable, kind: int, known: Any) -> Build:
        """One of the objects that a Variable may be."""
        if known is not None:
            return self.build(known)
        if kind == LEAF and chainer.config.enable_backprop:
            self.capture.abort("whether a result is a leaf of the graph depends on a decision on array values", because=item)
        if kind == NEW:
            return FromVariable(self.capture.escaping.record(item))
        if "detached" not in item.__dict__:
            array = self.capture.chainer.new_variable(item._data[0], kind == LEAF)
            item.__dict__["detached"] = made = SymbolicVariable(self.capture, array, kind == LEAF)
            made.__dict__.update({key: item.__dict__[key] for key in ("origins", "decision") if key in item.__dict__})
        return FromVariable(self.capture.escaping.record(item.__dict__["detached"]))

    def _compound(self, item: Any) -> Build:
        known = self.built.get(id(item))
        if known is not None:
            return known[1]
        copied = self.capture.operands.copy_of(item)
        if copied is not None:
            return FromValue(copied)
        if id(item) in self._open:
            self._in_itself.add(id(item))
            return Again(self._open[id(item)])
        if id(item) in self.capture.operands.handed:
            self.capture.abort("an object that was made here and given to a call that is not compiled leaves the compiled function")
        self._open[id(item)] = object()
        made = self._parts(item)
        name = self._open.pop(id(item))
        if id(item) in self._in_itself:
            if not isinstance(made, Fillable):
                self.capture.abort(f"{a_type(item)} that contains itself leaves the compiled function")
            made = Cycle(name, made)
        self.built[id(item)] = (item, made)
        return made

    def _parts(self, item: Any) -> Build:
        kind = type(item)
        if kind is StagedList and item.uneven is not None:
            items, rest = item.uneven.items, item.uneven.rest
            return Call(operator.add, (self.build(StagedList(self.capture, [items])), self.build(list(rest))))
        if kind is StagedList and item.symbolic is not None:
            if item.symbolic.kind == "variable":
                return Call(variables_of, (self.build(variables_together(item.symbolic)),))
            return FromValue(item.symbolic.value)
        if kind is tuple or isinstance(item, tuple) and hasattr(kind, "_fields"):
            return TupleOf(kind, tuple([self.build(part) for part in item]))
        if kind is list or kind is StagedList:
            return ListOf(tuple([self.build(part) for part in item]))
        if kind in (dict, TextKeyed):
            return DictOf(tuple([(self.build(key), self.build(part)) for key, part in pairs_of(item)]))
        if kind is set and not any(is_symbolic(part) and type(part) is not SymbolicText for part in item):
            return SetOf(tuple([self.build(part) for part in item]))
        if kind is slice:
            return Call(slice, (self.build(item.start), self.build(item.stop), self.build(item.step)))
        if isinstance(item, types.MethodType) and (type(item.__self__) in (StagedList, TextKeyed) or _is_of_container(item)):
            return Call(getattr, (self.build(item.__self__), Const(item.__func__.__name__)))
        if isinstance(item, types.MethodType) and not is_symbolic(item.__self__):
            return Method(self.build(item.__func__), self.build(item.__self__))
        if is_static_method(item):
            return Call(kind, (self.build(item.__func__), self.build(item.__self__)))
        if kind is functools.partial:
            return Partial(self.build(item.func), tuple([self.build(part) for part in item.args]),
                           tuple([(name, self.build(part)) for name, part in item.keywords.items()]))
        if kind is types.FunctionType and self.functions is not None:
            return self.functions.built(item) or Const(self.capture.functions.real(item))
        if isinstance(item, ShadowBase):
            pairs = tuple([(name, self.build(part)) for name, part in attributes_of(item).items()])
            return ObjectOf(kind._dy2static_class, pairs)
        made = self._other(item)
        return made or self.capture.abort(f"an object of type {type_name(item)} that is made here leaves the compiled function")

    def _other(self, item: Any) -> Optional[Build]:
        """How to make containers of `collections`, and instances of the user's classes with slots or such a base."""
        kind = type(item)
        if self.is_changeable(item):
            return Call(copy.copy, (Const(item),))
        if kind is collections.deque:
            return Call(functools.partial(collections.deque, maxlen=item.maxlen), (self.build(list(item)),))
        if kind is collections.defaultdict:
            return Call(collections.defaultdict, (self.build(item.default_factory), self.build(dict(item))))
        if kind in (collections.OrderedDict, collections.Counter):
            return Call(kind, (self.build(dict(item)),))
        if is_library_class(kind) or is_symbolic(item) or isinstance(item, (BaseException, chainer.FunctionNode, chainer.Function)):
            return None
        base = next((base for base in (list, dict) if isinstance(item, base)), object)
        if any(not part.__flags__ & _HEAP_TYPE for part in kind.__mro__ if part not in (base, object)):
            return None
        slots = {name: getattr(item, name) for part in kind.__mro__ for name, found in part.__dict__.items()
                 if type(found) is types.MemberDescriptorType and hasattr(item, name)}
        attributes = self.build({**slots, **getattr(item, "__dict__", {})})
        contents = self.build(base(item) if base is not object else None)
        return Call(functools.partial(make_of, kind, base), (contents, attributes))


def _is_of_container(method: types.MethodType) -> bool:
    """Whether the shadow of a container has this method in place of one of Python's, which goes by the same name."""
    return isinstance(method.__self__, (list, dict, set, collections.deque)) and \
        (method.__func__.__module__ or "").startswith("dy2static.")
