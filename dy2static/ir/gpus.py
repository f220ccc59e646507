"""The GPUs of a graph."""
from __future__ import annotations

from typing import List

from .devices import is_gpu, number_of
from .graph import Graph
from .types import place_of


def gpus_of(graph: Graph) -> List[int]:
    """The numbers of the GPUs that arrays of a graph are on, each once, in the order of the graph."""
    devices = [place_of(v.type) for v in (*graph.inputs, *[v for node in graph.walk() for v in node.outputs])]
    return list(dict.fromkeys([number_of(device) for device in devices if is_gpu(device)]))
