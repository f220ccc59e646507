"""Products of unrolled and of staged recurrences made one, weights turned once: against eager, and what remains."""
from dataclasses import replace

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import config, to_static
from dy2static.backends.c.backend import C
from dy2static.backends.host import backend as host
from dy2static.native import compiler

STEPS, BATCH, UNITS = 5, 8, 70                       # matrices of 70 x 70 are large enough to be worth it


def numbers(*shape, seed=0, dtype="d"):
    return np.random.RandomState(seed).uniform(-0.2, 0.2, shape).astype(dtype)


class Cell(chainer.Chain):
    def __init__(self, dtype):
        super().__init__()
        with chainer.using_config("dtype", np.dtype(dtype)), self.init_scope():
            self.words = L.EmbedID(11, UNITS)
            self.x, self.h = L.Linear(UNITS, UNITS), L.Linear(UNITS, UNITS, nobias=True)
            self.out = L.Linear(UNITS, UNITS, nobias=True)
        for k, parameter in enumerate(self.params()):
            parameter.array[...] = numbers(*parameter.shape, seed=k)


def recurrence(m, xs, words):
    h = m.h(xs[0])
    for x in xs:
        h = F.tanh(m.x(x) + m.h(h))
    return F.sum(h * h)


def items_backwards(m, xs, words):
    h = m.h(xs[0])
    for t in range(STEPS - 1, -1, -1):
        h = F.tanh(m.x(xs[t]) + m.h(h))
    return F.sum(h * h)


def embedding(m, xs, words):
    h, loss = xs[0], 0
    for word in words:
        h = F.tanh(m.x(m.words(word)) + m.h(h))
        loss += F.sum(F.tanh(m.out(h)))
    return loss


def embedding_seen_twice(m, xs, words):
    return sum(F.sum(m.x(e) * e) for e in [m.words(word) for word in words])


def two_layers(m, xs, words):
    h, g, loss = xs[0], xs[1], 0
    for x in xs:
        h = F.tanh(m.x(x) + m.h(h))
        g = F.tanh(m.out(h) + m.h(g))
        loss += F.sum(F.relu(g))
    return loss


def feedback(m, xs, words):
    h = xs[0]
    for _ in range(STEPS):
        h = F.tanh(m.x(m.out(h)))
    return F.sum(h)


def crossing(m, xs, words):
    there = [F.tanh(m.h(F.tanh(m.x(x)))) for x in xs[2:]]
    back = [F.tanh(m.x(F.tanh(m.h(x)))) for x in xs[2:]]
    return sum(F.sum(a * b) for a, b in zip(there, back))


def fewer_rows(m, xs, words):
    h, loss = xs[0], 0
    for t, x in enumerate(xs):
        size = BATCH - t // 2
        h = F.tanh(m.x(x[:size]) + m.h(h[:size]))
        loss += F.sum(h)
    return loss


def dropped(m, xs, words):
    h = xs[0]
    for x in xs:
        h = F.dropout(F.tanh(m.x(F.dropout(x, 0.3)) + m.h(h)), 0.2)
    return F.sum(h)


def products_leave(m, xs, words):
    return [m.out(x) for x in xs] + [F.sum(m.out(x) * 2) for x in xs]


def noted(m, xs, words):
    h, notes = xs[0], []
    for x in xs:
        h = F.tanh(m.x(x) + m.h(h))
        notes.append(h)
        print(float(F.sum(h).array) > 0)
    return F.sum(sum(notes))


def matrix_changes(m, xs, words):
    w, total = m.x.W, 0
    for x in xs:
        total += F.sum(F.matmul(x, w) * F.matmul(x, m.out.W))
        w = w * 0.5
    return total


def staged(m, xs, words):
    h, t = xs[0] * 0, 0
    sequence = F.stack(xs)
    while t < int(words.max()) - 5:
        h = F.tanh(m.x(sequence[t]) + m.h(h))
        t += 1
    return F.sum(h * h)


def staged_for_items(m, xs, words):
    h, total = xs[0], xs[1]
    while float(F.sum(h * h).array) > 1:
        total = F.tanh(m.x(m.out(h)) * m.h(h) + m.h(total))
        h = h * 0.8
    return F.sum(total)


def staged_never(m, xs, words):
    h = xs[0]
    while float(F.sum(h * h).array) < 0:
        h = F.tanh(m.h(h))
    return F.sum(h * m.h(h))


def staged_twice(m, xs, words):
    h, i = xs[0], 0
    while i < int(words[0].max()) % 4:
        k = 0
        while k < int(words[1].max()) % 3 + i:
            h = F.tanh(m.h(h) + m.x(xs[2]))
            k += 1
        h = m.h(h) * 0.5
        i += 1
    return F.sum(h * h)


