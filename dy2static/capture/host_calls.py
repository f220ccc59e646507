"""Calls that wait for the host: they run at every call of the program, in the order of effects."""
from __future__ import annotations

import logging
import sys
import types
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Tuple

import chainer
import numpy as np

from ..heap.locations import passed_lines, user_lines
from ..heap.naming import identifier
from ..heap.ownership import is_immutable, is_left_alone, is_library
from ..ir.graph import Value
from ..ir.types import Dynamic
from ..library_facts.python import LEAVING_LEVELS
from ..lowering import host
from ..runtime.frames import caller_at, warn
from ..runtime.host_calls import LEAF, Call, Hole, Report, StateCall, as_it_is, flat, nothing
from ..runtime.observed import Untouched
from ..runtime.opaque import UnderConfig
from ..runtime.raising import Raised, raise_again
from ..runtime.staticness import NOT_STATIC
from ..symbolic import abstract_eval
from ..symbolic.host_objects import BoundHostMethod, SymbolicObject
from ..symbolic.values import SymbolicVariable
from .calls import writable_cells
from .handlers import HARMLESS, KEEPING_NOTHING
from .host_results import is_pure, structure_of, types_of
from .purity import looks_at_graphs, only_reads
from .users_code import may_run_for_text, may_run_users_code

if TYPE_CHECKING:
    from .protocols import Capture

#: What entries of ``chainer.config`` are.
_SETTINGS = (type(None), bool, int, float, str, np.dtype, type)


class HostCalls:
    """The calls of one capture that are left to the host.  sets_levels: one of them may change the level of a logger."""

    def __init__(self, capture: Capture):
        self.capture = capture
        self.sets_levels = False

    def call(self, function: Any, args: Tuple, kwargs: Mapping[str, Any], types_: Optional[Tuple] = None,
             structure: Any = LEAF, name: str = "", plainly: bool = False) -> Any:
        """Leave a call to the host: it runs at every call of the program, here in the order of effects.

        plainly: it cannot fail, and neither looks at the objects that it gets nor keeps the Variables: see `Reports`.
        """
        capture, given = self.capture, (*args, *kwargs.values())
        capture.check()
        trusted = types_ is not None or any(function is harmless for harmless in HARMLESS)
        looks = not plainly and (not trusted or function is chainer.report or any(map(capture.operands.exposes, given)))
        if looks:
            capture.effects.store_writes(may_fail=not trusted)
        elif not types_ and capture.array_writes.is_ahead:
            capture.effects.store(capture.array_writes.changes())
        asked = function.method if type(function) is BoundHostMethod else getattr(function, "__name__", None)
        name = name or asked or type(function).__name__
        capture.event("host", name, _why(function, name))
        self.sets_levels |= name not in LEAVING_LEVELS and _is_of_logging(function)
        if sys.exc_info()[1] is not capture.handling and _may_look_at_exceptions(function, name, kwargs, trusted):
            capture.abort(f"`{name}` is called while an exception is handled, and may look at that",
                          hint="call it after the `except` block, with `str(error)`")
        if not trusted and any(map(_is_connected, given)) and looks_at_graphs(function):
            capture.abort(f"`{name}` is not compiled, and uses the graph of a Variable that is made here",
                          hint="take gradients in compiled code")
        operands, target, template = self._handed_over(function, args, kwargs, name, trusted)
        seen = untouched = None
        if not trusted:
            looks = not is_pure(function, given)
            if looks:
                capture.entered_reporters.check_host(name)
            seen, untouched = capture.unknown.seen(function, args, kwargs, name, not looks)
            if looks and (any(map(capture.operands.holds_new_container, given)) or not only_reads(function, args, kwargs)):
                self._note_changes(function, args, kwargs, name, untouched)
                capture.deciding.exposed(operands)
        elif not plainly and may_run_for_text(capture, function, given, kwargs):
            capture.heap.stale = name
        within = None if types_ else self.under_config(caller_at(user_lines()))
        flatten = flat if types_ is not None else as_it_is
        if seen is not None:
            capture.array_writes.returned = name
            flatten, structure, types_ = seen, structure_of(seen.kind), types_of(seen.kind)
        keeps = chainer.config.keep_graph_on_report if plainly else not any(function is other for other in KEEPING_NOTHING)
        call = (Report if plainly else Call)(target, template[0], template[1], flatten, name, within=within,
                                                       looks=looks, keeps=keeps)
        attrs = {"call": call, "types": (Dynamic(),) if types_ is None else types_}
        outputs = capture.builder.add(host.host_call, operands, attrs, name=identifier(name))
        if untouched and looks:
            self._check_untouched(given, untouched)
        return abstract_eval.unflatten(structure, [capture.wrap(v) for v in outputs])

    def _handed_over(self, function: Any, args: Tuple, kwargs: Mapping[str, Any], name: str, trusted: bool) \
            -> Tuple[Tuple[Value, ...], Any, Tuple[Any, Any]]:
        """The operands of a call, and with holes for them: what is called, and the arguments."""
        operands: List[Value] = []
        writes, getting = self.capture.array_writes, self.capture.operands
        outer = getting.takes_errors, getting.receiver, writes.harmless
        getting.takes_errors, getting.receiver = trusted or function is raise_again, name
        writes.harmless = trusted and type(function) is not BoundHostMethod and \
            getattr(function, "__module__", "") not in ("logging", "chainer.reporter")
        try:
            template = (getting.hand_over(tuple(args), operands), getting.hand_over(dict(kwargs), operands))
        finally:
            getting.takes_errors, getting.receiver, writes.harmless = outer
        target = getting.hand_over(function, operands)
        return tuple(operands), target, template

    def made_error(self, error: BaseException, parts: Tuple) -> Value:
        """An exception of these parts as a value of the graph."""
        self.call(Raised(passed_lines(error)), parts, {}, (Dynamic(),), name="error")
        return self.capture.builder.nodes[-1].outputs[0]

    def under_config(self, within: Any) -> Any:
        """How a host call is made, with the entries of ``chainer.config`` that are set around it in the function."""
        entries = self.capture.chainer.changed_config()
        if any(value is not chainer.mixed16 and not isinstance(value, _SETTINGS) for value in entries.values()):
            self.capture.abort("an entry of chainer.config that is no plain value is set around a call that is not compiled")
        return UnderConfig(entries, within) if entries else within

    def _check_untouched(self, given: Tuple, check: Untouched) -> None:
        """Let the run check that Variables which a host call got still have the arrays that they had."""
        capture = self.capture
        for item in given:
            if isinstance(item, SymbolicVariable) and "exposed" not in item.__dict__:
                source = item.__dict__.get("source")
                variable = capture.escaping.early(item) if source is None else capture.inputs.object_value(source)
                call = StateCall(check, (Hole(0), Hole(1), item.requires_grad), {}, nothing, "check_untouched")
                capture.builder.add(host.host_call, (variable, item.value), {"call": call, "types": ()}, name="check_untouched")

    def _note_changes(self, function: Any, args: Tuple, kwargs: Mapping[str, Any], name: str, untouched: Any) -> None:
        """A host call of unknown code: what it may change is not read from here on, and it gets no new containers."""
        given = (*args, *kwargs.values())
        owner = function.owner if type(function) is BoundHostMethod else function
        own = type(owner) if type(owner) is not SymbolicObject else type(owner.real)
        code = function if isinstance(function, (types.FunctionType, type)) else own
        is_users = not is_library(getattr(code, "__module__", None) or "") or may_run_users_code(owner) or \
            any(map(may_run_users_code, given)) or isinstance(function, types.MethodType) and not is_immutable(function.__self__)
        if is_users and any(self.capture.operands.holds_new_container(item) for item in given):
            self.capture.abort(f"what is made here, such as a list or dict, is given to `{name}`, which may change or keep it")
        if is_users or any(map(self.capture.operands.exposes, given)):
            self.capture.heap.stale = name
        if isinstance(function, types.FunctionType):
            for cell in writable_cells(function):
                if id(cell) in self.capture.functions.cells:
                    self.capture.abort(f"`{name}` changes a closure variable that is used here")
        for item in given if is_users else ():
            if isinstance(item, SymbolicVariable) and (not untouched or item._data[0].memory is not None):
                item.__dict__["exposed"] = name


