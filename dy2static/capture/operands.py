"""What calls get that run at every call of the program: arguments as templates with holes for values of the graph."""
from __future__ import annotations

import collections
import contextlib
import copy
import functools
import random
import types
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

import chainer
import numpy as np

from ..control_flow.raising import can_be_made, parts_of
from ..heap.dict_shadows import ShadowDict, as_key
from ..heap.list_shadows import ShadowList
from ..heap.object_shadows import ShadowBase, ShadowModule
from ..heap.objects import real_class
from ..heap.ownership import is_library, is_library_class
from ..heap.set_shadows import ShadowSet
from ..heap.wording import a_type, type_name
from ..ir.graph import Value
from ..ir.types import Dynamic
from ..lowering import host
from ..runtime.host_calls import Hole, MethodOf, StateCall, as_it_is
from ..runtime.staticness import is_static_method
from ..symbolic.host_objects import BoundHostMethod, SymbolicObject
from ..symbolic.known_texts import SymbolicText, TextKeyed, TextMethod
from ..symbolic.lists import StagedList
from ..symbolic.size_trials import without_sizes
from ..symbolic.values import PARTS, SymbolicArray, SymbolicScalar, SymbolicVariable, is_symbolic
from .stored_containers import StoredContainers

if TYPE_CHECKING:
    from .protocols import Capture


