"""What a call does besides computing: host calls, writes to objects, Variables that leave it; in the order of effects."""
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Iterable, Iterator, List, Tuple, Type

from ..heap.list_shadows import ShadowList
from ..heap.protection import is_caught_by_python, is_protected, leaves_generators, may_be_caught
from ..ir.building import building
from ..ir.graph import Graph
from ..lowering import host
from ..record.guards import ErrorsNotRaised
from ..record.paths import Source
from ..record.writes import DeleteItem, StoreState, Write
from ..runtime.host_calls import Hole, StateCall, nothing
from ..runtime.raised_errors import errors_are_raised

if TYPE_CHECKING:
    from .protocols import Capture


class Effects:
    """The writes of one capture: stored in the program before something that could look, or fail, and at its end."""

    def __init__(self, capture: Capture):
        self.capture = capture

    def is_protected(self) -> bool:
        """Whether a failure here would be caught, or cleaned up after, by code of the user's."""
        return is_protected(self.capture.run.__func__.__code__, self.capture.functions.has_generators)

    def check_caught(self, error: BaseException) -> None:
        """Stop where Python itself may catch what a decision on array values raises here: the decision is settled first."""
        if is_caught_by_python(error, self.capture.run.__func__.__code__):
            self.capture.abort(f"{type(error).__name__}, raised under a decision on array values, may be caught by Python",
                               hint="return a value instead, and test that")
        if self.capture.functions.has_generators and leaves_generators(error):
            name = type(error).__name__
            self.capture.abort(f"{name}, raised under a decision on array values, leaves a generator in a `try` or `with`",
                               hint="go over the generator with `for`, or close it before")

    def guard_errors(self, graph: Graph) -> None:
        """Let every call look whether floating-point errors and warnings are raised where code of the user's could catch them."""
        places = {node.loc for node in graph.walk() if node.loc is not None}
        place = next(filter(may_be_caught, places), None)
        if place is None:
            return
        if errors_are_raised():
            self.capture.abort("floating-point errors or warnings are raised where a `try` or `with` may see them", at=place)
        self.capture.heap.guard(ErrorsNotRaised())

    def store_writes(self, may_fail: bool = True) -> None:
        """Put pending writes into the program here, before something that could look, or fail."""
        if may_fail and self.is_protected():
            self.capture.abort("an operation inside a `try` or `with` may fail when the program runs",
                               hint="move it out of that block")
        self.capture.reports.mark()
        if self.capture.builder is not self.capture.root:
            self._store_outside()
        self.capture.grad_state.write_again()
        with self.capture.entered_reporters.left():
            self.store(self._changes())
        self.capture.grad_state.stored()

    def store_writes_before(self, start: int) -> None:
        """Nodes from ``start`` may raise: what was written so far must have happened by then."""
        nodes = self.capture.builder.nodes[start:]
        del self.capture.builder.nodes[start:]
        self.store_writes()
        self.capture.builder.nodes.extend(nodes)

    def enter_decision(self) -> None:
        """The outermost decision on array values starts here."""
        self.capture.assigned_items.settle_all()
        for container in self.capture.heap.containers:
            if isinstance(container, ShadowList):
                container.outside = list.__len__(container)

    def _store_outside(self) -> None:
        """Append before the decision what was appended before it: every way through it shall see that, and only once."""
        with self.outside():
            for container in self.capture.heap.containers:
                items = container.appended_outside() if isinstance(container, ShadowList) else ()
                if items:
                    self.store([(container.source, container.growth, None, items)])

    @contextlib.contextmanager
    def outside(self) -> Iterator[None]:
        """Nodes made inside stand before the outermost decision."""
        inner, depth = self.capture.builder, self.capture.staging.depth
        self.capture.builder, self.capture.staging.depth = self.capture.root, 0
        try:
            with building(self.capture.root):
                yield
        finally:
            self.capture.builder, self.capture.staging.depth = inner, depth

    def store(self, changes: Iterable[Tuple[Source, Type[Write], Any, Any]]) -> None:
        """Write these changes when the program comes here."""
        changes = list(changes)
        self.capture.operands.stored.expect([item for *_, item in changes])
        for container, kind, key, item in changes:
            operands = [self.capture.inputs.object_value(container)]
            self.capture.operands.storing = True
            template = self.capture.operands.hand_over(item, operands)
            self.capture.operands.storing = False
            call = StateCall(kind.perform, (Hole(0), key, template), {}, nothing, kind.word)
            self.capture.builder.add(host.host_call, tuple(operands), {"call": call, "types": ()}, name="write")

    def final_writes(self) -> Tuple[Write, ...]:
        """What is written to objects of the user's when the call is over."""
        if self.capture.drops_gradients:
            self.capture.grad_state.drop()
        self.capture.grad_state.write_again()
        build = self.capture.materialiser.build
        changes = sorted(self._changes(), key=lambda change: change[1] is not StoreState)   # together, since they are one statement
        return tuple([kind(container, key, None if kind is DeleteItem else build(item)) for container, kind, key, item in changes])

    def _changes(self) -> List[Tuple[Source, Type[Write], Any, Any]]:
        found = []
        for container in self.capture.heap.containers:
            for kind, key, item in container.changes():
                if key == "__builtins__":
                    continue
                found.append((container.source, self.capture.rule_states.write_of(container, kind, item), key, item))
        for cell in self.capture.functions.cells.values():
            found += cell.changes()
        return (found + self.capture.grad_state.changes() + list(self.capture.array_writes.changes())
                + self.capture.rebound_arrays.changes())


