"""Items at places that are certain to be there, a truth value or what ``argmax`` gives: nothing is stored before them, as they cannot fail."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import to_static
from dy2static.native import compiler

BACKENDS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not compiler.available(), reason="no C compiler"))]


class Policy(chainer.Chain):
    def __init__(self, choices=2):
        super().__init__()
        np.random.seed(0)
        self.log_probs = []
        with self.init_scope():
            self.cell, self.hidden, self.out = L.LSTM(3, 4), L.Linear(3, 4), L.Linear(4, choices)

    def episode(self, x, rewards):
        """The logarithms of probabilities are kept in a list until the end."""
        self.log_probs = []
        for row in x:
            p = F.log_softmax(self.out(F.tanh(self.hidden(row[None]))))
            action = int(np.random.rand() < np.exp(p.array[0, 1]))
            self.log_probs.append(p[0, action])
        loss = 0
        for log_prob, reward in zip(self.log_probs, rewards):
            loss += -log_prob * reward
        self.log_probs = []
        return loss

    def greedy(self, points, _):
        """Each point is chosen once; the cell keeps its state."""
        self.cell.reset_state()
        keys, x, mask = F.linear(points, self.out.W[:, :3]), np.zeros((1, 3), "f"), np.zeros(len(points), "f")
        chosen, total = [], 0
        for _ in range(len(points)):
            scores = F.matmul(self.out(self.cell(x)), keys, transb=True) - mask * 1e3
            t = int(scores.array.argmax())
            total += F.log_softmax(scores)[0, t]
            chosen.append(t)
            mask[t] = 1
            x = points[t:t + 1]
        return total, chosen


def run(function, model, *args):
    """What a call gives or raises, and leaves behind."""
    model.cleargrads()
    np.random.seed(1)
    try:
        found = function(model, *args)
        loss = found[0] if isinstance(found, tuple) else found
        loss.backward()
        left = [loss.array, *[0 if p.grad is None else p.grad for p in model.params()], *(found[1] if isinstance(found, tuple) else ())]
    except IndexError as error:
        left = [str(error)]
    return [*left, len(model.log_probs), 0 if model.cell.h is None else model.cell.h.array]


def same(a, b):
    assert len(a) == len(b)
    for x, y in zip(a, b):
        if isinstance(x, str):
            assert x == y
        else:
            np.testing.assert_allclose(y, x, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [Policy.episode, Policy.greedy])
def test_one_program_for_all_lengths(function, backend):
    models, compiled = (Policy(), Policy()), to_static(function, strict=True, backend=backend)
    for n in (5, 8, 6, 9, 7, 11, 4, 12):
        args = np.random.RandomState(n).rand(n, 3).astype("f"), np.random.RandomState(n).rand(n).astype("f")
        same(run(function, models[0], *args), run(compiled, models[1], *args))
    info = compiled.cache_info()
    assert info.captures <= 3 and not info.fallbacks


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("choose, count", [(lambda p, i: int(p.array[0, 0] > 0), 1), (lambda p, i: int(p.array.argmax()), 1),
                                           (lambda p, i: -int(p.array[0, 0] > 0), 1), (lambda p, i: int(p.array.argmax(axis=1)[0]) - i, 2)])
def test_places_that_may_not_be_there(choose, count, backend):
    """A failing step leaves what the steps before it have stored, as eagerly."""
    def steps(model, x):
        model.log_probs, total = [], 0
        for i in range(3):
            p = model.out(x[i:i + 1])
            total += p[0, :count][choose(p, i)]
            model.log_probs.append(i)
        return total
    models, compiled = (Policy(3), Policy(3)), to_static(steps, backend=backend)
    for seed in range(8):
        x = np.random.RandomState(seed).uniform(-1, 1, (3, 4)).astype("f")
        same(run(steps, models[0], x), run(compiled, models[1], x))


@pytest.mark.parametrize("backend", BACKENDS)
def test_masks_are_no_places(backend):
    @to_static(strict=True, backend=backend)
    def function(x):
        mask = x > 0.5
        y = x.copy()
        y[mask] = 0
        y[int(x[0] > 0.5)] = 7
        y[x.argmin()] = -1
        return y, x[mask], np.arange(2.0)[int(x[0] > 0.5)]
    for seed in range(4):
        x = np.random.RandomState(seed).rand(5)
        y, chosen, item = function(x)
        expected = np.where(x > 0.5, 0, x)
        expected[int(x[0] > 0.5)], expected[x.argmin()] = 7, -1
        np.testing.assert_array_equal(y, expected)
        np.testing.assert_array_equal(chosen, x[x > 0.5])
        assert item == int(x[0] > 0.5)
