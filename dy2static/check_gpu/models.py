"""The regions of forward and backward of small models, with made-up operands and what NumPy makes of them."""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np

from ..api import to_static
from ..backends.base import Done
from ..backends.compiled_calls import is_native
from ..backends.cuda.partition import divide
from ..backends.host.backend import NumpyBackend
from ..backends.registry import forget, register
from ..config import KEEP
from ..ir.graph import Graph
from .samples import Case, meaning


class _Recording(NumpyBackend):
    """The NumPy backend, which keeps the graphs that it is given."""

    name = "recording"

    def __init__(self) -> None:
        self.graphs: List[Graph] = []

    def start(self, graph: Graph, **options: Any) -> Done:
        """As `Backend.start`."""
        self.graphs.append(graph)
        return super().start(graph, **options)


#: What makes a model, of Chainer's links alone, and the operands of one call of it.
MODELS: Dict[str, Tuple[Callable[[], chainer.Link], Callable[[Any], Sequence[Any]]]] = {
    "perceptron": (
        lambda: chainer.Sequential(L.Linear(24, 40), L.LayerNormalization(40), F.softplus, L.Linear(40, 10)),
        lambda rng: (rng.rand(37, 24).astype("f"), rng.randint(0, 10, 37).astype("i"))),
    "words": (
        lambda: chainer.Sequential(L.EmbedID(30, 16), F.tanh, L.Linear(9 * 16, 20), L.BatchNormalization(20), F.relu,
                                   L.Linear(20, 30)),
        lambda rng: (rng.randint(0, 30, (13, 9)).astype("i"), rng.randint(0, 30, 13).astype("i"))),
    "LSTM": (
        lambda: chainer.Sequential(L.LSTM(12, 20), L.Maxout(20, 8, 3), L.Linear(8, 5)),
        lambda rng: (rng.rand(11, 12).astype("f"), rng.randint(0, 5, 11).astype("i"))),
}


def regions(name: str) -> List[Case]:
    """The regions that become kernels of forward and backward of a model."""
    recording = _Recording()
    make, operands = MODELS[name]
    model, random = make(), np.random.RandomState(0)
    register(recording)
    try:
        with KEEP.set(0):                                # a program that was kept is not compiled again
            to_static(L.Classifier(model), backend=recording.name, strict=True)(*operands(random)).backward()
    finally:
        forget(recording)
    found: List[Case] = []
    for graph in recording.graphs:
        for region in _natives(divide(graph)):
            given = [_operand(value, random) for value in region.inputs]
            found.append(Case(f"{name}, region {len(found)}", region, given, meaning(region, given) or ()))
    return found


def _natives(graph: Graph) -> Iterator[Graph]:
    return (node.attrs["region"] for node in graph.nodes if is_native(node))


def _operand(value: Any, random: Any) -> np.ndarray:
    """An array: positive floats, ints that are an index of anything that has three elements."""
    if value.dtype.kind == "f":
        return np.asarray(random.uniform(0.1, 1, value.shape)).astype(value.dtype)
    return np.asarray(random.randint(0, 2 if value.dtype.kind == "b" else 3, value.shape)).astype(value.dtype)