def _is_connected(item: Any) -> bool:
    """Whether this is a Variable of which the graph exists when the call is over, or holds one."""
    if type(item) in (tuple, list):
        return any(map(_is_connected, item))
    return isinstance(item, SymbolicVariable) and item.requires_grad and item.__dict__["connected"]


#: Modules whose functions and methods do not look at the exception that is being handled, but for logging when it is told to.
_NOT_LOOKING = frozenset(("builtins", "chainer", "datetime", "io", "_io", "json", "logging", "numpy", "os", "posix", "time"))


def _may_look_at_exceptions(function: Any, name: str, kwargs: Mapping[str, Any], trusted: bool) -> bool:
    """Whether a call may look at the exception that is being handled, of which runs know nothing."""
    if name == "exception" or kwargs.get("exc_info") not in (None, False):
        return True
    home = type(function.owner.real) if type(function) is BoundHostMethod else function
    return not trusted and (getattr(home, "__module__", None) or "").partition(".")[0] not in _NOT_LOOKING


def _is_of_logging(function: Any) -> bool:
    """Whether this is a method of a logger, or a function of ``logging``."""
    if type(function) is BoundHostMethod:
        return isinstance(function.owner.real, logging.Logger)
    return (getattr(function, "__module__", None) or "").partition(".")[0] == "logging"


def _why(function: Any, name: str) -> str:
    """Why a call waits for the host."""
    if type(function) is BoundHostMethod:
        return "an effect" if _is_of_logging(function) else "a method of an object that is not looked into"
    module = "" if type(function) is SymbolicObject else getattr(function, "__module__", None) or ""
    if type(function) is types.FunctionType and is_left_alone(function):
        return "marked not_to_static" if getattr(function, NOT_STATIC, False) else f"ignore_module has {module}"
    if name.startswith("random."):
        return "draws random numbers"
    if name.startswith("time."):
        return "reads the clock"
    if any(function is other for other in (print, warn, open, input)) or module in ("logging", "chainer.reporter"):
        return "an effect"
    if module.startswith("dy2static.") and (name == "raise" or name.startswith("check")):
        return "raises what depends on array values"
    if name in ("str", "repr", "format", "join", "ascii", "fstring"):
        return "a text of values that only the run knows"
    return f"code of {module or type(function).__name__} is not converted"
