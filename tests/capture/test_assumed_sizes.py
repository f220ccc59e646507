"""Numbers that the run finds and that become sizes, beside arrays of which there must be as many."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import to_static
from dy2static.native import compiler

BACKENDS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not compiler.available(), reason="no C compiler"))]


class Graphs(chainer.Chain):
    """A label for each graph; of each node, which graph it is part of."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        np.random.seed(0)
        with self.init_scope():
            self.node, self.out = L.Linear(3, 4), L.Linear(4, 2)

    def forward(self, x, graph, labels):
        self.calls += 1
        n = int(graph.max()) + 1
        pooled = F.scatter_add(np.zeros((n, 4), "f"), graph, F.tanh(self.node(x)))
        counts = np.zeros((n, 1), "f")
        np.add.at(counts, graph, 1)
        return F.softmax_cross_entropy(self.out(pooled / np.maximum(counts, 1)), labels)

    def numpys_number(self, x, graph, labels):
        self.calls += 1
        rows = np.zeros((graph.max() + 1, 3), "f")
        return F.softmax_cross_entropy(self.out(F.tanh(F.linear(rows + x.sum(), self.node.W))), labels)


def given(nodes, graphs, labels=None):
    random = np.random.RandomState(nodes)
    graph = np.sort(np.concatenate([np.arange(graphs), random.randint(0, graphs, nodes - graphs)])).astype("i")
    return random.rand(nodes, 3).astype("f"), graph, random.randint(0, 2, labels or graphs).astype("i")


def both(eager, compiled, models, args):
    """What eager and compiled calls give or raise, and what they leave behind."""
    found = []
    for run, model in zip((eager, compiled), models):
        model.cleargrads()
        try:
            loss = run(model, *args)
            loss.backward()
            found.append([loss.array, model.calls, *[p.grad for p in model.params()]])
        except Exception as error:
            found.append([type(error), model.calls])
    assert len(found[0]) == len(found[1])
    for a, b in zip(*found):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5) if isinstance(a, np.ndarray) else b == a or pytest.fail(f"{a} {b}")
    return found[1][0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("eager", [Graphs.forward, Graphs.numpys_number])
def test_a_few_programs_for_all_batches(eager, backend):
    models, compiled = (Graphs(), Graphs()), to_static(eager, strict=True, backend=backend)
    for nodes, graphs in ((9, 3), (12, 4), (15, 5), (20, 7), (11, 3), (30, 6), (17, 4), (25, 9), (14, 5), (23, 8), (28, 3)):
        both(eager, compiled, models, given(nodes, graphs))
    info = compiled.cache_info()
    assert info.captures <= 5 and not info.fallbacks


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", BACKENDS)
def test_others_raise_as_eagerly(backend):
    models, compiled = (Graphs(), Graphs()), to_static(Graphs.forward, backend=backend)
    for nodes, graphs, labels in ((9, 3, 3), (12, 4, 4), (15, 5, 5), (20, 7, 7), (17, 4, 5), (21, 4, 4), (30, 6, 5), (25, 9, 9), (12, 4, 3)):
        found = both(Graphs.forward, compiled, models, given(nodes, graphs, labels))
        assert isinstance(found, np.ndarray) == (graphs == labels)
