"""Random numbers are eager's own, bit for bit and in the same order, however they are drawn."""
import random

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array, check, variable

from dy2static import FallbackWarning, to_static
from dy2static.capture.draws import Draws


def x45():
    return (variable(4, 5),)


def interleaved(x):
    a = F.dropout(x, 0.3)
    b = np.random.rand(4, 5).astype("f")
    c = F.dropout(a + b, 0.5)
    d = random.random()
    return c * d, F.gaussian(x, x), np.random.normal(size=3), random.gauss(0, 1), np.random.randint(9)


CASES = {
    "interleaved": interleaved,
    "unused draws": lambda x: (np.random.rand(3), random.random(), x * 2)[2],
    "unused dropout": lambda x: (F.dropout(x), x * 2)[1],
    "same draw twice": lambda x: (np.random.rand(2), np.random.rand(2), F.dropout(x), F.dropout(x)),
    "distributions": lambda x: (np.random.uniform(1, 2, 3), np.random.randn(2), np.random.permutation(5), np.random.choice(5, 2),
                                np.random.binomial(3, 0.5, 4), np.random.beta(1, 2), np.random.exponential(), np.random.standard_normal(2)),
    "python": lambda x: (random.random(), random.uniform(1, 2), random.randint(1, 6), random.choice([1, 2, 3]), random.sample(range(9), 3)),
    "gauss is cached": lambda x: (np.random.randn(), np.random.randn(3), np.random.normal()),
    "size from a shape": lambda x: np.random.rand(*x.shape) + x.array,
    "dropout of nothing": lambda x: (F.dropout(x, 0.0), F.dropout(x[:0])),
    "dropout under test": lambda x: in_test_mode(x),
    "n-step dropout": lambda x: F.n_step_rnn(1, 0.5, array(1, 1, 5)[:, :1], [[array(5, 5), array(5, 5)]], [[array(5), array(5)]], [x[:1], x[:1]]),
    "zoneout and gumbel": lambda x: (F.zoneout(x, x * 2, 0.4), F.gumbel_softmax(x), F.simplified_dropconnect(x, array(3, 5))),
    "seeded": lambda x: (np.random.seed(3), x * np.random.rand())[1],
    "shuffled": lambda x: shuffle(x),
    "shuffled arrays": lambda x: shuffle_arrays(x),
    "items that are not alike": lambda x: (x * random.sample(UNLIKE, 2)[0].shape[0], random.choices([(1, None), (1.5, 2)], k=2)),
    "state": lambda x: (np.random.get_state()[2], x * 2),
}


ORDER, TABLE = np.arange(9, dtype="i"), np.arange(9, dtype="f") ** 2
UNLIKE = [np.ones(3, "f"), np.ones(4, "f")]


def in_test_mode(x):
    with chainer.using_config("train", False):
        y = F.dropout(x)
    return y, F.dropout(x)


def shuffle(x):
    order = [0, 1, 2, 3]
    random.shuffle(order)
    np.random.shuffle(order)
    return x * order[0], order


def shuffle_arrays(x):
    ORDER[...] = np.arange(9)
    own, rows, large = np.random.RandomState(3), x.array.copy(), x.array[:, 0][x.array[:, 0] > 0]
    np.random.shuffle(ORDER)
    np.random.shuffle(rows)
    np.random.shuffle(rows[1:3, 0])
    np.random.shuffle(large)
    own.shuffle(ORDER)
    own.shuffle(np.zeros((0, 2)))
    return rows, large, ORDER.copy(), x[ORDER[:2] % 4], own.rand()


def test_shuffled_arrays_are_compiled():
    shuffled = to_static(shuffle_arrays, backend="numpy", strict=True)
    shuffled(x45()[0])
    assert shuffled.cache_info().captures == 1


@pytest.mark.parametrize("name", CASES)
def test_stream(name):
    check(lambda compile: (compile(CASES[name]), None), [x45] * 4, rounds=1)


def test_training_with_dropout_is_the_same_run():
    def run(decorate):
        np.random.seed(5)
        model = chainer.Chain(a=L.Linear(5, 8), b=L.Linear(8, 2))
        forward = decorate(lambda x: model.b(F.dropout(F.relu(model.a(x)), 0.4)))
        optimizer = chainer.optimizers.MomentumSGD().setup(model)
        for k in range(8):
            model.cleargrads()
            F.mean_squared_error(forward(array(4, 5, seed=k)), np.random.rand(4, 2).astype("f")).backward()
            optimizer.update()
        return [p.array for p in model.params()] + [np.random.rand()]
    from dy2static import to_static
    for a, b in zip(run(lambda f: f), run(to_static)):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_a_failing_call_has_drawn_as_far_as_eager():
    def f(x, m):
        a = np.random.rand()
        np.linalg.inv(m)
        return x * a * np.random.rand()
    regular, singular = np.eye(2, dtype="f"), np.zeros((2, 2), "f")
    check(lambda compile: (compile(f), None), [lambda: (variable(2), regular), lambda: (variable(2), singular)] * 3, rounds=1)


