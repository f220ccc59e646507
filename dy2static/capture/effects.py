"""What a call does besides computing: host calls, writes to objects, Variables that leave it; in the order of effects."""
from __future__ import annotations

import contextlib
import logging
import sys
import types
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

import chainer
import numpy as np

from ..ir.building import building
from ..ir.graph import Value
from ..ir.types import Dynamic
from ..lowering import host
from ..lowering.observed import Untouched
from ..lowering.opaque import using_configs
from ..runtime.frames import caller_at, warn
from ..runtime.node import make_variable, store_gradient
from ..runtime.staticness import NOT_STATIC
from ..staging.raising import make_error
from ..symbolic import stand_ins
from ..symbolic.values import BoundHostMethod, SymbolicObject, SymbolicVariable
from ..world.collection_shadows import ShadowDeque
from ..world.locations import user_lines
from ..world.naming import identifier
from ..world.outcome import EscapingVariable, Write
from ..world.protection import is_protected
from ..world.shadows import ShadowList, ShadowSet
from ..world.sources import Source
from ..world.trust import is_immutable, is_left_alone, is_library
from .calls import HARMLESS, KEEPING_NOTHING, writable_cells
from .host_results import is_pure, structure_of, types_of


class Effects:
    """Of a `Capture`: host calls, writes and escaping Variables."""

    def host_call(self, function: Any, args: Tuple, kwargs: Mapping[str, Any], types_: Optional[Tuple] = None,
                  structure: Any = stand_ins.LEAF, name: str = "", plainly: bool = False) -> Any:
        """Leave a call to the host: it runs at every call of the program, here in the order of effects.

        plainly: it cannot fail, and neither looks at the objects that it gets nor keeps the Variables: see `Reports`.
        """
        self.check()
        trusted = types_ is not None or any(function is harmless for harmless in HARMLESS)
        looks = not plainly and (not trusted or any(map(self.materialiser.exposes, (*args, *kwargs.values()))))
        if looks:
            self.store_writes(may_fail=not trusted)
        elif not types_ and self.array_writes.is_ahead:
            self._store(self.array_writes.changes())
        name = name or getattr(function, "__name__", None) or getattr(function, "name", None) or type(function).__name__
        self.event("host", name, _why(function, name))
        if sys.exc_info()[1] is not self.handling and _may_look_at_exceptions(function, name, kwargs, trusted):
            self.abort(f"`{name}` is called while an exception is handled, and may look at that",
                       hint="call it after the `except` block, with `str(error)`")
        operands: List[Value] = []
        self.materialiser.takes_errors, self.materialiser.receiver = trusted, name
        self.array_writes.harmless = trusted and type(function) is not BoundHostMethod and \
            getattr(function, "__module__", "") not in ("logging", "chainer.reporter")
        try:
            template = (self.materialiser.hand_over(tuple(args), operands), self.materialiser.hand_over(dict(kwargs), operands))
        finally:
            self.array_writes.harmless = self.materialiser.takes_errors = False
        target = self.materialiser.hand_over(function, operands)
        seen = untouched = None
        if not trusted:
            pure = is_pure(function, (*args, *kwargs.values()))
            looks = not pure
            seen, untouched = self.unknown.seen(function, args, kwargs, name, pure)
            if not pure:
                self._note_changes(function, args, kwargs, name, untouched)
        within = None if types_ else self._under_config(caller_at(user_lines()))
        flatten = flat if types_ is not None else _one
        if seen is not None:
            self.array_writes.returned = name
            flatten, structure, types_ = seen, structure_of(seen.kind), types_of(seen.kind)
        keeps = chainer.config.keep_graph_on_report if plainly else not any(function is other for other in KEEPING_NOTHING)
        call = (host.Report if plainly else host.Call)(target, template[0], template[1], flatten, name, within=within,
                                                       looks=looks, keeps=keeps)
        attrs = {"call": call, "types": (Dynamic(),) if types_ is None else types_}
        outputs = self.builder.add(host.host_call, tuple(operands), attrs, name=identifier(name))
        for item in (*args, *kwargs.values()) if untouched and not pure else ():
            if isinstance(item, SymbolicVariable) and "exposed" not in item.__dict__:
                self._check_untouched(item, untouched)
        return stand_ins.unflatten(structure, [self.wrap(v) for v in outputs])

    def made_error(self, parts: Tuple) -> Value:
        """An exception of these parts as a value of the graph."""
        self.host_call(make_error, parts, {}, (Dynamic(),), name="error")
        return self.builder.nodes[-1].outputs[0]

    def _under_config(self, within: Any) -> Any:
        """How a host call is made, with the entries of ``chainer.config`` that are set around it in the function."""
        entries = self.changed_config()
        if any(value is not chainer.mixed16 and not isinstance(value, _SETTINGS) for value in entries.values()):
            self.abort("an entry of chainer.config that is no plain value is set around a call that is not compiled")

        def call(function: Any, args: Tuple, kwargs: Dict[str, Any]) -> Any:
            with using_configs(entries):
                return function(*args, **kwargs) if within is None else within(function, args, kwargs)
        return call if entries else within

    def _check_untouched(self, item: SymbolicVariable, check: Untouched) -> None:
        """Let the run check that a Variable which a host call got still has the array that it had."""
        source = item.__dict__.get("source")
        variable = self.early_variable(item) if source is None else self.object_value(source)
        call = host.StateCall(check, (host.Hole(0), host.Hole(1), item.requires_grad), {}, _none, "check_untouched")
        self.builder.add(host.host_call, (variable, item.value), {"call": call, "types": ()}, name="check_untouched")

    def _note_changes(self, function: Any, args: Tuple, kwargs: Mapping[str, Any], name: str, untouched: Any) -> None:
        """A host call of unknown code: what it may change is not read from here on, and it gets no new containers."""
        given = (*args, *kwargs.values())
        owner = function.owner if type(function) is BoundHostMethod else function
        own = type(owner) if type(owner) is not SymbolicObject else type(owner.real)
        code = function if isinstance(function, (types.FunctionType, type)) else own
        is_users = not is_library(getattr(code, "__module__", None) or "") or \
            isinstance(function, types.MethodType) and not is_immutable(function.__self__)
        if is_users and any(self.materialiser.holds_new_container(item) for item in given):
            self.abort(f"a list or dict that is made here is given to `{name}`, which may change or keep it")
        if is_users or any(map(self.materialiser.exposes, given)):
            self.world.stale = name
        if isinstance(function, types.FunctionType):
            for cell in writable_cells(function):
                if id(cell) in self._cells:
                    self.abort(f"`{name}` changes a closure variable that is used here")
        for item in given if is_users else ():
            if isinstance(item, SymbolicVariable) and (not untouched or item._data[0].memory is not None):
                item.__dict__["exposed"] = name

    def is_protected(self) -> bool:
        """Whether a failure here would be caught, or cleaned up after, by code of the user's."""
        return is_protected(self.run.__func__.__code__)

    def store_writes(self, may_fail: bool = True) -> None:
        """Put pending writes into the program here, before something that could look, or fail."""
        if may_fail and self.is_protected():
            self.abort("something that may fail at run time stands inside a `try` or `with`", hint="move it out of that block")
        self.reports.mark()
        if self.builder is not self.root:
            self._store_outside()
        self._store(self._changes())

    def enter_decision(self) -> None:
        """The outermost decision on array values starts here."""
        for container in self.world.containers:
            if isinstance(container, ShadowList):
                container.outside = list.__len__(container)

    def _store_outside(self) -> None:
        """Append before the decision what was appended before it: every way through it shall see that, and only once."""
        with self._outside():
            for container in self.world.containers:
                items = container.appended_outside() if isinstance(container, ShadowList) else ()
                if items:
                    self._store([(container.source, _NAMES[type(container)] + "extend", None, items)])

    @contextlib.contextmanager
    def _outside(self) -> Iterator[None]:
        """Nodes made inside stand before the outermost decision."""
        inner, depth = self.builder, self.staging.depth
        self.builder, self.staging.depth = self.root, 0
        try:
            with building(self.root):
                yield
        finally:
            self.builder, self.staging.depth = inner, depth

    def _store(self, changes: Iterable[Tuple[Source, str, Any, Any]]) -> None:
        for container, kind, key, item in list(changes):
            operands = [self.object_value(container)]
            self.materialiser.storing = True
            template = self.materialiser.hand_over(item, operands)
            self.materialiser.storing = False
            call = host.StateCall(_STORES[kind], (host.Hole(0), key, template), {}, _none, kind)
            self.builder.add(host.host_call, tuple(operands), {"call": call, "types": ()}, name="write")

    def _final_writes(self) -> Tuple[Write, ...]:
        return tuple([Write(kind, container, key, None if kind == "delete" else self.materialiser.build(item))
                      for container, kind, key, item in list(self._changes())])

    def _changes(self) -> List[Tuple[Source, str, Any, Any]]:
        found = []
        for container in self.world.containers:
            names = _NAMES.get(type(container), "")
            for kind, key, item in container.changes():
                if key == "__builtins__":
                    continue
                found.append((container.source, names + kind, key, item))
        for cell in self._cells.values():
            found += cell.changes()
        return found + self.gradients.changes() + list(self.array_writes.changes())

    def escaping(self, variable: SymbolicVariable) -> EscapingVariable:
        """The record of a Variable made here that the user can get hold of."""
        key = id(variable)
        self._check_gradient(variable)
        if "volatile" in variable.__dict__:
            self.abort("a Variable that is made here leaves the compiled function with an attribute")
        if key not in self._escaping:
            if self.staging.depth and not self._is_made_outside(variable.value):
                self.abort("a Variable that is made in a loop or decision on array values is stored or shown there",
                           hint="store it behind the loop or decision, or show its array (`x.array`)")
            record = EscapingVariable(variable.value, variable.requires_grad, variable.connected)
            self._escaping[key] = variable, record
            self.variables.append(record)
        return self._escaping[key][1]

    def _is_made_outside(self, value: Value) -> bool:
        """Whether a value was there before the outermost decision that is being captured."""
        return value in self.root.inputs or any(value in node.outputs for node in reversed(self.root.nodes))

    def _check_decided(self) -> None:
        """Refuse results whose identity with each other depends on a decision."""
        if not chainer.config.enable_backprop and any(record.connected for record in self.variables):
            self.abort("a part of a function without backprop is differentiated")
        if any(record.connected and record.requires_grad for record in self.variables):
            self.array_writes.check_end()
        seen: Dict[int, SymbolicVariable] = {}
        for variable, _ in list(self._escaping.values()):
            self._check_gradient(variable)
            for origin in variable.__dict__.get("origins") or (id(variable),):
                known = seen.setdefault(origin, variable)
                if known is not variable:
                    decided = variable if variable.__dict__.get("decision") is not None else known
                    self.abort("whether two results are one Variable depends on a decision on array values", because=decided)

    def is_escaping(self, variable: SymbolicVariable) -> bool:
        """Whether the user can get hold of a Variable made here already."""
        return id(variable) in self._escaping

    def _check_gradient(self, variable: SymbolicVariable) -> None:
        if self.gradients.keeps(variable):
            self.abort("a Variable that is made here leaves the compiled function with a gradient")

    def early_variable(self, variable: SymbolicVariable) -> Value:
        """The Variable itself as a value of the graph, for a host call that sees it."""
        record = self.escaping(variable)
        if not record.early:
            call = host.StateCall(make_variable, (host.Hole(0), record.requires_grad), {}, _one, "make_variable", single=True)
            with self._outside():
                record.early = self.builder.add(host.host_call, (record.value,), {"call": call, "types": (Dynamic(),)},
                                                name="variable")
        return record.early[0]


