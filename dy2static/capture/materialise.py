"""From shadows back to real objects: as templates for host calls, and as builds for results and writes."""
from __future__ import annotations

import collections
import contextlib
import enum
import functools
import operator
import random
import types
from typing import Any, Dict, Iterator, List, Optional, Tuple

import chainer
import numpy as np

from ..ir.graph import Value
from ..lowering.host import Hole, MethodOf
from ..runtime.staticness import is_static_function
from ..staging.raising import can_be_made, parts_of
from ..symbolic.choices import LEAF, NEW
from ..symbolic.known_texts import SymbolicText, TextKeyed, TextMethod
from ..symbolic.lists import StagedList
from ..symbolic.sizes import without_sizes
from ..symbolic.values import (
    ArrayMethod,
    BoundHostMethod,
    Maybe,
    SymbolicArray,
    SymbolicObject,
    SymbolicScalar,
    SymbolicVariable,
    is_symbolic,
)
from ..world.objects import ShadowMeta, real_class
from ..world.outcome import Build
from ..world.shadows import ShadowBase, ShadowDict, ShadowList, ShadowModule, ShadowSet, as_key, attributes_of
from ..world.trust import is_immutable, is_library, is_library_class
from ..world.wording import type_name
from .made_functions import MadeFunctions

_ATOMS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented), np.dtype, range,
          types.BuiltinFunctionType, np.ufunc, type(np.sum), types.GetSetDescriptorType, types.MethodDescriptorType)


_HEAP_TYPE = 1 << 9                 # the flag of classes that are written in Python

#: Objects whose methods are not constants.
_WITH_CONTENTS = (list, dict, set, tuple, collections.deque, types.GeneratorType)


array_of = operator.attrgetter("array")


