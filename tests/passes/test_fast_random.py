"""``rng="fast"``: draws of a generator of our own, reproducible from ``numpy.random.seed``, with the right distributions."""
import threading

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array, variable

from dy2static import to_static
from dy2static.errors import SignatureError


def in_loop(x):
    while float(F.max(abs(x)).array) > 0.2:
        x = F.dropout(x, 0.1) * 0.5
    return x


def in_branch(x):
    if x.array.sum() > 0:
        return F.dropout(x, 0.5)
    return F.gaussian(x, x)


def recomputed(x):
    return F.forget(lambda a: F.tanh(F.dropout(a)) * a, x)


FUNCTIONS = {
    "dropout": lambda x: F.dropout(x, 0.3),
    "twice": lambda x: F.dropout(F.dropout(x, 0.3), 0.6) + F.dropout(x, 0.3),
    "mask": lambda x: F.dropout(x, 0.5, return_mask=True),
    "zoneout": lambda x: F.zoneout(x * 2, x, 0.4),
    "gaussian": lambda x: F.gaussian(x, x, return_eps=True),
    "rrelu": lambda x: F.rrelu(x),
    "connections": lambda x: F.simplified_dropconnect(x, np.ones((5, 4), "f"), None, 0.5),
    "loop": in_loop,
    "branch": in_branch,
    "recomputed": recomputed,
    "with NumPy's": lambda x: F.dropout(x * np.random.rand(6, 4).astype("f")) + np.random.normal(),
}


def flat(result):
    return [y.array if isinstance(y, chainer.Variable) else y for y in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_reproducible(name):
    """The same seed gives the same numbers, also those drawn afterwards; other calls and seeds give others."""
    def run(seed):
        np.random.seed(seed)
        return [array for _ in range(2) for array in flat(static(variable(6, 4)))] + [np.random.rand(3)]
    static = to_static(FUNCTIONS[name], rng="fast", strict=True)
    first, again, other = run(3), run(3), run(4)
    for a, b in zip(first, again):
        np.testing.assert_array_equal(a, b)
    assert any((a != b).any() for a, b in zip(first[:-1], other))
    assert any((a != b).any() for a, b in zip(first[:len(first) // 2], first[len(first) // 2:]))
    assert static.stats()["captures"] == 1


@pytest.mark.parametrize("ratio", [0.0, 1e-3, 0.013, 0.1, 0.3, 0.5, 0.9])
def test_dropout(ratio):
    """As many zeros as eager has within five deviations, and the mask of the forward in the backward."""
    np.random.seed(0)
    x = chainer.Variable(np.ones((400, 500), "f"))
    y = to_static(lambda x: F.dropout(x, ratio), rng="fast")(x)
    y.grad = np.full((400, 500), 3, "f")
    y.backward()
    zeros = (y.array == 0).mean()
    assert abs(zeros - ratio) <= 5 * (ratio * (1 - ratio) / x.size) ** 0.5
    np.testing.assert_array_equal(x.grad, 3 * y.array)
    kept = y.array[y.array != 0]
    np.testing.assert_array_equal(kept, F.dropout(x, ratio).array.max() if ratio < 1 else kept)
    rows = (y.array == 0).mean(axis=1)
    assert ratio == 0 or rows.std() < 2 * (ratio * (1 - ratio) / 500) ** 0.5 + 1e-9      # nothing repeats


def test_distributions():
    np.random.seed(0)
    zeros = np.zeros((300, 400), "f")
    eps = to_static(lambda m: F.gaussian(m, m, return_eps=True)[1], rng="fast")(zeros)
    assert abs(eps.mean()) < 0.02 and abs(eps.std() - 1) < 0.02 and eps.dtype == np.float32
    slope = -to_static(lambda x: F.rrelu(x), rng="fast")(zeros - 1).array
    assert 1 / 8 <= slope.min() < 0.13 and 0.33 < slope.max() <= 1 / 3 and abs(slope.mean() - 11 / 48) < 2e-3


def test_gradients_of_the_recomputed():
    """With the mask of the forward: the gradient of ``sum(tanh(d(x)) * x)`` at what was drawn."""
    np.random.seed(1)
    static = to_static(lambda x: F.sum(F.dropout(x, 0.5) * x), rng="fast")
    x = variable(50, 40)
    y = static(x)
    y.backward()
    np.testing.assert_allclose(float(y.array), float((x.grad * x.array).sum()) / 2, rtol=1e-4)


def test_what_does_not_draw_leaves_the_generator_alone():
    np.random.seed(2)
    before = np.random.get_state()[1].tobytes(), np.random.get_state()[2]
    static = to_static(lambda x: F.dropout(x), rng="fast")
    with chainer.using_config("train", False):
        static(variable(3))
    to_static(lambda x: F.tanh(x), rng="fast")(variable(3))
    assert before == (np.random.get_state()[1].tobytes(), np.random.get_state()[2])


def test_threads():
    """Each thread has a stream of its own; masks are right in all of them."""
    static = to_static(lambda x: F.dropout(x, 0.5), rng="fast")
    static(variable(200, 30))
    failed = []

    def work():
        for _ in range(20):
            x = chainer.Variable(np.ones((200, 30), "f"))
            y = static(x)
            y.grad = np.ones_like(y.array)
            y.backward()
            if not (x.grad == y.array).all() or abs((y.array == 0).mean() - 0.5) > 0.05:
                failed.append(y)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_methods_and_links():
    class Model(chainer.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.l = L.Linear(4, 3, initialW=array(3, 4))

        @to_static(rng="fast")
        def forward(self, x):
            return F.dropout(self.l(x))
    found = []
    for _ in range(2):
        np.random.seed(4)
        found.append(Model()(array(5, 4)).array)
        found.append(to_static(chainer.Sequential(lambda x: F.dropout(x)), rng="fast")(array(5, 4)).array)
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[1], found[3])


@pytest.mark.parametrize("options, words", [({"rng": "slow"}, '"eager" or "fast"'), ({"rng": "fast", "check": 1}, "draws other numbers")])
def test_bad_options(options, words):
    with pytest.raises(SignatureError, match=words):
        to_static(F.dropout, **options)
