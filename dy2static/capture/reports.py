"""What a call reports with ``chainer.report``: like what it writes, late, and only what nothing is written over.

That holds where the current reporter is Chainer's own, which is guarded: it keeps copies of Variables, and looks at nothing.
"""
from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import chainer

from ..heap.object_shadows import ShadowBase, origin_of
from ..ir.graph import Node, Value
from ..ir.op import OPS
from ..lowering import host
from ..passes.effects import must_run
from ..record.builds import FromVariable
from ..record.guards import PlainReports
from ..record.outcome import End
from ..record.paths import Source
from ..record.variables import EscapingVariable
from ..runtime.host_calls import Report, StateCall
from ..runtime.node import make_variable
from ..runtime.reports import reports_plainly
from ..symbolic.values import SymbolicArray, SymbolicScalar, SymbolicVariable

if TYPE_CHECKING:
    from .protocols import Capture

_PLAIN = (bool, int, float, str, type(None))


class Reported(NamedTuple):
    """One report that is certain to do no more than store its values."""

    observer: Any
    values: Dict[str, Any]

    @property
    def form(self) -> Tuple:
        """What reports have in common that may follow each other as one."""
        kinds = [(item.requires_grad, item.dtype, item.shape) if isinstance(item, SymbolicVariable) else None
                 for item in self.values.values()]
        return id(self.observer), tuple(self.values), tuple(kinds)


@dataclass
class _Held:
    """The reports of an iteration.  depth: of its decisions.  is_seen: whether something in it may look at them, or fail."""

    depth: int
    made: List[Reported] = field(default_factory=list)
    is_seen: bool = False


class Reports:
    """The reports of one capture that are certain to do no more than store their values.

    observers: the paths of the objects that report.  made: all reports, in order.  any: whether there are some; any_here: on the
    present way through the function.
    """

    def __init__(self, capture: Capture):
        self.capture = capture
        self.observers: Dict[Source, None] = {}
        self.any = self.any_here = False
        self.observation: Any = None
        self.made: List[Reported] = []
        self._held: Optional[_Held] = None

    # --- in iterations of a loop, of which the last one's are left over -------------------------------------------------------

    def is_held(self, values: Dict[str, Any], observer: Any = None) -> bool:
        """Whether a report happens behind the loop that is captured."""
        self.made.append(Reported(observer, dict(values)))
        if self._held is None or self._held.depth != self.capture.staging.depth or chainer.config.keep_graph_on_report:
            return False
        self._held.made.append(self.made[-1])
        return True

    @contextlib.contextmanager
    def in_iteration(self, begin: Sequence[Reported]) -> Iterator[List[Reported]]:
        """The reports that an iteration makes inside of the block; stops where they cannot happen behind the loop.

        begin: those of the iteration before.
        """
        outer, self._held = self._held, _Held(self.capture.staging.depth)
        try:
            yield self._held.made
            if [report.form for report in self._held.made] != [report.form for report in begin] or self._held.is_seen:
                self.capture.abort("values are reported in a loop whose iterations differ in it, or may fail")
        finally:
            self._held = outer

    def values_of(self, reports: Sequence[Reported]) -> Tuple:
        """What some reports store, Variables as arrays."""
        return tuple([self._array(item) if isinstance(item, SymbolicVariable) else item
                      for report in reports for item in report.values.values()])

    def _array(self, variable: SymbolicVariable) -> SymbolicArray:
        return SymbolicArray(self.capture, OPS["stop_gradient"](variable._data[0].now()))

    def repeat(self, reports: Sequence[Reported], values: Sequence[Any]) -> None:
        """Report what a loop leaves, by reports like its own."""
        rest = iter(values)
        for report in reports:
            found = {name: self._like(item, next(rest)) for name, item in report.values.items()}
            self.capture.callee(chainer.report)(found, report.observer)

    def _like(self, item: Any, value: Any) -> Any:
        if not isinstance(item, SymbolicVariable):
            return value
        return SymbolicVariable(self.capture, value, item.requires_grad)

    def apart(self, values: Dict[str, Any], observer: Any = None) -> Tuple[Dict[str, Any], Any]:
        """What a plain report gets: other Variables for leaves that are made here, since it stores copies of them.

        A gradient that the leaf gets later is not seen in what was reported.
        """
        if not chainer.config.keep_graph_on_report:
            values = {name: self._like(item, self._array(item)) if self._is_leaf(item) else item for name, item in values.items()}
        return values, observer

    def _is_leaf(self, item: Any) -> bool:
        return isinstance(item, SymbolicVariable) and not item.connected and not self.capture.grad_state.keeps(item) \
            and not self.capture.escaping.is_known(item) and item.name is None

    # --- what is relied on ------------------------------------------------------------------------------------------------------

    def note(self) -> None:
        """Something is reported: what takes it must not be read in the function itself."""
        reporters = chainer.reporter._get_reporters()
        self.observation = reporters[-1].observation if reporters else None

    def is_plain(self, values: Any = None, observer: Any = None, *others: Any) -> bool:
        """Whether a report is such a one, which is then relied on."""
        if others or type(values) is not dict or not all(type(key) is str for key in values) or \
                not all(map(_is_plain_value, values.values())):
            return False
        source = origin_of(observer) if isinstance(observer, ShadowBase) else None
        if (source is None) is not (observer is None):
            return False
        if not reports_plainly(*([] if source is None else [self.capture.heap.real_of(observer)])):
            return False
        self.any = self.any_here = True
        if source is not None:
            self.observers[source] = None
        return True

    def guard(self) -> None:
        """Let every call look whether its reporter is a plain one, too."""
        if self.observation is not None and self.capture.heap.has_met(self.observation):
            self.capture.abort("the observation that `chainer.report` stores in is used in the compiled function",
                               hint="read it after the call")
        if self.any:
            self.capture.heap.guard(PlainReports(tuple(self.observers)))

    def mark(self) -> None:
        """What follows in the graph may look, or fail: what is reported before stays before it."""
        if self._held is not None:
            self._held.is_seen = True
        if self.any_here and self.capture.builder is self.capture.root:
            self.capture.builder.add(host.host_call, (), {"call": _MARK, "types": ()}, name="reported")

    def settle(self, ends: Tuple[End, ...]) -> Tuple[End, ...]:
        """Put the reports of the finished graph where they are needed first, and leave out those that are overwritten."""
        nodes, root = self.capture.root.nodes, self.capture.root
        if len(ends) == 1:
            nodes = _late_variables(_late_reports(nodes))
        made = {v for node in nodes for v in node.outputs}
        unseen = {r for end in ends for r in end.variables if r.early and len(ends) == 1 and made.isdisjoint(r.early)}
        for record in unseen:
            record.early = ()
        root.nodes = [node for node in nodes if node.attrs.get("call") is not _MARK]
        return tuple([_without(end, unseen) for end in ends])


