"""Numbers that differ from call to call and reach functions of Chainer as their attributes: schedules of rates, bounds and margins."""
import contextlib
import math
import sys
import types

import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest

import dy2static

RANDOM = np.random.RandomState(0)
X, P = RANDOM.randn(4, 6).astype("f"), (RANDOM.rand(4, 6) + 0.5).astype("f")
IMAGES = RANDOM.rand(2, 2, 6, 6).astype("f")
ONES, ZEROS = np.ones(6, "f"), np.zeros(6, "f")
LABELS = np.array([0, 1, 1, 0], "i")

#: Those for which numbers are inputs: the second capture is for all that follow.
INPUTS = {
    "clip": lambda x, p, k: F.clip(x, -k, 1 + k),
    "clip above": lambda x, p, k: F.clip(x, -1.0, k),
    "dropout": lambda x, p, k: F.dropout(x, k),
    "zoneout": lambda x, p, k: F.zoneout(p, x, k),
    "leaky_relu": lambda x, p, k: F.leaky_relu(x, k),
    "clipped_relu": lambda x, p, k: F.clipped_relu(x, k),
    "huber_loss": lambda x, p, k: F.huber_loss(x, p, k),
    "elu": lambda x, p, k: F.elu(x, k) + F.elu(p - 1, -k),
    "selu": lambda x, p, k: F.selu(x, k, 1 + k),
    "softplus": lambda x, p, k: F.softplus(x, k),
    "contrastive": lambda x, p, k: F.contrastive(x, p, LABELS, k),
    "dropconnect": lambda x, p, k: F.simplified_dropconnect(x, p, ratio=k),
    "eps of rows": lambda x, p, k: F.layer_normalization(x, ONES, ZEROS, eps=k),
    "eps of known variances": lambda x, p, k: F.fixed_batch_normalization(x, ONES, ZEROS, ZEROS, p[0], eps=k),
    "exponent": lambda x, p, k: x * p ** (1 + k),
    "base": lambda x, p, k: (1 + k) ** x,
    "decay": lambda x, p, k: x * 0.9 ** k * (1 + k) ** int(100 * k) * (-0.5) ** int(10 * k),
    "powers": lambda x, p, k: x * 2 ** -k * k ** k * 0.5 ** int(k * 20),
    "triplet": lambda x, p, k: F.triplet(x, p, x * p, k),
    "noise": lambda x, p, k: x + np.random.normal(0, k, x.shape).astype("f") * np.random.uniform(-k, k),
}

#: Those with a program for each number.
FIXED = {
    "eps": lambda x, p, k: F.batch_normalization(x, ONES, ZEROS, eps=k),
    "pad": lambda x, p, k: F.pad(x, ((0, 0), (1, 1)), "constant", constant_values=k),
    "window": lambda x, p, k: F.local_response_normalization(x, 2 * int(k * 10) + 1),
    "widths": lambda x, p, k: F.pad(x, ((0, 0), (int(k * 10), 1)), "reflect") * F.sum(p),
    "size": lambda x, p, k: F.sum(F.resize_images(IMAGES, (int(k * 10) + 3, 8))) * x,
}


def with_gradients(run, k):
    """A result, and the gradients of both Variables, after the same draws."""
    np.random.seed(0)
    x, p = chainer.Variable(X.copy()), chainer.Variable(P.copy())
    y = run(x, p, k)
    F.sum(y * y).backward()
    return y.array, x.grad, p.grad


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_numbers_of_numpy(kind, backend):
    def f(x, rate):
        if rate > 0.3:
            x = x * 2
        return F.dropout(x, float(rate)) * rate, rate, type(rate).__name__
    static = dy2static.to_static(f, backend=backend, strict=True)
    for rate in map(kind, (0.11, 0.21, 0.31, 0.41)):
        found = []
        for run in (f, static):
            np.random.seed(0)
            y, same, name = run(X, rate)
            found.append((y.array, same))
            assert type(same) is kind and name == kind.__name__ and y.dtype == np.float32
        np.testing.assert_allclose(*[array for array, _ in found], rtol=1e-6)
    assert static.cache_info().captures == 2


def test_numbers_of_numpy_that_are_needed():
    static = dy2static.to_static(lambda x, rate: (F.tanh(x) * rate, {"%.2f" % rate: float(rate)}["%.2f" % rate]), strict=True)
    for rate in map(np.float32, (0.1, 0.2, 0.3)):
        assert static(X, rate)[1] == float(rate)


@pytest.mark.parametrize("kind", [np.float32, np.float64, lambda k: np.array(k, "f")], ids=["float32", "float64", "array"])
def test_numbers_of_numpy_in_functions(kind):
    """They are inputs as floats are; an array is one in the first capture."""
    def f(x, p, k):
        h = F.dropout(F.softplus(x, k), k) + F.selu(x, k) + F.zoneout(p, F.elu(x, alpha=k), k)
        h = h + F.sum(F.simplified_dropconnect(x, p, ratio=k))
        return F.huber_loss(x, h, k) + F.contrastive(x, p, LABELS, k) + F.triplet(x, p, h, k)
    static = dy2static.to_static(f, backend="numpy", strict=True)
    for k in map(kind, (0.11, 0.21, 0.31, 0.41)):
        found = [with_gradients(run, k) for run in (f, static)]
        for expected, ours in zip(*found):
            np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-6)
    assert static.cache_info().captures == (1 if type(k) is np.ndarray else 2)
    with pytest.raises(ValueError, match="must be in the range"):
        static(X, P, kind(1.5))