#: What entries of ``chainer.config`` are.
_SETTINGS = (type(None), bool, int, float, str, np.dtype, type)


def _store_item(container: Any, key: Any, value: Any) -> None:
    container[key] = value


def _delete_item(container: Any, key: Any, value: Any) -> None:
    # The key was there when user code deleted it, or that would have raised.  A change that is pending before a decision is
    # stored in each way through it that lets somebody look, and once more behind it: like a "set", it may happen twice.
    if key in container:
        del container[key]


def _extend(container: Any, key: Any, value: Any) -> None:
    container.extend(value)


def _assign(container: Any, key: Any, value: Any) -> None:
    container[:] = value


def _assign_set(container: Any, key: Any, value: Any) -> None:
    container.clear()
    container.update(value)


def _store_cell(container: Any, key: Any, value: Any) -> None:
    container.cell_contents = value


def _delete_cell(container: Any, key: Any, value: Any) -> None:
    del container.cell_contents


def _write_array(container: Any, key: Any, value: Any) -> None:
    container[...] = value


def _assign_deque(container: Any, key: Any, value: Any) -> None:
    container.clear()
    container.extend(value)


#: Of containers whose kinds of changes have names of their own.
_NAMES = {ShadowList: "list ", ShadowSet: "set ", ShadowDeque: "deque "}