PROGRAMS = (recurrence, items_backwards, embedding, embedding_seen_twice, two_layers, feedback, crossing, fewer_rows, dropped,
            products_leave, noted, matrix_changes, staged, staged_for_items, staged_never, staged_twice)
BACKENDS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not compiler.available(), reason="no C compiler"))]


def outcome(function, dtype, second):
    """Results, gradients by parameter, those of the squared gradients, and the state of the generator."""
    np.random.seed(3)
    model, xs = Cell(dtype), [chainer.Variable(x) for x in numbers(STEPS, BATCH, UNITS, seed=9, dtype=dtype)]
    words = np.random.RandomState(1).randint(0, 11, (STEPS, BATCH)).astype("i")
    xs[1] = chainer.Variable(xs[1].array, requires_grad=False)
    results = function(model, xs, words)
    results = results if isinstance(results, list) else [results]
    found = [y.array for y in results]
    sources = [*model.params(), *(x for x in xs if x.requires_grad)]
    gradients = chainer.grad([sum(F.sum(y * y) for y in results)], sources, enable_double_backprop=second)
    found += [None if g is None else g.array for g in gradients]
    if second:
        squares = sum(F.sum(g * g) for g in gradients if g is not None and g.requires_grad)
        found += [None if g is None else g.array for g in chainer.grad([squares], sources)]
    return [*found, np.random.rand()]


CASES = [(program, "d", True, "numpy") for program in PROGRAMS] + [(program, "f", False, "c") for program in PROGRAMS]
CASES += [(program, "d", True, "c") for program in (embedding, staged)]


@pytest.mark.parametrize("program, dtype, second, backend", CASES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_as_eager(program, dtype, second, backend):
    if backend == "c" and not compiler.available():
        pytest.skip("no C compiler")
    with config.BACKEND.set(backend):
        function = to_static(program, strict=True)
        found = [outcome(function, dtype, second) for _ in range(2)]
    wanted = outcome(program, dtype, second)
    accuracy = 1e-12 if dtype == "d" else 5e-6
    for results in found:
        assert len(results) == len(wanted)
        for a, b in zip(results, wanted):
            assert (a is None) == (b is None)
            if b is not None:
                np.testing.assert_allclose(a, b, rtol=10 * accuracy, atol=accuracy * max(np.abs(b).max(), 1))


#: Per program: products of matrices in the forward, and in the backward.
PRODUCTS = {
    embedding: (1 + STEPS + 1, 3 + 1 + STEPS + 1),      # one for all words, each h, one for all results; three gradients of W
    feedback: (2 * STEPS, 2 * STEPS + 2),
    crossing: (3, 5),
}


@pytest.mark.parametrize("program, counts", PRODUCTS.items(), ids=lambda x: getattr(x, "__name__", ""))
def test_products_left(program, counts, monkeypatch):
    graphs = []

    def record(graph, **settings):
        graphs.append(graph)
        return emit(graph, **settings)
    emit = host.emit
    monkeypatch.setattr(host, "emit", record)
    outcome(to_static(program, strict=True), "f", False)
    found = [sum(node.op.name == "matmul" for node in graph.nodes) for graph in graphs]
    assert tuple(found) == counts


def ops_of(graph):
    return [node.op.name for node in graph.nodes], [node.op.name for loop in graph.nodes if loop.regions for node in loop.walk()]


@pytest.mark.skipif(not compiler.available(), reason="no C compiler")
def test_staged_loops_leave_the_gradients_to_one_product(monkeypatch):
    graphs = []

    def record(graph, *rest):
        graphs.append(graph)
        return partition(graph, *rest)
    *before, last = C.passes.passes
    partition = last.rewrite
    monkeypatch.setattr(type(C), "passes", replace(C.passes, passes=(*before, replace(last, rewrite=record))))
    with config.BACKEND.set("c"):
        outcome(to_static(staged, strict=True), "f", False)
    outside, inside = ops_of(graphs[0])
    assert outside.count("pretransposed") == 2 and inside.count("matmul") == 2
    outside, inside = ops_of(graphs[1])
    assert outside.count("stack_product") == 2 and inside.count("matmul") == 2      # those of the state and of the items


def test_nothing_passes_an_effect(capsys):
    lines = []
    for function in (noted, to_static(noted, strict=True)):
        outcome(function, "d", False)
        lines.append(capsys.readouterr().out)
    assert lines[0] == lines[1] != ""


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_index_out_of_bounds_is_raised(backend):
    model, xs = Cell("f"), numbers(STEPS, BATCH, UNITS, dtype="f")
    words = np.zeros((STEPS, BATCH), "i")
    with config.BACKEND.set(backend):
        function = to_static(embedding, strict=True)
        function(model, xs, words)
        words[3, 1] = 11
        for run in (function, embedding):
            with pytest.raises(IndexError):
                run(model, xs, words)
