"""Reverse-mode differentiation of graphs; the result is a graph again, so every order is free."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Sequence, Tuple

from ...ir.building import Builder
from ...ir.graph import Graph, Value
from .cotangents import Activity
from .residuals import add_residuals
from .reverse import reverse


@dataclass(frozen=True)
class Gradients:
    """A graph with its gradients.

    graph: the *joint* graph.  Inputs: the inputs of the forward graph, then one output gradient per given output.
        Nodes: the nodes of ``forward`` (the same objects), then the gradient nodes.  Outputs: the gradients of the
        connected targets, in the order of the targets, then the bools of ``connected``, each once.
    forward: the forward graph, with the same inputs and outputs; its branches and loops also give what the gradients
        read, as further outputs of their nodes.
    connected: per target, whether it has a gradient.  Where it is False, eager gives None.  A bool value where
        decisions of the run decide; the gradient is zeros where it is false.
    gradients: per target, the gradient or None.
    """

    graph: Graph
    forward: Graph
    connected: Tuple[Activity, ...]
    gradients: Tuple[Optional[Value], ...]

    @property
    def conditions(self) -> Tuple[Value, ...]:
        """The bools at the end of the outputs."""
        return tuple(dict.fromkeys(c for c in self.connected if isinstance(c, Value)))


def autodiff(graph: Graph, targets: Sequence[int], given: Sequence[int], namer: Optional[Builder] = None) -> Gradients:
    """The gradients of some inputs, from gradients given for some outputs.

    targets: indexes of ``graph.inputs`` whose gradients are wanted.
    given: indexes of ``graph.outputs`` whose gradients exist at run time.
    namer: names the further outputs of the forward; for a graph that is part of one in which names are to be unique.

    Linear in nodes + edges, times a small number per level of nested loops.  A gradient node carries the location of
    the node it differentiates.  Integer, bool and dynamic values have no gradient, and a ``vjp`` of None, or one that
    gives None, ends a path.
    """
    forward = add_residuals(graph, [graph.inputs[i] for i in targets], namer)
    result = reverse(forward, targets, given)
    return Gradients(result.graph, forward, result.connected, result.gradients)
