"""Chainer's names for static graphs: `static_graph`, `static_code`, and the schedules of a chain."""
from __future__ import annotations

from dataclasses import fields
from typing import Any, Callable, Dict, List, Optional, Tuple

import chainer
from chainer.graph_optimizations import static_graph_utilities

from .errors import SignatureError
from .options import DEFAULTS, Options, none_unknown, switch
from .runtime.program import Program
from .static_function import StaticFunction


class StaticSchedule:
    """One schedule: the `Program` of one signature.  Printed, it is the Python function that runs.

    program: that program; ``program.graph``, ``program.guards`` and ``program.profile()`` tell more.
    """

    def __init__(self, program: Program):
        self.program = program

    @property
    def code(self) -> str:
        """The generated function, as text: what the schedule does, in order."""
        return self.program.code

    def is_empty(self) -> bool:
        """False: there are no schedules that are not complete."""
        return False

    def __repr__(self) -> str:
        return f"StaticSchedule({self.program.signature}):\n{self.code}"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, StaticSchedule) and self.program is other.program

    def __hash__(self) -> int:
        return hash(self.program)


class ScheduleManager:
    """The schedules of a static chain: ``chain.schedule_manager``.  Instances of one class share it.

    minimize_cache_size, verbosity_level: what `static_graph` was given.
    """

    def __init__(self, function: "StaticGraph", minimize_cache_size: bool, verbosity_level: int):
        self._function = function
        self.minimize_cache_size, self.verbosity_level = minimize_cache_size, verbosity_level

    @property
    def schedules(self) -> Dict[str, List[StaticSchedule]]:
        """All schedules by signature."""
        found: Dict[str, List[StaticSchedule]] = {}
        for program in self._function.dispatcher.programs:
            found.setdefault(program.signature, []).append(StaticSchedule(program))
        return found

    def end_forward(self) -> None:
        """Do nothing: each call has arrays of its own, so that any number of them may come before one ``backward()``."""

    def __repr__(self) -> str:
        lines = ["ScheduleManager:"]
        for signature, schedules in self.schedules.items():
            lines.append(f"key string: {signature} -> schedule list of length: {len(schedules)}")
            lines += map(repr, schedules)
        return "\n".join(lines) + "\n"