def _is_plain_value(item: Any) -> bool:
    if isinstance(item, SymbolicVariable):
        return "source" not in item.__dict__ and "choice" not in item.__dict__
    return type(item) is SymbolicScalar or type(item) in _PLAIN


def _nothing() -> None:
    """Does nothing."""


_MARK = StateCall(_nothing, (), {}, lambda result: [], "reported")


def _reported(node: Node) -> Optional[Tuple[Optional[Value], Mapping[str, Any]]]:
    """The observer and the values, of a report that may be late."""
    call = node.attrs.get("call")
    if not isinstance(call, Report):
        return None
    given = dict(zip(("values", "observer"), call.args), **call.kwargs)
    observer = given.get("observer")
    return None if observer is None else node.inputs[observer.index], given["values"]


def _late_reports(nodes: List[Node]) -> List[Node]:
    """The nodes with reports just before what may look or fail, or at the end; of equal ones the last, in the first one's place."""
    found: List[Node] = []
    waiting: List[Node] = []
    for node in nodes:
        if _reported(node) is not None:
            if any(_may_clash(known, node) for known in waiting):
                found += waiting
                waiting.clear()
            place = next((i for i, known in enumerate(waiting) if _is_over(known, node)), len(waiting))
            waiting[place:place + 1] = [node]
            continue
        if node.attrs.get("call") is _MARK or node.regions and must_run(node):
            found += waiting
            waiting.clear()
        found.append(node)
    return found + waiting


def _is_over(known: Node, node: Node) -> bool:
    """Whether a report stores under the names of another one, in the same order."""
    (other, names), (observer, values) = _reported(known), _reported(node)
    return other is observer and tuple(names) == tuple(values)


def _may_clash(known: Node, node: Node) -> bool:
    """Whether reports may share some names.  Those of two objects do if these are known by one name, or by parts of it."""
    (other, names), (observer, values) = _reported(known), _reported(node)
    if _is_over(known, node):
        return False
    return not values.keys().isdisjoint(names) or other is not observer and any("/" in name for name in (*names, *values))


def _late_variables(nodes: List[Node]) -> List[Node]:
    """The nodes, with each Variable made just before its first use, and without Variables that are never used."""
    found: List[Node] = []
    waiting: Dict[Value, Node] = {}
    for node in nodes:
        if getattr(node.attrs.get("call"), "function", None) is make_variable:
            waiting[node.outputs[0]] = node
            continue
        if waiting:
            found += [waiting.pop(v) for v in dict.fromkeys(node.inputs) if v in waiting]
        found.append(node)
    return found


def _without(end: End, unseen: Set[EscapingVariable]) -> End:
    """The end without Variables that only overwritten reports had."""
    built = {part.record for part in end.parts() if isinstance(part, FromVariable)}
    return replace(end, variables=tuple([record for record in end.variables if record in built or record not in unseen]))
