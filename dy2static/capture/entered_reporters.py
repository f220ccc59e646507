"""Reporters that are entered inside the compiled function: what they take are items of a dict, like any others.

A program enters no reporter.  So no code that it calls may look for one meanwhile, and where the program stores what was written so
far, a reporter has the observation that it had before its scope.
"""
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Tuple

import chainer
from chainer import reporter as chainer_reporter

from ..heap.dict_shadows import ShadowDict
from ..heap.object_shadows import ShadowBase, origin_of
from ..symbolic.values import SymbolicVariable

if TYPE_CHECKING:
    from .protocols import Calls, Capture

Reporter = chainer_reporter.Reporter


class _Scope(NamedTuple):
    reporter: ShadowBase
    before: Any


def reporting() -> Tuple:
    """What takes the values that are reported now: the reporter and its observation, by identity."""
    reporters = chainer_reporter._get_reporters()
    return tuple([(id(reporter), id(reporter.observation)) for reporter in reporters[-1:]])


class EnteredReporters:
    """The reporters that one capture has entered.  outside: what took reports before the call."""

    def __init__(self, capture: Capture):
        self.capture = capture
        self.outside = reporting()
        self._scopes: List[_Scope] = []

    @property
    def are_entered(self) -> bool:
        """Whether another reporter takes reports than before the call, or into another dict."""
        return reporting() != self.outside

    def check_host(self, name: str) -> None:
        """Stop before a call of code that may look for the current reporter, which the run does not enter."""
        if self.are_entered:
            self.capture.abort(f"`{name}` is not compiled, and called under a reporter that is entered inside the function",
                               hint="enter the reporter around the call of the compiled function")

    @contextlib.contextmanager
    def scope(self, reporter: ShadowBase, observation: Any) -> Iterator[None]:
        """``reporter.scope(observation)``."""
        scope = _Scope(reporter, reporter.observation)
        reporters = chainer_reporter._get_reporters()
        reporter.observation = observation
        reporters.append(reporter)
        self._scopes.append(scope)
        try:
            yield
        finally:
            self._scopes.pop()
            reporters.pop()
            reporter.observation = scope.before

    @contextlib.contextmanager
    def left(self) -> Iterator[None]:
        """In its block, reporters have the observations that they had before their scopes."""
        inside = [(scope.reporter, scope.reporter.observation) for scope in self._scopes]
        for scope in reversed(self._scopes):
            scope.reporter.observation = scope.before
        try:
            yield
        finally:
            for reporter, observation in inside:
                reporter.observation = observation

    def report(self, values: Any, observer: Any = None) -> None:
        """``chainer.report`` to a reporter that is entered inside."""
        reporter = chainer_reporter._get_reporters()[-1]
        if not isinstance(reporter, ShadowBase):
            self.capture.abort("values are reported to a reporter that is entered inside the compiled function, "
                               "and is neither made there nor the user's", hint="enter it around the call")
        self.capture.callee(reporter.report)(values, observer)

    def store(self, reporter: ShadowBase, values: Any, observer: Any = None) -> None:
        """``Reporter.report``."""
        observation = reporter.observation
        if type(values) is not dict or not all([type(key) is str for key in values]) or type(observation) not in (dict, ShadowDict):
            self.capture.abort("what is reported, or takes it, is no dict with names", hint="enter the reporter around the call")
        if not chainer.config.keep_graph_on_report:
            values = {key: self._apart(item) for key, item in values.items()}
        if observer is not None:
            names, key = reporter._observer_names, self.key_of(observer)
            if key not in names:
                raise KeyError("Given observer is not registered to the reporter.")
            values = {f"{names[key]}/{name}": item for name, item in values.items()}
        observation.update(values)

    def add(self, reporter: ShadowBase, name: str, observer: Any) -> None:
        """``Reporter.add_observer``."""
        if not isinstance(observer, ShadowBase) or origin_of(observer) is None:
            self.capture.abort("an observer that is made inside the compiled function is added to a reporter")
        reporter._observer_names[self.key_of(observer)] = name

    def key_of(self, observer: Any) -> int:
        """The number by which a reporter knows an observer; a guard says that later calls have the same one."""
        if not isinstance(observer, ShadowBase):
            self.capture.abort("an observer of what is reported is no object of a class")
        return id(self.capture.heap.attributes.identified(observer))

    def _apart(self, item: Any) -> Any:
        """What is stored of a value: of a Variable, a copy without the graph."""
        if not isinstance(item, chainer.Variable):
            return item
        own = item.__dict__
        if type(item) is not SymbolicVariable or "source" in own or "choice" in own or item.name is not None or \
                self.capture.grad_state.keeps(item):
            self.capture.abort("a Variable with a name or a gradient, or one of the caller's, is reported to a reporter that is "
                               "entered inside the compiled function", hint="report its `.array`")
        return self.capture.callee(chainer.Variable)(item.array, requires_grad=item.requires_grad)


def report(calls: Calls, function: Any, *args: Any, **kwargs: Any) -> None:
    """``chainer.report``."""
    capture = calls.capture
    if capture.entered_reporters.are_entered:
        capture.entered_reporters.report(*args, **kwargs)
        return None
    capture.reports.note()
    plain = capture.reports.is_plain(*args, **kwargs)
    if plain and capture.reports.is_held(*args, **kwargs):
        return None
    if plain:
        args, kwargs = capture.reports.apart(*args, **kwargs), {}
    return capture.host.call(function, args, kwargs, (), None, plainly=plain)


def _of_shadow(name: str) -> Any:
    """What a method does for a reporter of the user's, and for one that is made inside."""
    def handler(calls: Calls, function: Any, reporter: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(reporter, ShadowBase):
            return calls.host(function)(reporter, *args, **kwargs)
        return getattr(calls.capture.entered_reporters, name)(reporter, *args, **kwargs)
    return handler


def _add_all(calls: Calls, function: Any, reporter: Any, prefix: str, observers: Any) -> None:
    for name, observer in observers:
        calls.callee(reporter.add_observer)(prefix + name, observer)


def _report_scope(calls: Calls, function: Any, observation: Any) -> Any:
    """``chainer.reporter.report_scope``: of a reporter that is entered inside, its scope; others are not known."""
    reporters = chainer_reporter._get_reporters()
    if reporters and isinstance(reporters[-1], ShadowBase):
        return calls.callee(reporters[-1].scope)(observation)
    return calls.host(function)(observation)


REPORTER_HANDLERS: Dict[Any, Any] = {
    chainer.report: report,
    Reporter.report: _of_shadow("store"),
    Reporter.scope: _of_shadow("scope"),
    Reporter.add_observer: _of_shadow("add"),
    Reporter.add_observers: _add_all,
    chainer_reporter.report_scope: _report_scope,
}
