"""Lists that grow together under decisions on array values are of one length: arrays made of them may be combined."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import to_static
from dy2static.native import compiler

BACKENDS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not compiler.available(), reason="no C compiler"))]


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        np.random.seed(0)
        with self.init_scope():
            self.l, self.out = L.Linear(3, 3), L.Linear(3, 1)


def left_by_a_decision(net, x):
    """Adaptive computation time."""
    h, states, halts, rest = x, [], [], 1.0
    for _ in range(5):
        h = F.tanh(net.l(h))
        p = F.sigmoid(F.mean(net.out(h)))
        states.append(F.sum(h))
        halts.append(p)
        rest = rest - float(p.array)
        if rest < 0:
            break
    return F.sum(F.stack(states) * F.stack(halts)) + len(states)


def grown_in_a_decision(net, x):
    scores = net.out(x).array[:, 0]
    xs, ys, others = [], [], []
    for k in range(4):
        if scores[k] > 0:
            xs.append(scores[k])
            ys.append(x[k, 0])
        else:
            others.append(x[k, 1])
    weight = 1.0
    if len(xs) > 1:
        a, b = np.array(xs), np.array(ys)
        weight = float(((a - a.mean()) * (b - b.mean())).sum())
    return F.sum(net.out(x)) * weight * (1 + len(others))


def numbers_of_a_decision(net, x):
    scores = net.out(x).array[:, 0]
    xs, ys = [0.5], [1.5]
    for k in range(4):
        if scores[k] > 0:
            xs.append(float(scores[k]))
            ys.append(float(x[k, 0]))
    return F.sum(net.out(x)) * float((np.array(xs) * np.array(ys)).sum())


def begun_with_more(net, x):
    """One is longer by one, on each side of each decision."""
    scores, xs, ys = net.out(x)[:, 0], [x[0, 2]], []
    for k in range(4):
        if float(scores[k].array) > 0:
            xs.append(x[k, 0])
            ys.append(x[k, 1])
    ys.append(x[0, 1])
    return F.sum(scores) + float((np.array(xs) - np.array(ys)).sum())


FUNCTIONS = [left_by_a_decision, grown_in_a_decision, numbers_of_a_decision, begun_with_more]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_arrays_of_both_are_combined(function, backend):
    net, compiled = Net(), to_static(function, strict=True, backend=backend)
    for seed in range(12):
        x = np.random.RandomState(seed).uniform(-1, 1, (4, 3)).astype("f")
        found = []
        for run in (function, compiled):
            net.cleargrads()
            loss = run(net, x)
            loss.backward()
            found.append([loss.array, *[p.grad for p in net.params()]])
        for a, b in zip(*found):
            if a is None:
                assert b is None
            else:
                np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)
    info = compiled.cache_info()
    assert info.captures == 1 and not info.fallbacks


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", BACKENDS)
def test_lists_of_two_decisions_are_not_taken_for_equal(backend):
    """They have as many items by chance only: others raise as eagerly."""
    def function(net, x):
        xs, ys = [x[0, 0]], [x[0, 1]]
        for k in range(4):
            if x[k, 0] > 0:
                xs.append(x[k, 0])
            if x[k, 1] > 0:
                ys.append(x[k, 1])
        if len(xs) > 1:
            xs.append(x[0, 2])
        else:
            ys.append(x[0, 2])
        return F.sum(net.l(x)) * float((np.array(xs) * np.array(ys)).sum())

    def outcome(run, x):
        try:
            return float(run(net, x).array)
        except ValueError as error:
            return str(error)
    net, compiled, kinds = Net(), to_static(function, backend=backend), set()
    for seed in range(16):
        x = np.random.RandomState(seed).uniform(-1, 1, (4, 3)).astype("f")
        expected, found = outcome(function, x), outcome(compiled, x)
        kinds.add(type(expected))
        assert found == expected if type(expected) is str else found == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert kinds == {str, float}


@pytest.mark.parametrize("backend", BACKENDS)
def test_lists_that_grow_together_in_a_loop(backend):
    def function(net, x, limit):
        h, xs, ys, k = x, [x.array[0]], [x.array[1]], 0
        while float(F.sum(h * h).array) > limit:
            h = h * 0.7
            if float(h.array[0, 0]) > 0.2:
                xs.append(h.array[0])
                ys.append(h.array[1])
            k += 1
        return F.sum(h) + float((np.stack(xs) * np.stack(ys)).sum()), k
    net, compiled = Net(), to_static(function, strict=True, backend=backend)
    for seed in range(8):
        x, limit = np.random.RandomState(seed).rand(2, 3).astype("f") + 0.5, np.float32(0.1 * seed + 0.05)
        (a, i), (b, j) = (run(net, chainer.as_variable(x), limit) for run in (function, compiled))
        assert i == j
        np.testing.assert_allclose(b.array, a.array, rtol=1e-4)


def states(x):
    h, found = x[0], []
    for row in x:
        h = F.tanh(h + row)
        found.append(h)
    return found


def split_again(x):
    hs = F.stack(states(x))
    return F.concat([h * 2 for h in F.split_axis(hs, len(states(x)), 0)], axis=0)


COUNTED = {
    "broadcast_to": lambda x: F.stack(states(x)) + F.broadcast_to(x[:1, :1], (len(states(x)), *x.shape[1:])),
    "reshape": lambda x: F.reshape(F.concat(states(x), axis=0), (len(states(x)), -1, 4)),
    "a method": lambda x: F.concat(states(x), axis=0).reshape(len(states(x)) * x.shape[1], 4),
    "a slice": lambda x: x[:len(states(x))] + F.stack(states(x)),
    "sections": split_again,
    "two lists": lambda x: F.reshape(F.concat(states(x) + states(x), axis=0), (2 * len(states(x)), -1)),
}


@pytest.mark.parametrize("name", COUNTED)
def test_the_length_of_a_list_is_a_size(name):
    """Lists that loops make are as long as the axis that the loop goes over: Chainer's functions take their lengths as sizes."""
    function = COUNTED[name]
    compiled = to_static(function, backend="numpy")
    for n in (3, 5, 7, 9, 4):
        x = chainer.Variable(np.random.RandomState(n).randn(n, 2, 4).astype("f"))
        expected, actual = function(x), compiled(x)
        np.testing.assert_allclose(actual.array, expected.array, rtol=1e-5)
        (left,), (right,) = [chainer.grad([F.sum(y * y)], [x]) for y in (expected, actual)]
        np.testing.assert_allclose(right.array, left.array, rtol=1e-4, atol=1e-5)
    assert compiled.stats()["captures"] == 3
