"""Loops that look up what they have chosen: places from `argmax` cannot be out of range, so a stateful LSTM stays in the loop."""
import random

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import to_static
from dy2static.native import compiler

WORDS = 7


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        np.random.seed(0)
        with self.init_scope():
            self.embed, self.lstm, self.out = L.EmbedID(WORDS, 4), L.LSTM(4, 4), L.Linear(4, WORDS)
        self.seen = np.zeros(3, "i")

    def __call__(self, w):
        return self.out(self.lstm(self.embed(w)))


def total(net, x, choose):
    net.lstm.reset_state()
    w, loss = x[0], 0
    for t in range(1, len(x)):
        y = net(w)
        loss += F.softmax_cross_entropy(y, x[t])
        w = choose(y, x[t])
    return loss


def in_turn(net, x):
    """What one place begins with, another one leaves."""
    net.lstm.reset_state()
    v, w, loss = x[0], x[1], 0
    for t in range(2, len(x)):
        y = net(w)
        loss += F.softmax_cross_entropy(y, x[t])
        v, w = F.argmax(y, axis=1).array, v
    return loss


def by_decision(net, x):
    """Scheduled sampling."""
    net.lstm.reset_state()
    loss, y = 0, None
    for t in range(len(x) - 1):
        e = net.embed(F.argmax(y, axis=1)) if t > 0 and random.random() < 0.5 else net.embed(x[t])
        y = net.out(net.lstm(e))
        loss += F.softmax_cross_entropy(y, x[t + 1])
    return loss


FUNCTIONS = {
    "argmax of Chainer's": lambda net, x: total(net, x, lambda y, t: F.argmax(y, axis=1)),
    "argmax": lambda net, x: total(net, x, lambda y, t: y.array.argmax(axis=1).astype("i")),
    "argsort": lambda net, x: total(net, x, lambda y, t: np.argsort(y.array, axis=1)[:, -2]),
    "where": lambda net, x: total(net, x, lambda y, t: np.where(np.random.rand(3) < 0.5, t, y.array.argmax(axis=1))),
    "a decision": lambda net, x: total(net, x, lambda y, t: t if random.random() < 0.5 else y.array.argmax(axis=1).astype("i")),
    "one number": lambda net, x: total(net, x, lambda y, t: np.array([int(y.array[k].argmax()) for k in range(3)], "i")),
    "in turn": in_turn,
    "scheduled sampling": by_decision,
}


def results(call, net, x, seed):
    np.random.seed(seed)
    random.seed(seed)
    net.cleargrads()
    loss = call(net, x)
    loss.backward()
    return [loss.array, random.random(), np.random.rand(), net.lstm.h.array, net.lstm.c.array,
            *[p.grad for _, p in sorted(net.namedparams())]]


@pytest.mark.parametrize("name, backend", [*[(name, "numpy") for name in FUNCTIONS], ("argmax", "c")])
def test_chosen_rows(name, backend):
    if backend == "c" and not compiler.available():
        pytest.skip("no C compiler")
    net = Net()
    compiled = to_static(FUNCTIONS[name], backend=backend)
    for n in (5, 6, 8, 10, 7, 12):
        x = np.random.RandomState(n).randint(0, WORDS, (n, 3)).astype("i")
        expected, actual = results(FUNCTIONS[name], net, x, n), results(compiled, net, x, n)
        for a, b in zip(expected, actual):
            np.testing.assert_allclose(b, a, rtol=2e-4, atol=1e-5)
    stats = compiled.stats()
    assert (stats["captures"], stats["fallbacks"], stats["cuts"]) == (3, 0, 0)


WRONG = {
    "one more": lambda net, x: total(net, x, lambda y, t: y.array.argmax(axis=1) + 1),
    "the caller's": lambda net, x: total(net, x, lambda y, t: t + WORDS * (y.array.max() > 0)),
    "no sign": lambda net, x: total(net, x, lambda y, t: t.astype("u1").astype("i")),
    "in turn": lambda net, x: wrong_in_turn(net, x),
}


def wrong_in_turn(net, x):
    net.lstm.reset_state()
    v, w, loss = x[0], x[1], 0
    for t in range(2, len(x)):
        y = net(w)
        loss += F.softmax_cross_entropy(y, x[t])
        v, w = y.array.argmax(axis=1) + 1, v
    return loss


@pytest.mark.parametrize("name", WRONG)
def test_rows_that_may_be_missing(name):
    """What raises in eager mode raises compiled, and leaves the same state."""
    compiled = to_static(WRONG[name], backend="numpy")
    raised = 0
    for seed in range(12):
        x = np.random.RandomState(seed).randint(-1, WORDS, (5 + seed % 5, 3)).astype("i")     # -1 is the last row, and no label
        found = []
        for call in (WRONG[name], compiled):
            net = Net()
            try:
                found.append(results(call, net, x, seed))
            except IndexError:
                found.append([None if state is None else state.array for state in (net.lstm.h, net.lstm.c)])
                raised += 1
        assert len(found[0]) == len(found[1])
        for a, b in zip(*found):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(b, a, rtol=2e-4, atol=1e-5)
    assert raised >= 2 and raised % 2 == 0