class Materialiser:
    """Turns what user code holds at the end of a capture into instructions for making it at every run."""

    def __init__(self, capture: Any):
        self.capture = capture
        self.built: Dict[int, Tuple[Any, Build]] = {}
        self._open: Dict[int, object] = {}
        self._in_itself: set = set()
        self.handed: Dict[int, Any] = {}
        self._errors: Dict[int, Tuple[Exception, Any, Value]] = {}
        self.functions: Optional[MadeFunctions] = None
        self.storing = False                            # whether what is handed over is stored, not an argument
        self.takes_errors = False                       # whether the host call looks at no more of exceptions than their text
        self.receiver = ""                              # the call that it is handed over to
        self._once = False                              # whether an object may be handed over once only

    # --- templates: operands of numpy, opaque and host calls ----------------------------------------------------------

    def holds_symbolic(self, item: Any) -> bool:
        """Whether there is anything symbolic in an attribute of a FunctionNode."""
        if is_symbolic(item):
            return True
        if isinstance(item, (tuple, list, set)):
            return any(self.holds_symbolic(part) for part in list(item))
        if isinstance(item, dict):
            return any(self.holds_symbolic(part) for part in list(item.values()))
        if isinstance(item, slice):
            return any(is_symbolic(part) for part in (item.start, item.stop, item.step))
        if isinstance(item, chainer.Variable):
            return self.holds_symbolic(item._data[0])
        return isinstance(item, ShadowBase) or self._is_method_of_shadow(item)

    @staticmethod
    def _is_method_of_shadow(item: Any) -> bool:
        return type(item) is types.MethodType and isinstance(item.__self__, ShadowBase)

    def template(self, item: Any, operands: List[Value]) -> Any:
        """The item with a `Hole` for every symbolic value; the values are appended to ``operands``."""
        item = without_sizes(item)
        if type(item) in (SymbolicText, TextMethod):
            return item.fix()
        if type(item) is SymbolicArray:
            return self._hole(item.now(), operands)
        if type(item) is SymbolicScalar or type(item) is SymbolicObject:
            return self._hole(item.value, operands)
        if isinstance(item, SymbolicVariable):
            self.capture.abort("a Variable is an operand of NumPy", hint="give NumPy its `.array`")
        if type(item) in (list, StagedList) or isinstance(item, ShadowList):
            return [self.template(part, operands) for part in item]
        if type(item) is dict or isinstance(item, ShadowDict):
            return {as_key(key): self.template(part, operands) for key, part in item.items()}
        if type(item) is tuple:
            return tuple([self.template(part, operands) for part in item])
        if type(item) is slice:
            return slice(*[self.template(part, operands) for part in (item.start, item.stop, item.step)])
        if self._is_method_of_shadow(item) and self._source_of(item.__self__) is not None:
            if not is_library_class(real_class(type(item.__self__))):
                self.capture.world.stale = item.__func__.__name__
            owner = self._hole(self.capture.object_value(self._source_of(item.__self__)), operands)
            return MethodOf(owner, item.__func__.__name__)
        if isinstance(item, ShadowBase):
            self.capture.abort(f"an object of type {type_name(item)} is given to a function of a library")
        return real_class(item)

    def _hole(self, value: Value, operands: List[Value]) -> Hole:
        operands.append(value)
        return Hole(len(operands) - 1)

    def hand_over(self, item: Any, operands: List[Value]) -> Any:
        """Like `template`, for the host: it gets real objects, Variables with their identity, and fresh containers."""
        item = without_sizes(item)
        kind = type(item)
        self.capture.staging.need_exact(item)
        if kind is SymbolicArray:
            return self._hole(self.capture.array_writes.handed(item), operands)
        if kind in (SymbolicScalar, SymbolicObject, SymbolicText):
            return self._hole(item.value, operands)
        if kind is TextMethod:
            return item.fix()
        if isinstance(item, SymbolicVariable):
            source = item.__dict__.get("source")
            if "choice" in item.__dict__:
                self._refuse("a Variable that depends on a decision on array values", because=item)
            value = self.capture.early_variable(item) if source is None else self.capture.object_value(source)
            return self._hole(value, operands)
        if kind is BoundHostMethod:
            return MethodOf(self._hole(item.owner.value, operands), item.name)
        source = self._source_of(item)
        if source is not None:
            return self._hole(self.capture.object_value(source), operands)
        if kind is StagedList:
            self._check_known(item)
            kind = list
        if kind in (list, dict, TextKeyed):
            if id(item) in self.built:
                self.capture.abort("an object that is made here is given to two calls that are not compiled")
            if self._once and id(item) in self.handed:
                self.capture.abort(f"a {kind.__name__} that is made here is in two places when an exception is raised")
            self.handed.setdefault(id(item), (item, _contents(item)))
        if kind is TextKeyed:
            return {self.hand_over(key, operands): self.hand_over(part, operands) for key, part in item.pairs}
        if kind is list or kind is tuple:
            return kind([self.hand_over(part, operands) for part in item])
        if kind is dict:
            return {as_key(key): self.hand_over(part, operands) for key, part in item.items()}
        if isinstance(item, types.MethodType) and item.__self__ in (np.random.mtrand._rand, random.random.__self__):
            return item
        if isinstance(item, types.MethodType):
            owner = self.hand_over(item.__self__, operands)
            if type(owner) is Hole:
                return MethodOf(owner, item.__func__.__name__)
        if isinstance(item, (types.FunctionType, types.MethodType)):
            return self._real_function(item)
        if isinstance(item, Exception) and self.takes_errors and can_be_made(item):
            return self._hole(self._error(item), operands)
        if isinstance(item, ShadowBase) or not self._is_constant(item):
            # what the first call makes and keeps, as a default dict does, is there in the next
            self._refuse(f"an object of type {type_name(item)} that is made here", again=self.storing)
        return real_class(item)

    def _refuse(self, what: str, **kind: Any) -> Any:
        """Stop because the host cannot be given something."""
        if self.storing:
            self.capture.abort(f"{what} is stored before a call that is not compiled, or a `raise`", **kind)
        self.capture.abort(f"{what} is given to `{self.receiver}`, which is not compiled", **kind)

    def _error(self, error: Exception) -> Value:
        """An exception that was raised here, for the host calls of the block that caught it."""
        known = self._errors.get(id(error))
        if known is None:
            value = self.capture.made_error(parts_of(error))
            self._errors[id(error)] = known = error, self.capture.builder, value
        elif known[1] is not self.capture.builder:
            self.capture.abort(f"a {type(error).__name__} that is raised here is used under two decisions on array values")
        return known[2]

    @contextlib.contextmanager
    def ending(self) -> Iterator[None]:
        """The function ends here with an exception: what is handed over may still change on the other ways through it."""
        before, self.handed, self._once = self.handed, {}, True
        try:
            yield
        finally:
            self.handed, self._once = before, False

    def _check_known(self, item: StagedList) -> None:
        if item.symbolic is not None and (item.symbolic.kind == "variable"):
            self.capture.abort("a list whose length depends on array values leaves the compiled function with Variables in it",
                               because=item.symbolic)

    def leave(self) -> None:
        """The function is over: what is built now, also functions that were made in it, does not change any more."""
        self.functions = MadeFunctions(self.capture, self.build)

    def check_handed(self) -> None:
        """Stop if a list or dict that a host call got, as a copy, or a name of a function that leaves, was changed since."""
        if self.functions is not None:
            self.functions.check()
        for item, contents in self.handed.values():
            now = _contents(item)
            if len(now) != len(contents) or any(a is not b for a, b in zip(now, contents)):
                self.capture.abort(f"a {type_name(item)} that is stored, or given to a call that is not compiled, is changed later")

    def holds_new_container(self, item: Any) -> bool:
        """Whether the item is, or holds, a list, dict or set that was made during the capture."""
        if type(item) is tuple:
            return any(map(self.holds_new_container, item))
        return type(item) in (list, dict, set, StagedList, TextKeyed)

    def exposes(self, item: Any) -> bool:
        """Whether code that gets this object could change an object of the user's that this capture reads."""
        if isinstance(item, (ShadowBase, ShadowDict, ShadowList, ShadowSet, ShadowModule)):
            return True
        if type(item) in (tuple, list, StagedList):
            return any(map(self.exposes, item))
        if type(item) in (dict, TextKeyed):
            return any(self.exposes(part) for _, part in _pairs(item))
        if isinstance(item, (types.MethodType, functools.partial)):
            return self.exposes(item.__self__) if isinstance(item, types.MethodType) else True
        return isinstance(item, types.FunctionType) and not is_library(item.__module__ or "")

    def _source_of(self, item: Any) -> Any:
        if isinstance(item, ShadowBase):
            attributes = attributes_of(item)
            return attributes.source.parent if isinstance(attributes, ShadowDict) else None
        if isinstance(item, (ShadowDict, ShadowList, ShadowSet)):
            return item.source
        if isinstance(item, (tuple, types.MethodType, functools.partial, types.MappingProxyType)):
            return self.capture.world.origin(item)
        if type(item) is ShadowModule:
            return object.__getattribute__(item, "_dy2static_attributes").source.parent
        return None

    def _is_constant(self, item: Any) -> bool:
        if isinstance(item, types.BuiltinFunctionType) and isinstance(item.__self__, _WITH_CONTENTS):
            return False
        if type(item) is ArrayMethod:
            self.capture.abort(f"the method {item.__name__!r} of an array leaves the compiled function", hint="call it inside")
        return (isinstance(item, _ATOMS) and not is_symbolic(item)
                or isinstance(item, (type, types.ModuleType, enum.Enum, np.generic))
                or is_static_function(item) or callable(item) and is_library(type(item).__module__)
                or type(item) in (slice, frozenset) or is_immutable(item))

    def _is_made_here(self, function: types.FunctionType) -> bool:
        return function.__code__ in self.capture.calls.staged_codes and self.capture.unstaged(function) is None

    def _real_function(self, function: Any) -> Any:
        if isinstance(function, types.FunctionType) and function.__code__ in self.capture.calls.staged_codes:
            real = self.capture.unstaged(function)
            if real is not None:
                return real
            self.capture.abort(f"the function {function.__name__}, which is made here, leaves the compiled function")
        if isinstance(function, types.MethodType) and is_symbolic(function.__self__):
            self.capture.abort("a method of a Variable or array leaves the compiled function")
        return function

    # --- builds: the result and the writes ----------------------------------------------------------------------------

    def build(self, item: Any) -> Build:
        """How to make the object at every run."""
        item = without_sizes(item)
        kind = type(item)
        if kind is Maybe:                               # of a converted `return`: only where nothing was returned is it unbound
            return self.build(item.value)
        if kind is SymbolicScalar:
            self.capture.staging.need_exact(item)
            return Build("value", (item.value,)) if item.text is None else Build("number", (item.text,))
        if kind is SymbolicText:
            return Build("number", (item.text,))
        if kind is TextMethod:
            return Build("const", (item.fix(),))
        if kind is SymbolicArray:
            return self.capture.array_writes.built(item) if item.choice is None or item.memory is not None else \
                self._chosen_array(item)
        if kind is SymbolicObject:
            return Build("value", (item.value,))
        if kind is BoundHostMethod:
            item.refuse()
        if isinstance(item, SymbolicVariable):
            source = item.__dict__.get("source")
            return Build("source", (source,)) if source is not None else self._variable(item)
        source = self._source_of(item)
        if source is not None:
            return Build("source", (source,))
        if isinstance(item, ShadowMeta):
            return Build("const", (real_class(item),))
        if isinstance(item, types.FunctionType) and self.functions is not None and self._is_made_here(item):
            return self._compound(item)
        if isinstance(item, types.FunctionType) or (
                self._is_constant(item) and not isinstance(item, (tuple, list, dict, set, types.MethodType, functools.partial))):
            return Build("const", (self._real_function(item),))
        return self._compound(item)

    def _variable(self, item: SymbolicVariable) -> Build:
        if "choice" not in item.__dict__:
            return Build("variable", (self.capture.escaping(item),))
        number, among = item.__dict__["choice"]
        return Build("choice", (Build("value", (number,)), tuple([(k, self._chosen(item, k, v)) for k, v in among.items()])))

    def _chosen_array(self, item: SymbolicArray) -> Build:
        """The array of a Variable that is one of several: of the user's own, their array itself."""
        number, among = item.choice
        value = self.capture.array_writes.built(item)
        own = {k: Build("call", (array_of, (self.build(v),))) for k, v in among.items()
               if v is not None and "source" in v.__dict__}
        return Build("choice", (Build("value", (number,)), tuple([(k, own.get(k, value)) for k in among]))) if own else value

    def _chosen(self, item: SymbolicVariable, kind: int, known: Any) -> Build:
        """One of the objects that a Variable may be."""
        if known is not None:
            return self.build(known)
        if kind == LEAF and chainer.config.enable_backprop:
            self.capture.abort("whether a result is a leaf of the graph depends on a decision on array values", because=item)
        if kind == NEW:
            return Build("variable", (self.capture.escaping(item),))
        if "detached" not in item.__dict__:
            array = self.capture.new_variable(item._data[0], kind == LEAF)
            item.__dict__["detached"] = made = SymbolicVariable(self.capture, array, kind == LEAF)
            made.__dict__.update({key: item.__dict__[key] for key in ("origins", "decision") if key in item.__dict__})
        return Build("variable", (self.capture.escaping(item.__dict__["detached"]),))

    def _compound(self, item: Any) -> Build:
        known = self.built.get(id(item))
        if known is not None:
            return known[1]
        if id(item) in self._open:
            self._in_itself.add(id(item))
            return Build("again", (self._open[id(item)],))
        if id(item) in self.handed:
            self.capture.abort("an object that was made here and given to a call that is not compiled leaves the compiled function")
        self._open[id(item)] = object()
        made = self._parts(item)
        name = self._open.pop(id(item))
        if id(item) in self._in_itself:
            if made.kind not in ("list", "dict", "object"):
                self.capture.abort(f"a {type_name(item)} that contains itself leaves the compiled function")
            made = Build("cycle", (name, made))
        self.built[id(item)] = (item, made)
        return made

    def _parts(self, item: Any) -> Build:
        kind = type(item)
        if kind is StagedList and item.symbolic is not None:
            self._check_known(item)
            return Build("value", (item.symbolic.value,))
        if kind is tuple or isinstance(item, tuple) and hasattr(kind, "_fields"):
            return Build("tuple", (kind, tuple([self.build(part) for part in item])))
        if kind is list or kind is StagedList:
            return Build("list", tuple([self.build(part) for part in item]))
        if kind in (dict, TextKeyed):
            return Build("dict", tuple([(self.build(key), self.build(part)) for key, part in _pairs(item)]))
        if kind is set and not any(is_symbolic(part) and type(part) is not SymbolicText for part in item):
            return Build("set", tuple([self.build(part) for part in item]))
        if isinstance(item, types.MethodType) and not is_symbolic(item.__self__):
            return Build("method", (self.build(item.__func__), self.build(item.__self__)))
        if kind is functools.partial:
            return Build("partial", (self.build(item.func), tuple([self.build(part) for part in item.args]),
                                     tuple([(name, self.build(part)) for name, part in item.keywords.items()])))
        if kind is types.FunctionType and self.functions is not None:
            return self.functions.built(item) or Build("const", (self._real_function(item),))
        if isinstance(item, ShadowBase):
            pairs = tuple([(name, self.build(part)) for name, part in attributes_of(item).items()])
            return Build("object", (kind._dy2static_class, pairs))
        made = self._other(item)
        return made or self.capture.abort(f"an object of type {type_name(item)} that is made here leaves the compiled function")

    def _other(self, item: Any) -> Optional[Build]:
        """How to make containers of `collections`, and instances of the user's classes with slots or such a base."""
        kind = type(item)
        if kind is collections.deque:
            return Build("call", (functools.partial(collections.deque, maxlen=item.maxlen), (self.build(list(item)),)))
        if kind is collections.defaultdict:
            return Build("call", (collections.defaultdict, (self.build(item.default_factory), self.build(dict(item)))))
        if kind in (collections.OrderedDict, collections.Counter):
            return Build("call", (kind, (self.build(dict(item)),)))
        if is_library_class(kind) or is_symbolic(item) or isinstance(item, (BaseException, chainer.FunctionNode, chainer.Function)):
            return None
        base = next((base for base in (list, dict) if isinstance(item, base)), object)
        if any(not part.__flags__ & _HEAP_TYPE for part in kind.__mro__ if part not in (base, object)):
            return None
        slots = {name: getattr(item, name) for part in kind.__mro__ for name, found in part.__dict__.items()
                 if type(found) is types.MemberDescriptorType and hasattr(item, name)}
        attributes = self.build({**slots, **getattr(item, "__dict__", {})})
        contents = self.build(base(item) if base is not object else None)
        return Build("call", (functools.partial(make_of, kind, base), (contents, attributes)))


def make_of(cls: type, base: type, contents: Any, attributes: Dict[str, Any]) -> Any:
    """An instance of a user's class, without its ``__init__``."""
    made = base.__new__(cls)
    if base is not object:
        (base.extend if base is list else base.update)(made, contents)      # type: ignore[attr-defined]
    for name, value in attributes.items():
        object.__setattr__(made, name, value)
    return made


def _contents(item: Any) -> Tuple[Any, ...]:
    """What a list or dict holds, flat."""
    return tuple(item) if isinstance(item, list) else tuple(part for pair in _pairs(item) for part in pair)


def _pairs(item: Any) -> Any:
    """Keys and values of a dict."""
    return item.pairs if type(item) is TextKeyed else item.items()
