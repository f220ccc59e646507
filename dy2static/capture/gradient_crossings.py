"""Where gradients inside the function would go on: in earlier iterations of a loop, or in what was computed before the call."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Mapping, NoReturn, Sequence, Set, Tuple

from ..ir.building import Builder
from ..ir.graph import Node, Value
from ..passes.differentiation.inner_autodiff import ancestors
from ..symbolic.values import SymbolicVariable

if TYPE_CHECKING:
    from .protocols import Gradients


class Crossings:
    """Of the gradients of one capture: whether they stay in what the graph has before it.

    In a loop, a carried Variable was computed from what earlier iterations had.  A gradient with respect to two of them does not
    go on there if neither was computed from the other, which is known when the loop is complete.
    """

    def __init__(self, gradients: Gradients):
        self.gradients, self.capture = gradients, gradients.capture

    def check(self, entering: Set[Value], made: Set[Value], inputs: Sequence[SymbolicVariable], values: Set[Value]) -> None:
        """Stop where a way to one of the inputs may lead through earlier iterations of a loop, or out of the call.

        entering: where the graph begins, of what the gradients go through (values).  made: what nodes give of that.
        """
        targets = [v for v in inputs if v.requires_grad and v.value not in made]
        for value in entering:
            variable = self.gradients.variables[value]
            self._check_ways(variable, [v for v in targets if v.value in values or self._may_be_behind(variable, v)])

    def _may_be_behind(self, variable: SymbolicVariable, target: SymbolicVariable) -> bool:
        """Whether what a gradient enters may have been computed from a Variable that it does not reach in the graph.

        Before the call: from the caller's Variables.  In earlier iterations: from all but what this iteration makes.
        """
        if not variable.connected:
            return "source" in target.__dict__
        inside = chain(self.capture.builder)
        depth = next((i for i, builder in enumerate(inside) if variable.value in builder.inputs), len(inside))
        return all(builder.producer(target.value) is None for builder in inside[depth:])

    def _check_ways(self, variable: SymbolicVariable, targets: Sequence[SymbolicVariable]) -> None:
        others = [v for v in targets if v is not variable]
        if variable.requires_grad and others:
            if not variable.connected:
                self.gradients.check_leaf(variable)
            elif not all(self.capture.staging.loops.are_unrelated(variable.value, v.value) for v in others):
                self.abort()

    def check_loop(self, pairs: Sequence[Tuple[Value, Value]], body: Sequence[Node], initial: Mapping[Value, Value],
                   after: Mapping[Value, Value]) -> None:
        """Stop unless the second Variable of each pair is new in every iteration, and the first is not computed from it.

        pairs: carried values.  body: nodes of an iteration.  initial, after: what is carried before the loop, and by an iteration.
        """
        made, stops = {v for node in body for v in node.outputs}, self.gradients.stops
        for value, target in dict.fromkeys(pairs):
            new = self.gradients.variables.get(after[target])
            if after[target] not in made or new is None or alternatives(new) or \
                    after[target] in ancestors(body, [after[value]], stops)[1]:
                self.abort()
            self._check_before(initial[value], initial[target])

    def _check_before(self, value: Value, target: Value) -> None:
        """Stop where a Variable that a loop begins with may have been computed from another."""
        nodes = [node for part in chain(self.capture.builder) for node in part.nodes]
        found, values = ancestors(nodes, [value], self.gradients.stops, set(self.capture.root.inputs))
        if target in values or target not in self.gradients.variables:
            self.abort()
        made = {v for node in found for v in node.outputs}
        if all(target not in node.outputs for node in nodes):
            for entered in [v for v in values if v not in made and v in self.gradients.variables]:
                self._check_ways(self.gradients.variables[entered], [self.gradients.variables[target]])

    def abort(self) -> NoReturn:
        """Stop because of earlier iterations."""
        self.capture.abort("a gradient inside a loop on array values leads through earlier iterations")


def chain(builder: Builder) -> List[Builder]:
    """The builders around this one, the outermost first, and itself."""
    return [builder] if builder.outer is None else [*chain(builder.outer), builder]


def alternatives(variable: SymbolicVariable) -> List[SymbolicVariable]:
    """The Variables of which this one may be any: a decision that depends on array values picks it."""
    own = variable.__dict__
    among = own["choice"].among.values() if "choice" in own else ()
    found: Tuple[Any, ...] = (*(own.get("origins") or {}).values(), *among)
    return [other for other in found if other is not None and other is not variable]
