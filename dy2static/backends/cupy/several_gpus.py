"""Graphs with arrays on several GPUs: a device for each array in them."""
from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, Tuple

from ...ir.devices import is_gpu
from ...ir.gpus import gpus_of
from ...ir.graph import Graph, Node, Value
from ...ir.op import OPS
from ...ir.types import Tensor, place_of, placed
from ...passes.rewriting import with_inputs


def with_devices(graph: Graph) -> Graph:
    """The graph in which what a GPU reads is on that GPU, if there are several.

    An array that is on no device yet, such as a constant of a gradient, is made on each device on which it is read; if it is an
    input, it is sent there.  Graphs for one GPU are returned themselves: there all such arrays are on that one.  Linear in nodes,
    times devices.
    """
    return graph if len(gpus_of(graph)) < 2 else _Placing(graph).result()


class _Placing:
    """The state of `with_devices` while it walks over the nodes."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.nodes: List[Node] = []
        self._makers = {v: node for node in graph.nodes for v in node.outputs}
        self._copies: Dict[Tuple[Value, str], Value] = {}

    def result(self) -> Graph:
        """The new graph."""
        for node in self.graph.nodes:
            device = gpu_of(node)
            self.nodes.append(with_inputs(node, tuple([self._on(v, device) for v in node.inputs])) if device else node)
        return self.graph.with_(nodes=tuple(self.nodes))

    def _on(self, value: Value, device: str) -> Value:
        """A value on a device, if it is an array that is on none yet."""
        if not isinstance(value.type, Tensor) or value.type.device:
            return value
        if (value, device) not in self._copies:
            maker = self._makers.get(value)
            if maker is None or maker.op.effect or maker.regions:
                maker = Node(OPS["to_device"], (value,), (value,), {"device": device})
            else:
                maker = with_inputs(maker, tuple([self._on(v, device) for v in maker.inputs]))
            made = tuple([Value(placed(v.type, device), v.name) for v in maker.outputs])
            self.nodes.append(replace(maker, outputs=made))
            self._copies.update(zip([(v, device) for v in maker.outputs], made))
        return self._copies[value, device]


def gpu_of(node: Node) -> str:
    """The GPU on which a node computes; "" if it does not say, or computes on the host."""
    return next(filter(is_gpu, [place_of(v.type) for v in (*node.outputs, *node.inputs)]), "")
