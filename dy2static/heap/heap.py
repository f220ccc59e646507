"""The heap of one capture: the memo from real objects to shadows, the guards, and how attributes are read."""
from __future__ import annotations

import collections.abc
import decimal
import enum
import functools
import types
from typing import AbstractSet, Any, Dict, List, Optional, Set, Tuple, Type

import chainer
import numpy as np

from ..capture_context import CaptureContext
from ..lowering.registration import registered
from ..record.guards import (
    DefinitionsMatch,
    DistinctObjects,
    EqualsMatch,
    Guard,
    IdentityMatch,
    SameObject,
    TypeMatch,
)
from ..record.paths import (
    Attribute,
    Namespace,
    Source,
    Sources,
    contents_path,
    family,
    size_path,
    stands_for,
    with_siblings,
)
from ..runtime.definitions import Definitions
from ..runtime.devices import DEVICES
from ..runtime.staticness import is_static_function, is_static_method
from . import aliases, reads
from .aborts import CaptureAborted
from .attributes import Attributes
from .class_attributes import ClassAttributes
from .collection_shadows import COLLECTIONS
from .decimals import rely_on_decimals
from .dict_shadows import ShadowDict
from .list_shadows import ShadowList
from .locations import user_location
from .makers import SINGLETONS, VALUES, Makers, Refused
from .object_shadows import ShadowBase, ShadowModule, attributes_of
from .objects import Objects
from .ownership import is_immutable
from .public_names import names_of, replaced_names
from .set_shadows import ShadowSet

_BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.ufunc, type(np.sum))
_CONFIGURATIONS = (chainer.config, chainer.global_config)       # what is read in them is guarded by itself
_NUMBERS = {int: "py_int", float: "py_float"}

#: The numbers of NumPy that may be inputs, too.
NUMPY_NUMBERS = tuple([np.dtype(code).type for code in "?bhilBHILefd"])


def _may_change(owner: Any) -> bool:
    """Whether what a method in C is bound to is an object of the user's that may change."""
    return type(owner) in (list, dict, set, np.ndarray, *COLLECTIONS) or isinstance(owner, collections.abc.Iterator)


#: What the standard library keeps in a member of an enum.
_OF_ENUM = frozenset(("_name_", "_sort_order_", "__objclass__"))