def test_generators_of_the_user():
    """A model's own generators are drawn from at every call, in order, and end where they end eagerly."""
    def make():
        old, new, plain = np.random.RandomState(3), np.random.default_rng(4), random.Random(5)

        def f(x):
            noise = new.standard_normal(x.shape).astype("f")
            keep = old.rand(*x.shape) > 0.5
            if plain.random() > 0.5:
                x = x * plain.uniform(1, 2)
            return F.where(keep, x, x * 0) + noise * old.randint(3), new.integers(10)
        return f, lambda: (old.get_state()[1].tolist(), new.bit_generator.state, plain.getstate())
    (f, states), (g, ends) = make(), make()
    compiled = to_static(g, strict=True)
    for _ in range(4):
        (a, i), (b, j) = f(*x45()), compiled(*x45())
        np.testing.assert_array_equal(a.array, b.array)
        assert i == j and states() == ends()
    assert compiled.stats()["captures"] <= 2


def sampled(label):
    """As targets of detection are: of too many, some that are drawn are left out."""
    negative = np.where(label == 0)[0]
    n = 32 - np.sum(label == 1)
    if len(negative) > n:
        label[np.random.choice(negative, size=len(negative) - n, replace=False)] = -1
    return label


def below(label):
    """A number that is below one that only the run knows."""
    return np.random.randint(0, np.sum(label == 1) + 1), np.random.choice(np.sum(label == 1) + 1, size=3)


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("function", [sampled, below])
def test_draws_with_numbers_that_only_the_run_knows(function, backend):
    labels = np.random.RandomState(0).randint(-1, 2, (4, 64)).astype(np.int32)
    compiled = to_static(function, backend=backend)
    for i, label in enumerate(labels):
        (expected, state), (found, after) = [
            (np.random.seed(i), call(label.copy()), np.random.rand())[1:] for call in (function, compiled)]
        assert np.array_equal(np.hstack(expected), np.hstack(found)) and state == after
    assert function is sampled or not compiled.stats()["fallbacks"] and compiled.stats()["programs"] == 1


def test_a_seed_inside_is_set_in_every_call():
    def f(x):
        np.random.seed(3)
        return F.dropout(x), np.random.rand(2)
    compiled = to_static(f, strict=True)
    for _ in range(3):
        x = chainer.Variable(np.ones(6, "f"))
        (y, drawn), after = f(x), np.random.rand()
        (z, again), later = compiled(x), np.random.rand()
        assert (y.array == z.array).all() and (drawn == again).all() and after == later


def test_what_a_draw_gives_is_learned_once_for_equal_arguments(monkeypatch):
    tried = []
    monkeypatch.setattr(Draws, "_learned", lambda *given, learned=Draws._learned: tried.append(given[1:]) or learned(*given))

    def play(x, n):
        return [x * np.random.uniform(0.0, 1.5, n) for _ in range(3)] + [x * np.random.uniform(-0.0, 1.5, n)]
    for _ in range(2):
        to_static(play, strict=True)(np.ones(7), 7)
    assert sorted(given[2][0] for given in tried) == [-0.0, 0.0] and len(tried) == 2


@pytest.mark.parametrize("backend", ["c", "numpy"])
def test_what_a_draw_gave_is_written(backend):
    """Arrays that were drawn are new: writes into them and their views are compiled. Those that another array may be are not."""
    order, state = np.arange(6.0), np.random.RandomState(5)

    def draws():
        x, a, b = np.random.rand(3, 4), *np.random.rand(2, 3)
        x[:, 1] = 0
        column = x[:, 2]
        column += 1
        a[0], b[1] = 3, 4
        p, q = np.random.permutation(order), np.random.choice(order, 3, replace=False)
        p[0], q[1] = 100, -1
        z = state.permutation(order)
        z[:] = 7
        np.clip(a, 0.3, 0.6, out=a)
        x[np.arange(3), np.random.randint(0, 4, 3)] = -2
        return x, column, a, b, p, q, z, order

    f = to_static(draws, backend=backend, strict=True)
    for k in range(3):
        state.seed(k)
        np.random.seed(k)
        expected = draws()
        state.seed(k)
        np.random.seed(k)
        for one, other in zip(expected, f()):
            np.testing.assert_array_equal(one, other)


def test_a_draw_into_an_array_gives_that_array():
    """The result of `Generator.random(out=a)` is `a`, which a write into the result changes, too."""
    generator, kept = np.random.default_rng(0), np.zeros(4)

    @to_static(backend="numpy")
    def filled():
        drawn = generator.random(4, np.float64, kept)
        drawn[0] = 9
        return kept * 2

    with pytest.warns(FallbackWarning, match="changed in place"):
        assert [filled()[0], filled()[0]] == [18, 18]


@pytest.mark.parametrize("taken", [lambda n: TABLE.take(ORDER[n:n + 3]), lambda n: np.take(TABLE, ORDER[n:n + 3]),
                                   lambda n: np.repeat(ORDER[n:n + 3], 2), lambda n: ORDER[n:n + 3].cumsum()])
def test_what_was_taken_may_be_read_after_the_places_are_shuffled(taken):
    def batch(n):
        found = taken(n)
        np.random.shuffle(ORDER)
        return found * 2

    compiled, results = to_static(batch, backend="numpy"), []
    for f in (batch, compiled):
        ORDER[...] = np.arange(9)
        np.random.seed(0)
        results.append([f(n).tolist() for n in range(5)])
    assert results[0] == results[1] and compiled.stats()["cuts"] == 0 and compiled.cache_info().captures == 2