class Operands:
    """The operands of the calls of NumPy, of opaque functions and of host calls in one capture.

    handed: the lists and dicts that are made here and were handed over, with what they held.  storing: what is handed over is
    stored, it is no argument.  takes_errors: the host call looks at no more of exceptions than their text.  receiver: the call.
    """

    def __init__(self, capture: Capture):
        self.capture = capture
        self.handed: Dict[int, Any] = {}
        self.stored = StoredContainers(capture)
        self.storing = self.takes_errors = False
        self.receiver = ""
        self._copies: Dict[Tuple[int, int], Tuple[Any, Value]] = {}
        self._errors: Dict[Tuple[int, int], Tuple[BaseException, Any, Tuple, Value]] = {}
        self._once = False                              # whether an object may be handed over once only

    def holds_symbolic(self, item: Any) -> bool:
        """Whether there is anything symbolic in an attribute of a FunctionNode."""
        if is_symbolic(item) or type(item) is BoundHostMethod:
            return True
        if isinstance(item, (tuple, list, set, collections.deque)):
            return any(self.holds_symbolic(part) for part in list(item))
        if isinstance(item, functools.partial):
            return any(self.holds_symbolic(part) for part in (*item.args, *item.keywords.values()))
        if isinstance(item, dict):
            return any(self.holds_symbolic(part) for part in list(item.values()))
        if isinstance(item, slice):
            return any(is_symbolic(part) for part in (item.start, item.stop, item.step))
        if isinstance(item, chainer.Variable):
            return self.holds_symbolic(item._data[0])
        return isinstance(item, ShadowBase) or self._is_method_of_shadow(item)

    @staticmethod
    def _is_method_of_shadow(item: Any) -> bool:
        return (type(item) is types.MethodType or is_static_method(item)) and isinstance(item.__self__, ShadowBase)

    def template(self, item: Any, operands: List[Value]) -> Any:
        """The item with a `Hole` for every symbolic value; the values are appended to ``operands``."""
        item = without_sizes(item)
        if type(item) in (SymbolicText, TextMethod):
            return item.fix()
        if type(item) is SymbolicArray:
            return self._hole(item.now(), operands)
        if type(item) in PARTS:
            item.owner.shared = "kept"                  # a result may be a view of it
            return self._hole(item.as_array().now(), operands)
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
        if type(item) is BoundHostMethod:
            item.refuse()
        if self._is_method_of_shadow(item) and self.capture.heap.source_of(item.__self__) is not None:
            if not is_library_class(real_class(type(item.__self__))):
                self.capture.heap.stale = item.__func__.__name__
            owner = self._hole(self.capture.inputs.object_value(self.capture.heap.source_of(item.__self__)), operands)
            return MethodOf(owner, item.__func__.__name__)
        if isinstance(item, ShadowBase):
            self.capture.abort(f"an object of type {type_name(item)} is given to a function of a library")
        if isinstance(item, Iterator):                  # it is at its end in the next call
            self.capture.abort(f"an iterator of type {type_name(item)} is given to a function of a library", hint="give it a list")
        if self.holds_symbolic(item):
            self.capture.abort(f"{a_type(item)} that holds values of this call is given to a function of a library",
                               hint="give it the values, or a list or tuple of them")
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
            if item._data[0] is None and not self.storing:
                self._refuse("a Parameter that is not initialized yet")
            if "choice" in item.__dict__:
                self._refuse("a Variable that depends on a decision on array values", because=item)
            value = self.capture.escaping.early(item) if source is None else self.capture.inputs.object_value(source)
            return self._hole(value, operands)
        if kind is BoundHostMethod:
            return MethodOf(self._hole(item.owner.value, operands), item.method)
        source = self.capture.heap.source_of(item)
        if source is not None:
            return self._hole(self.capture.inputs.object_value(source), operands)
        if kind in (list, dict, tuple, StagedList, TextKeyed):
            return self._container(item, operands)
        return self._constant(item, operands)

    def _container(self, item: Any, operands: List[Value]) -> Any:
        """A list, dict or tuple that is made here, as one of real objects."""
        kind = type(item)
        if kind is StagedList:
            self.capture.materialiser.check_known(item)
            kind = list
        if kind is tuple:
            return tuple([self.hand_over(part, operands) for part in item])
        if id(item) in self.capture.materialiser.built:
            self.capture.abort("an object that is made here is given to two calls that are not compiled")
        if self._once and id(item) in self.handed:
            self.capture.abort(f"a {kind.__name__} that is made here is in two places when an exception is raised")
        self.handed.setdefault(id(item), (item, contents_of(item)))
        parts = functools.partial(self._parts, kind, item)
        return self.stored.store(item, operands, parts) if self.storing else parts(operands)

    def _parts(self, kind: type, item: Any, operands: List[Value]) -> Any:
        if kind is TextKeyed:
            return {self.hand_over(key, operands): self.hand_over(part, operands) for key, part in item.pairs}
        if kind is list:
            return [self.hand_over(part, operands) for part in item]
        return {as_key(key): self.hand_over(part, operands) for key, part in item.items()}

    def _constant(self, item: Any, operands: List[Value]) -> Any:
        """A function, a method, or what else is the same object in every call."""
        if isinstance(item, types.MethodType) and item.__self__ in (np.random.mtrand._rand, random.random.__self__):
            return item
        if isinstance(item, types.MethodType) or is_static_method(item):
            if type(item.__self__) is SymbolicScalar:
                self.capture.abort("a method of a number leaves the compiled function", hint="call it inside")
            owner = self.hand_over(item.__self__, operands)
            if type(owner) is Hole:
                return MethodOf(owner, item.__func__.__name__)
        if isinstance(item, (types.FunctionType, types.MethodType)):
            return self.capture.functions.real(item)
        if isinstance(item, BaseException) and self.takes_errors and can_be_made(item, self.capture.handling):
            return self._hole(self._error(item), operands)
        if isinstance(item, ShadowBase) or not self.capture.materialiser.is_constant(item):
            # what the first call makes and keeps, as a default dict does, is there in the next
            self._refuse(f"an object of type {type_name(item)} that is made here", again=self.storing)
        if self.capture.materialiser.is_changeable(item):
            return self._hole(self._copy(item), operands)
        return real_class(item)

    def copy_of(self, item: Any) -> Optional[Value]:
        """The value of the graph that is an object which is made here, where a host call has got it."""
        known = self._copies.get((id(item), id(self.capture.builder)))
        return None if known is None else known[1]

    def _copy(self, item: Any) -> Value:
        """An object that each run makes, since the user may change it: one for all host calls of this block."""
        self.handed.setdefault(id(item), (item, contents_of(item)))
        made = self.copy_of(item)
        if made is None:
            call = StateCall(copy.copy, (item,), {}, as_it_is, "copy", single=True)
            with self.capture.effects.outside():
                made, = self.capture.builder.add(host.host_call, (), {"call": call, "types": (Dynamic(),)}, name="made")
            self._copies[id(item), id(self.capture.builder)] = item, made
        return made

    def _refuse(self, what: str, **kind: Any) -> Any:
        """Stop because the host cannot be given something."""
        if self.storing:
            self.capture.abort(f"{what} is stored before a call that is not compiled, or a `raise`", **kind)
        self.capture.abort(f"{what} is given to `{self.receiver}`, which is not compiled", **kind)

    def _error(self, error: BaseException) -> Value:
        """An exception that was raised here, for the host calls of the block that caught it: one object while it stays as it is."""
        here, parts = (id(error), id(self.capture.builder)), parts_of(error, self.capture.handling)
        known = self._errors.get(here)
        if known is None or not _are_same(known[2], parts):
            self._errors[here] = known = error, self.capture.builder, parts, self.capture.host.made_error(error, parts)
        return known[3]

    @contextlib.contextmanager
    def ending(self) -> Iterator[None]:
        """The function ends here with an exception: what is handed over may still change on the other ways through it."""
        before, self.handed, self._once = self.handed, {}, True
        try:
            yield
        finally:
            self.handed, self._once = before, False

    def check(self) -> None:
        """Stop if a list or dict that a host call got, as a copy, was changed since."""
        for item, contents in self.handed.values():
            now = contents_of(item)
            if len(now) != len(contents) or any(a is not b for a, b in zip(now, contents)):
                self.capture.abort(f"{a_type(item)} that is stored, or given to a call that is not compiled, is changed later")

    def holds_new_container(self, item: Any) -> bool:
        """Whether the item is, or holds, what was made during the capture and can be changed: a list, dict or set, for example."""
        if type(item) is tuple:
            return any(map(self.holds_new_container, item))
        return type(item) in (list, dict, set, StagedList, TextKeyed) or self.capture.materialiser.is_changeable(item)

    def exposes(self, item: Any) -> bool:
        """Whether code that gets this object could change an object of the user's that this capture reads."""
        if isinstance(item, (ShadowBase, ShadowDict, ShadowList, ShadowSet, ShadowModule)):
            return True
        if type(item) in (tuple, list, StagedList):
            return any(map(self.exposes, item))
        if type(item) in (dict, TextKeyed):
            return any(self.exposes(part) for _, part in pairs_of(item))
        if isinstance(item, (types.MethodType, functools.partial)):
            return self.exposes(item.__self__) if isinstance(item, types.MethodType) else True
        return isinstance(item, types.FunctionType) and not is_library(item.__module__ or "")


def contents_of(item: Any) -> Tuple[Any, ...]:
    """What a list, a dict or the attributes of an object hold, flat."""
    if isinstance(item, list):
        return tuple(item)
    return tuple(part for pair in (pairs_of(item) if isinstance(item, (dict, TextKeyed)) else vars(item).items()) for part in pair)


def pairs_of(item: Any) -> Any:
    """Keys and values of a dict."""
    return item.pairs if type(item) is TextKeyed else item.items()


def _are_same(first: Any, other: Any) -> bool:
    """Whether two of `parts_of` are of an exception that has not changed."""
    if type(first) is dict and type(other) is dict:
        return list(first) == list(other) and _are_same(tuple(first.values()), tuple(other.values()))
    if type(first) is tuple and type(other) is tuple:
        return len(first) == len(other) and all(map(_are_same, first, other))
    return first is other