class StaticGraph(StaticFunction):
    """What `static_graph` makes of a method: a `StaticFunction` that follows ``chainer.config.use_static_graph``."""

    def __init__(self, function: Any, options: Options = DEFAULTS, force_test_define_by_run: bool = False,
                 minimize_cache_size: bool = False):
        super().__init__(function, options)
        self.force_test_define_by_run, self.minimize_cache_size = force_test_define_by_run, minimize_cache_size
        self.manager = ScheduleManager(self, minimize_cache_size, options.verbosity)
        self._trained: Optional[bool] = None
        self._is_placed = False

    def _arguments(self) -> Tuple[Any, ...]:
        return (*super()._arguments(), self.force_test_define_by_run, self.minimize_cache_size)

    def __set_name__(self, owner: type, name: str) -> None:
        super().__set_name__(owner, name)
        self._is_placed = True
        for attribute, descriptor in (("schedule_manager", _Manager), ("static_schedule", _Schedule)):
            if attribute not in owner.__dict__:
                setattr(owner, attribute, descriptor(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        config = chainer.config
        if not config.use_static_graph or self.force_test_define_by_run and not config.train:
            return self.python_function(*args, **kwargs)
        if not self._is_placed:
            self._place(args)
        if self.minimize_cache_size and self._trained is not config.train:
            self._trained = config.train
            self.dispatcher.clear()
        return super().__call__(*args, **kwargs)

    def _place(self, args: Any) -> None:
        """Give a chain its attributes where the method was decorated after its class was made."""
        self._is_placed = True
        for base in type(args[0]).__mro__ if args and isinstance(args[0], chainer.Link) else ():
            if self in base.__dict__.values():
                self.__set_name__(base, self.__name__)


class _Manager:
    """``chain.schedule_manager``."""

    def __init__(self, function: StaticGraph):
        self.function = function

    def __get__(self, chain: Any, owner: Optional[type] = None) -> Any:
        return self.function.manager


class _Schedule(_Manager):
    """``chain.static_schedule``: the one used last; None before the first call."""

    def __get__(self, chain: Any, owner: Optional[type] = None) -> Any:
        program = self.function.dispatcher.cache.current
        return None if program is None else StaticSchedule(program)


def static_graph(function: Optional[Callable[..., Any]] = None, *, force_test_define_by_run: bool = False,
                 minimize_cache_size: bool = False, verbosity_level: int = 0, enable_double_backprop: bool = False,
                 **options: Any) -> Any:
    """Compile ``__call__`` or ``forward`` of a Chain.  This replaces ``chainer.static_graph`` and takes its arguments.

    Unlike in Chainer, all code runs in every call (print, counters, control flow), the chain may be called any number of
    times before ``backward()``, and the method keeps its arguments and results.

    force_test_define_by_run: run in eager mode while ``chainer.config.train`` is False.
    minimize_cache_size: drop all programs when ``chainer.config.train`` changes.  `to_static`'s ``cache_limit`` and
        ``cache_bytes`` bound them in any case.
    verbosity_level: 1 logs each capture and why it was needed, 2 more (see `set_verbosity`).
    enable_double_backprop: ignored; second-order gradients always work.
    options: those of `to_static`.

    The method runs in eager mode while ``chainer.config.use_static_graph`` is False.

    Raises `SignatureError` for options that `to_static` does not have, and for invalid values.
    """
    known = {each.name for each in fields(Options)} - {"verbosity"}
    none_unknown("static_graph", options, {*known, *(static_graph.__kwdefaults__ or ())})
    checked = Options(verbosity=verbosity_level, **options)
    force_test_define_by_run = switch("force_test_define_by_run", force_test_define_by_run)
    minimize_cache_size = switch("minimize_cache_size", minimize_cache_size)

    def decorate(method: Callable[..., Any]) -> StaticGraph:
        if not hasattr(method, "__code__"):
            raise SignatureError(f"static_graph takes a method of a chain, or a function, not {_told(method)}",
                                 hint="to_static takes classes and Links, too")
        return StaticGraph(getattr(method, "python_function", method), checked, force_test_define_by_run, minimize_cache_size)
    return decorate if function is None else decorate(function)


def _told(given: Any) -> str:
    """How a message names what is no function."""
    if isinstance(given, type):
        return f"the class {given.__name__}"
    return repr(given) if isinstance(given, bool) else f"an object of {type(given).__name__}"


def static_code(function: Optional[Callable[..., Any]] = None, *, func_name: Optional[str] = None) -> Any:
    """Return the function itself.  This replaces ``chainer.static_code``, which marks code that runs in every iteration.

    Here all code runs in every iteration.  ``inputs=`` and ``outputs=`` of the function are ordinary arguments, and results that
    it writes in place belong to the current call.

    func_name: stored as an attribute of the function.
    """
    def decorate(code: Callable[..., Any]) -> Callable[..., Any]:
        if func_name is not None:
            code.func_name = func_name                  # type: ignore[attr-defined]
        return code
    return decorate if function is None else decorate(function)


def patch_chainer() -> None:
    """Replace ``chainer.static_graph`` and ``chainer.static_code`` by dy2static's, for classes that are defined afterwards."""
    package = chainer.graph_optimizations
    for place, name, ours in ((chainer, "static_graph", static_graph), (package.static_graph, "static_graph", static_graph),
                              (chainer, "static_code", static_code), (package, "static_code", static_code),
                              (static_graph_utilities, "static_code", static_code)):
        setattr(place, name, ours)
