"""``unchain`` and ``unchain_backward``: where no gradient goes on from here."""
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, AbstractSet, Any, Dict, List, Optional

from ..errors import Location
from ..heap.locations import user_location
from ..ir.graph import Node, Value
from ..ir.op import OPS
from ..passes.differentiation.inner_autodiff import ancestors
from ..symbolic.values import SymbolicVariable

if TYPE_CHECKING:
    from .protocols import Gradients


class Unchaining:
    """Of one capture: the Variables that lose their creators.

    Behind a branch or a loop, it is the run that decides which Variables are reached (``open``, with the lines that unchain them).
    They keep their creators here: that makes no difference as long as no gradient goes through them, and none of them, or of what
    is computed from them, leaves the call with its graph.
    """

    def __init__(self, gradients: Gradients):
        self.gradients, self.capture = gradients, gradients.capture
        self.open: Dict[Value, Optional[Location]] = {}

    def unchain(self, variable: SymbolicVariable) -> None:
        """`Variable.unchain`: it is a leaf from now on, also for what was computed from it before."""
        self.gradients.check((variable,))
        if not variable.connected:
            self.gradients.check_leaf(variable)
            return
        self._cut(variable)

    def unchain_backward(self, variable: SymbolicVariable) -> None:
        """`Variable.unchain_backward`."""
        gradients = self.gradients
        gradients.check((variable,))
        if not variable.connected:
            gradients.check_leaf(variable)
            return
        nodes, values = ancestors(self.capture.builder.nodes, [variable.value], gradients.stops)
        if self.capture.staging.depth:
            self._refuse()
        reached = [v for v in map(gradients.variables.get, values) if v is not None]
        reached.sort(key=lambda v: v.__dict__["serial"])
        for other in reached:
            if not other.connected:
                gradients.check_leaf(other)
        is_open = any(node.regions for node in nodes)
        at = user_location()
        for other in [variable] if is_open else reached:
            for sibling in _siblings(other):
                if sibling.connected:
                    self._cut(sibling)
        for other in reached if is_open else ():
            for sibling in _siblings(other):
                if sibling.connected:
                    self._check_unseen(sibling, stays=True)
                    self.open[sibling.value] = at

    def check(self, values: AbstractSet[Value]) -> None:
        """Stop if a gradient goes through one of these values which a run may have unchained."""
        found = values & self.open.keys()
        if found:
            self._refuse(self.open[found.pop()])

    def check_leaving(self, values: List[Value]) -> None:
        """Stop if one of these values leaves the call with a graph that a run may have unchained."""
        if self.open:
            self.check(ancestors(self.capture.root.nodes, values, self.gradients.stops)[1])

    def _refuse(self, at: Optional[Location] = None) -> None:
        self.capture.abort("unchain_backward goes through a decision on array values", at=at)

    def _check_unseen(self, variable: SymbolicVariable, stays: bool = False) -> None:
        """stays: it keeps its creator in the graph here."""
        escaping = self.capture.escaping
        if escaping.is_known(variable) and not escaping.is_only_reported(variable) and (
                stays or not escaping.is_only_stored(variable)):
            self.capture.abort("a Variable is unchained after a call that is not compiled, or a `raise`, could see it")

    def _cut(self, variable: SymbolicVariable) -> None:
        """Let no gradient through to what a Variable was computed from."""
        capture, value, nodes = self.capture, variable.value, self.capture.builder.nodes
        self._check_unseen(variable)
        place = next((i for i, node in enumerate(nodes) if value in node.outputs), None)
        if place is None or "origins" in variable.__dict__:
            capture.abort("a Variable is unchained that a decision on array values decides on, or inside of one",
                          because=variable)
        path = capture.staging.path
        if path.marks and (capture.staging.depth or path.outer is not None):
            capture.abort("a Variable is unchained inside of a decision on array values, after another one", because=variable)
        path.insert(place)
        node = nodes[place]
        inner = Value(value.type, f"{value.name}_chained")
        outputs = tuple([inner if v is value else v for v in node.outputs])
        siblings = [other.value for other in variable.__dict__.get("siblings", ()) if other is not variable]
        of_function = set(ancestors(nodes[place + 1:], siblings, ())[0])        # the rest of the function that it is a result of
        nodes[place + 1:] = [replace(n, inputs=tuple([inner if v is value else v for v in n.inputs])) if n in of_function else n
                             for n in nodes[place + 1:]]
        nodes[place:place + 1] = [Node(node.op, node.inputs, outputs, node.attrs, node.regions, node.loc),
                                  Node(OPS["stop_gradient"], (inner,), (value,), {}, (), node.loc)]
        variable.__dict__["connected"] = False
        capture.escaping.cut(variable)
        self.gradients.stops.add(value)


def _siblings(variable: SymbolicVariable) -> Any:
    """The Variables that one function gave, of which this is one."""
    return variable.__dict__.get("siblings", (variable,))