class Heap:
    """Shadows and guards of one capture.

    capture: makes the symbolic values for arrays, Variables and other objects (`input_array` and similar functions).
    varying: paths of numbers and texts that have been seen to change, or of whole families of them: they become inputs instead of
    guards, but for those in ``fixed``.  Arrays and tuples whose families are in it are read by each of their paths, also where
    two are one.  counts: the numbers that updates are known to change.
    """

    def __init__(self, capture: CaptureContext, varying: Set[Tuple], fixed: AbstractSet[Tuple] = frozenset()):
        self.capture, self.varying, self._fixed = capture, varying, fixed
        self.counts: Set[Source] = set()
        self.refused: AbstractSet[Tuple] = frozenset()  # kinds of guards and paths of what is not relied on: it always differs
        self.grown: AbstractSet[Tuple] = frozenset()    # paths of lists that are longer or shorter in nearly every call
        self.guards: List[Guard] = []
        self._relied: Set[Tuple] = set()
        self._named: Dict[int, Any] = {}                # the functions of libraries that are relied on by their names
        self.definitions = Definitions((chainer.FunctionNode,))
        self.definitions.add_class(chainer.FunctionNode)
        for module, name in replaced_names():
            self.definitions.add_name(module, name)
        self.sources = Sources()
        self.reads = reads.places()
        self.containers: List[Any] = []
        self.stale: Optional[str] = None                # a host call that may have changed what is read from here on
        self._memo: Dict[int, Tuple[Any, Any, Source]] = {}
        self._reals: Dict[int, Any] = {}
        self._apart: Dict[int, Source] = {}
        self._origins: Dict[int, Source] = {}
        self._nans: Dict[int, Tuple[float, Source]] = {}
        self._floats: List[Source] = []                 # of those that vary
        self.objects, self.attributes, self.makers = Objects(self), Attributes(self), Makers(self)
        self.class_attributes = ClassAttributes(self)
        self.is_disposed = False
        self._immutable: List[Any] = []                 # with a ``__dict__``, which is empty

    def source(self, step: Type[Source], parent: Optional[Source], key: Any = None) -> Source:
        """The interned source of one step."""
        return self.sources.get(step, parent, key)

    def guard(self, guard: Guard) -> None:
        """Remember what the capture relies on."""
        key = type(guard), *map(id, vars(guard).values())
        if key not in self._relied:
            if self.refused and guard.source is not None:
                self.check_refused(type(guard), guard.source.path())
            self._relied.add(key)
            self.guards.append(guard)
            if self.reads is not None and self.reads.get(guard.subject()) is None:
                self.reads[guard.subject()] = user_location()

    def check_refused(self, guard: Type[Guard], path: Tuple, what: str = "what is read here") -> None:
        """Stop at what differs in nearly every call.  An argument that is a tuple becomes an object for the host only."""
        if not any([guard is kind and stands_for(place, path) for kind, place in self.refused]):
            return
        reason = f"{what} is another one in nearly every call"
        if self.makers.is_lenient or user_location() is None:
            raise Refused(reason)
        self.capture.abort(reason, final=True)

    def rely_on_names(self, function: Any) -> None:
        """Guard that the names of a library's function, which is about to be called, go on standing for it."""
        if type(function) in (type, types.BuiltinFunctionType) and function.__module__ == "decimal":
            rely_on_decimals(self, function)
        if id(function) in self._named:
            return
        for module, name in names_of(function):
            self._named[id(function)] = function
            self.definitions.add_name(module, name)

    def check_fresh(self, value: Any = None) -> None:
        """Stop if this value, just read from an object of the user's, may have been changed by a host call."""
        if self.stale is not None and not isinstance(value, _NAMED) and not is_static_function(value):
            self.capture.abort(f"state is read after `{self.stale}`, which is not compiled and may have changed it",
                               hint="read what is needed before that call")

    # --- shadows ------------------------------------------------------------------------------------------------

    def shadow(self, real: Any, source: Source) -> Any:
        """What user code sees instead of ``real``, which was read by ``source``."""
        kind = type(real)
        if kind in _NUMBERS:
            return self._number(real, source)
        if kind in _BOUND and _may_change(real.__self__) and registered(real) is None:
            return self.makers.bound_builtin(real, source)
        if kind is bool and self._varies(source):
            self.guard(TypeMatch(source, bool))
            return self.capture.inputs.truth(source, real)
        if kind in SINGLETONS or isinstance(real, enum.Enum) or registered(real) is not None or \
                any(real is own for own in _CONFIGURATIONS) or is_static_function(real) and not is_static_method(real):
            if isinstance(real, enum.Enum):
                self.objects.check_class(kind)
                self.rely_on_member(real)
            self.guard(IdentityMatch(source, real))
            return real
        if kind in (str, bytes) and self._varies(source):
            self.guard(TypeMatch(source, kind))
            return self.capture.inputs.text(source, real)
        if kind in NUMPY_NUMBERS and self._varies(source):
            self.guard(TypeMatch(source, kind))
            return self.capture.inputs.numpy_number(source, real)
        if kind in VALUES or isinstance(real, (np.generic, np.dtype)) or kind in DEVICES:
            self.guard(EqualsMatch(source, real))
            return real
        if is_immutable(real):
            self.objects.check_class(kind)
            self.guard(IdentityMatch(source, real))
            if kind is decimal.Decimal:
                rely_on_decimals(self)
            if hasattr(real, "__dict__"):
                self._immutable.append(real)
            return real
        known = self._memo.get(id(real))
        if known is not None and not self._is_apart(real, source):
            if known[2] is not source:
                self.guard(SameObject(source, known[2]))
            return known[1]
        try:
            made = self.makers.make(real, source)
        except Refused:
            if not isinstance(real, tuple):
                raise
            made = self.capture.inputs.object(real, source)
        self._memo.setdefault(id(real), (real, made, source))
        self._reals[id(made)] = real
        if self._is_apart(real, source):
            self._apart[id(made)] = source
        if issubclass(type(made), (tuple, types.MethodType, functools.partial, types.MappingProxyType)):
            self._origins[id(made)] = source
        return made

    def origin(self, made: Any) -> Optional[Source]:
        """The source of a tuple, bound method or partial that stands for one of the user's."""
        return self._origins.get(id(made))

    def fix(self, real: Any, source: Source) -> None:
        """Guard what is read as it is, so that it cannot be an input, however often it changes."""
        if type(real) in _NUMBERS or isinstance(real, VALUES):
            self.guard(EqualsMatch(source, real))
        else:
            self.shadow(real, source)

    def _varies(self, source: Source) -> bool:
        """Whether what is at the end of a path is an input, because it has been seen to change."""
        if not self.varying:
            return False
        path = source.path()
        return (path in self.varying or family(path) in self.varying) and with_siblings(path) not in self._fixed

    def has_varying_contents(self, source: Source) -> bool:
        """Whether a list is an input as a whole, because its length has been seen to change."""
        return contents_path(source.path()) in self.varying

    def _is_apart(self, real: Any, source: Source) -> bool:
        """Whether an array or tuple is read by each of its paths: from call to call, others are one.

        So it is with what is in items of which two were one, as in a batch that is drawn with replacement.  Lists and dicts may be
        written, which the other paths would not see.
        """
        if not isinstance(real, (np.ndarray, tuple)) or isinstance(source, (Namespace, Attribute)):
            return False
        while source is not None:
            if self._varies(source):
                return True
            source = source.parent
        return False

    def is_one(self, first: Any, second: Any) -> Optional[bool]:
        """Whether two tuples or arrays that are read by each of their paths are one object, under a guard; None for others."""
        sources = self._apart.get(id(first)), self._apart.get(id(second))
        if first is second or None in sources:
            return None
        is_one = self._reals[id(first)] is self._reals[id(second)]
        self.guard(SameObject(*sources) if is_one else DistinctObjects(sources))
        return is_one

    def _number(self, real: Any, source: Source) -> Any:
        if real != real:                                # which NaN it is counts, so it is no input
            self.guard(EqualsMatch(source, real))
            self._distinguish(real, source)
            return real
        if self._varies(source) or source in self.counts and with_siblings(source.path()) not in self._fixed:
            self.guard(TypeMatch(source, type(real)))
            if type(real) is float:
                self._floats.append(source)
            elif source not in self.counts:
                size = self.capture.inputs.size(source, real, size_path(source.path()) in self.varying)
                if size is not None:
                    return size
            return self.capture.inputs.number(source, real, _NUMBERS[type(real)])
        self.guard(EqualsMatch(source, real))
        return real

    def identify(self, value: Any) -> None:
        """Guard that where a string or number was read there is this very object."""
        for guard in [guard for guard in self.guards if type(guard) is EqualsMatch and guard.expected is value]:
            self.guard(IdentityMatch(guard.source, value))

    def _distinguish(self, nan: float, source: Source) -> None:
        """Rely on which of the NaNs that are read are one object: by that, ``in`` finds them, and lists of them are equal."""
        known = self._nans.setdefault(id(nan), (nan, source))
        if known[1] is not source:
            self.guard(SameObject(source, known[1]))

    def rely_on_member(self, member: enum.Enum) -> None:
        """Guard the attributes of a member of an enum, which are read as they are."""
        for name in member.__dict__.keys() - _OF_ENUM:
            self.definitions.add_entry(f"{type(member).__name__}.{member._name_}", member.__dict__, name)

    def track(self, container: Any) -> Any:
        """Take down a shadow of a container, to look for changes in it later."""
        self.containers.append(container)
        return container

    def real_of(self, made: Any) -> Any:
        """The object of the user's that a shadow or a symbolic value stands for."""
        return self._reals[id(made)]

    def has_met(self, real: Any) -> bool:
        """Whether there is a shadow or a symbolic value of this object."""
        return self.known(real) is not None

    def known(self, real: Any) -> Optional[Tuple[Any, Source]]:
        """What stands for an object, and the path by which it was read first; None if it was not."""
        known = self._memo.get(id(real))
        return known[1:] if known is not None and known[0] is real else None

    def remember(self, real: Any, made: Any, source: Source) -> None:
        """Let something stand for an object from here on."""
        self._memo[id(real)] = real, made, source

    def came_from(self, made: Any, source: Source) -> None:
        """Note by which path something was read that stands for an object of the user's."""
        self._origins[id(made)] = source

    def source_of(self, item: Any) -> Optional[Source]:
        """The path of the object that a shadow stands for; None for what is made during the capture."""
        if isinstance(item, ShadowBase):
            attributes = attributes_of(item)
            return attributes.source.parent if isinstance(attributes, ShadowDict) else None
        if isinstance(item, (ShadowDict, ShadowList, ShadowSet)):
            return item.source
        if isinstance(item, (tuple, types.MethodType, functools.partial, types.MappingProxyType)):
            return self.origin(item)
        if type(item) is ShadowModule:
            return object.__getattribute__(item, "_dy2static_source")
        return None

    def has_changed_containers(self) -> bool:
        """Whether a list or dict of the user's has changes that are not stored yet."""
        return any(item.is_changed() for item in self.containers if isinstance(item, (ShadowDict, ShadowList)))

    # --- at the end ---------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Check what cannot be intercepted, and add the guards over all objects together."""
        self.makers.check_functions()
        if any(item.__dict__ for item in self._immutable):
            raise CaptureAborted("an attribute of a string or number whose class is yours is assigned")
        for owner, name, _ in self.objects.open_classes.assigned():
            raise CaptureAborted(f"attribute {name!r} of {owner.__name__ if isinstance(owner, type) else owner} is assigned")
        nans = tuple([source for _, source in self._nans.values()])
        varying = [(nan, other) for nan in nans for other in dict.fromkeys(self._floats) if other is not nan]
        for sources in (aliases.sources_of_objects(self._memo.values()), nans, *varying):
            if len(sources) > 1:
                self.guard(DistinctObjects(sources))
        for cls, names in self.objects.open_classes.counters():
            self.definitions.leave_out(cls, names)
        if self.definitions:
            self.guard(DefinitionsMatch(self.definitions))

    def has_new_flags(self) -> bool:
        """Whether the call has replaced something that told it which way to go; see `ShadowDict`."""
        return any(isinstance(container, ShadowDict) and container.has_new_flags() for container in self.containers)

    def dispose(self) -> None:
        """Leave nothing behind: the shadow classes stop being subclasses of the user's."""
        self.makers.restore_functions()
        for item in self._immutable:
            item.__dict__.clear()
        self.objects.open_classes.restore()
        self.objects.dispose()
        self.is_disposed = True