@pytest.mark.parametrize("name, backend", [*[(name, backend) for name in INPUTS for backend in ("numpy", "c")],
                                           *[(name, "numpy") for name in FIXED]])
def test_values_and_gradients(name, backend):
    function = INPUTS.get(name) or FIXED[name]
    static = dy2static.to_static(function, backend=backend, strict=True)
    for k in (0.11, 0.21, 0.31, 0.41):
        found = [with_gradients(run, k) for run in (function, static)]
        for expected, ours in zip(*found):
            assert (expected is None) is (ours is None)
            if expected is not None:
                np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-6)
    assert static.cache_info().captures == (2 if name in INPUTS else 4)


@pytest.mark.parametrize("kind", [float, lambda k: np.array(k)], ids=["float", "array"])
def test_eps_of_adam(kind):
    """Chainer's message for an eps that is too small fails itself: the type of an array's items has no ``name``."""
    weights = []
    for compiles in (False, True):
        link = chainer.links.Linear(3, 2, initialW=1)
        optimizer = chainer.optimizers.Adam().setup(link)
        loss = lambda x: F.sum(link(x))     # noqa: B023, E731

        def step(x):
            optimizer.update(loss, x)       # noqa: B023
        run = dy2static.to_static(step, backend="numpy", strict=sys.version_info >= (3, 10)) if compiles else step
        for eps in map(kind, (1e-8, 1e-7, 1e-6, 1e-5)):
            optimizer.eps = eps
            run(ONES.reshape(2, 3))
        weights.append(link.W.array)
        optimizer.eps = kind(1e-80)
        with pytest.raises(AttributeError, match="has no attribute 'name'"):
            run(ONES.reshape(2, 3))
        assert optimizer.t == 5
    np.testing.assert_allclose(*weights, rtol=1e-6)


def test_powers_of_other_types():
    """They are whole or floats, or fail, by the sign of the exponent."""
    static = dy2static.to_static(lambda x, n: (2 ** n, 0.5 ** n, n ** n, x * 2 ** n), strict=True)
    for n in (1, 2, 3, -1, -2, 5, 1, -3):
        found = static(X, n)
        assert [(type(k), k) for k in found[:3]] == [(type(k), k) for k in (2 ** n, 0.5 ** n, n ** n)]
        np.testing.assert_allclose(found[3], X * 2 ** n)
    assert static.cache_info().captures == 3
    for n, kind in ((-2000, OverflowError), (0, None)):
        with pytest.raises(kind) if kind else contextlib.nullcontext():
            static(X, n)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_powers_that_have_functions_of_their_own(backend):
    """NumPy takes the square root of -inf and of -0.0, not their powers; one program serves all other exponents."""
    static = dy2static.to_static(lambda x, n: x ** n, backend=backend, strict=True)
    base = np.array([-np.inf, -0.0, 0.0, -1.0, 2.0, np.inf], "f")
    for n in (3.1, 1.7, 0.5, 2.0, -1.0, 1.5, 2.5, 0.5, 7.0, -3.0):
        expected, found = [], []
        for run, kept in ((lambda x, n: x ** n, expected), (static, found)):
            x = chainer.Variable(base)
            with np.errstate(all="ignore"):
                y = run(x, n)
                F.sum(y).backward()
            kept += [y.array, np.signbit(y.array[1:3]), x.grad]
        for ours, eager in zip(found, expected):
            np.testing.assert_allclose(ours, eager, rtol=1e-6)
    assert static.cache_info().captures == 8


def least_so_far(x, state, k):
    value = float(F.sum(x * k).array)
    if state.best is None or value < state.best - 1e-3:
        state.best, state.patience = value, 0
    else:
        state.patience += 1
    return state.best, state.patience, state.best is None, state.patience is state, k is None, k is True


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_a_number_is_no_other_object(backend):
    """Whatever it is: a program does not depend on its value for that."""
    static = dy2static.to_static(least_so_far, backend=backend, strict=True)
    states = [types.SimpleNamespace(best=None, patience=0) for _ in range(2)]
    for k in (3.0, 2.0, 4.0, 1.0, 0.5, 0.7, 0.2, 5.0, -1.0, -2.0, -5.0):
        expected, found = [run(chainer.Variable(X), state, k) for run, state in zip((least_so_far, static), states)]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert [type(item) for item in found] == [type(item) for item in expected]
    assert static.cache_info().captures <= 4