_STORES = {"set": _store_item, "delete": _delete_item, "list set": _store_item, "list extend": _extend,
           "list assign": _assign,
           "deque extend": _extend, "deque assign": _assign_deque,
           "set assign": _assign_set, "cell set": _store_cell, "cell delete": _delete_cell,
           "gradient": store_gradient, "array": _write_array}


def flat(result: Any) -> List[Any]:
    return stand_ins.flatten(result)[1]


def _one(result: Any) -> List[Any]:
    return [result]


def _none(result: Any) -> List[Any]:
    return []


#: Modules whose functions and methods do not look at the exception that is being handled, but for logging when it is told to.
_NOT_LOOKING = frozenset(("builtins", "chainer", "datetime", "io", "_io", "json", "logging", "numpy", "os", "posix", "time"))


def _may_look_at_exceptions(function: Any, name: str, kwargs: Mapping[str, Any], trusted: bool) -> bool:
    """Whether a call may look at the exception that is being handled, of which runs know nothing."""
    if name == "exception" or kwargs.get("exc_info") not in (None, False):
        return True
    home = type(function.owner.real) if type(function) is BoundHostMethod else function
    return not trusted and (getattr(home, "__module__", None) or "").partition(".")[0] not in _NOT_LOOKING


def _why(function: Any, name: str) -> str:
    """Why a call waits for the host."""
    if type(function) is BoundHostMethod:
        is_log = isinstance(function.owner.real, logging.Logger)
        return "an effect" if is_log else "a method of an object that is not looked into"
    module = "" if type(function) is SymbolicObject else getattr(function, "__module__", None) or ""
    if type(function) is types.FunctionType and is_left_alone(function):
        return "marked not_to_static" if getattr(function, NOT_STATIC, False) else f"ignore_module has {module}"
    if name.startswith("random."):
        return "draws random numbers"
    if name.startswith("time."):
        return "reads the clock"
    if any(function is other for other in (print, warn, open, input)) or module in ("logging", "chainer.reporter"):
        return "an effect"
    if name == "raise" or name.startswith("check"):
        return "raises what depends on array values"
    if name in ("str", "repr", "format", "join", "ascii", "fstring"):
        return "a text of values that only the run knows"
    return f"code of {module or type(function).__name__} is not converted"