#: What can be told of numbers without their values.
QUESTIONS = {
    "is": lambda x, k: (k is None, k is not x, None is k, k is True, k if k is not None else 0.0),
    "truth": lambda x, k: (not k, k or 2.0, k and 2.0, bool(k), any([0, k]), all([k, 1])),
    "power": lambda x, k: (0.5 ** k, (1 + k) ** k, 2 ** int(k * 10), 0.9 ** (int(k * 10) // 2)),
    "methods": lambda x, k: (k.is_integer(), k.conjugate(), k.real, int(k * 10).bit_length() > 9),
    "joined": lambda x, k: (np.r_[k].max(), np.r_[x.array[0], k], np.r_[k, 1], np.c_[x.array[0], x.array[1]]),
    "sum": lambda x, k: (sum([k, 1e16, 1.0, -1e16]), sum((float(x.array[0, 0]), 1e16, -1e16), k), sum(v for v in (k, 1e16, -1e16))),
}


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_about_numbers(name, backend):
    def f(x, k):
        return F.tanh(x) * 2, QUESTIONS[name](x, k)
    static = dy2static.to_static(f, backend=backend, strict=True)
    for k in (0.11, 0.21, 0.31, 0.41):
        for expected, ours in zip(f(chainer.Variable(X), k)[1], static(chainer.Variable(X), k)[1]):
            assert type(ours) is type(expected)
            np.testing.assert_array_equal(ours, expected)
    assert static.cache_info().captures == 2


def test_powers_whose_type_depends_on_signs():
    def f(x, base, exponent):
        return F.tanh(x) * 2, base ** exponent
    static = dy2static.to_static(f, backend="numpy")
    for base, exponent in ((2, 3), (2, 4), (3, 2), (3, -1), (2, -2), (-2, 3), (-3, 2), (-2.0, 0.5), (-3.0, 1.5), (0, 2), (2.5, -1.5)):
        expected, ours = f(X, base, exponent)[1], static(X, base, exponent)[1]
        assert type(ours) is type(expected) and ours == expected


def ends_with_constants(x, k):
    """Two ends that compute an expression each, and a guard with a number that has no literal."""
    y = F.relu(x) if x.array.sum() > 0 else 1
    return y, math.floor(k + 0.5), math.inf > k


def test_ends_with_constants():
    calls = [lambda k=k, sign=sign: (chainer.Variable(sign * np.ones(3, "f")), k) for k in (1, 2, 3, 4) for sign in (1, -1)]
    against_eager.check(lambda compile: compile(ends_with_constants), calls, compiled=True)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("function", [
    F.leaky_relu, F.elu, F.softplus, lambda x, k: F.huber_loss(x, x * 0, k), lambda x, k: F.layer_normalization(x, x[0] * 0 + 1, x[0] * 0, k)],
    ids=["leaky_relu", "elu", "softplus", "huber_loss", "layer_normalization"])
def test_extreme_numbers(function, backend):
    """NaN, infinities and what the dtype cannot hold: Chainer's function computes with them itself."""
    static = dy2static.to_static(function, backend=backend)
    for number in (0.5, np.nan, 1e39, np.inf, 0.25, 2 ** 64, 0.5):
        expected, ours = [_seen(f, number) for f in (function, static)]
        assert ours[0] == expected[0]
        for mine, eager in zip(ours[1:], expected[1:]):
            np.testing.assert_allclose(mine, eager, rtol=1e-4, atol=1e-6)


def _seen(f, number):
    """The dtype and values of a result and the gradient, or which error there was."""
    x = chainer.Variable(np.array([[-1.5, 0.0, 0.7, -0.2]], "f"))
    with np.errstate(all="ignore"):
        try:
            y = f(x, number)
            y.grad = np.ones_like(y.array)
            y.backward()
        except (TypeError, chainer.utils.type_check.InvalidType) as error:
            return [type(error)]
    return [y.dtype, y.array, x.grad]


def returns_of_steps(x, rewards, state):
    """An expression of each step, and sums of many numbers of which a size, a key and an error are made."""
    value, returns, count = 0.0, [], 0
    for reward in reversed(rewards):
        value = reward + 0.99 * value
        returns.insert(0, value)
        count += int(reward * 10)
    state.count = count
    state.root = math.sqrt(value - 20)
    y = x * np.array(returns[:6], "f") * (2 if value > 40 else 1)
    return y, returns, value // 7, count, [0] * (count % 3), f"{value:.3f}", "abc"[count % 3], {0: 1.5, 1: 2.5, 2: 3.5}[count % 3]


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_numbers_made_of_many(backend):
    """What is computed of very long expressions is part of the graph: no program is for one value of it."""
    static = dy2static.to_static(returns_of_steps, backend=backend)
    random = np.random.RandomState(0)
    states = [types.SimpleNamespace() for _ in range(2)]
    for factor in (1.0, 0.9, 0.5, 0.8, 0.0, 1.0):
        rewards = [float(factor * reward) for reward in random.rand(80)]
        seen = []
        for run, state in zip((returns_of_steps, static), states):
            try:
                y, *more = run(chainer.Variable(X), rewards, state)
                seen.append((np.round(y.array, 2).tolist(), np.round(more.pop(0), 5).tolist(), [type(item) for item in more], more))
            except ValueError as error:
                seen.append((str(error), state.count))
        assert seen[0] == seen[1]
    assert static.cache_info().captures <= 3
