"""Native code draws NumPy's own uniform numbers and leaves its generator as NumPy does."""
import contextlib
import threading
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static
from dy2static.backends.c import draws
from dy2static.native import compiler

pytestmark = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")


def in_loop(x):
    h, n = x, 0
    while float(F.sum(h * h).array) > 1:
        h = F.dropout(h, 0.25) * 0.5
        n += 1
    return h * 2, n


def in_branch(x):
    h = F.dropout(x, 0.5)
    if float(F.sum(h).array) > 0:
        h = F.dropout(h, 0.3) + F.zoneout(h, x, 0.4)
    else:
        h = h * 3
    return F.dropout(h, 0.1)


def counted(x):
    h = x
    for _ in range(int(abs(x.array).sum() * 3) % 5):
        h = F.tanh(F.dropout(h, 0.2)) + h
    return h


def among_others(x):
    """Draws that stay NumPy's, between those of native code."""
    h = F.dropout(x, 0.5)
    h = F.gaussian(h, h * 0)
    h = F.dropout(h, 0.5) + np.random.rand(*x.shape).astype("f")
    h = F.rrelu(h) + F.gumbel_softmax(h)
    while float(F.sum(h * h).array) > 1:
        h = F.gaussian(F.dropout(h, 0.5), h * 0 - 9) * 0.5
    return F.dropout(h)


def unused(x):
    F.dropout(x)
    F.dropout(x[:0])
    return x * 2


def one(x):
    return F.dropout(F.sum(x, keepdims=True), 0.5)


PROGRAMS = (in_loop, in_branch, counted, among_others, unused, one)


def outcome(function, seed, words=0, shape=(4, 5)):
    """Results, gradients, and the state afterwards; so many words of 32 bits are drawn first."""
    np.random.seed(seed)
    np.random.randint(0, 2 ** 32, words, np.uint32)
    x = chainer.Variable(np.random.RandomState(seed).uniform(-1, 2, shape).astype("f"))
    results = function(x)
    results = results if isinstance(results, tuple) else (results,)
    sum([F.sum(r) for r in results if isinstance(r, chainer.Variable)]).backward()
    name, keys, position, has_gauss, gauss = np.random.get_state()
    return [np.asarray(getattr(r, "array", r)) for r in (*results, x.grad)], (name, keys.tolist(), position, has_gauss, gauss)


def agree(static, function, seed, **options):
    (values, state), (expected, expected_state) = [outcome(f, seed, **options) for f in (static, function)]
    assert state == expected_state
    for value, wanted in zip(values, expected):
        np.testing.assert_allclose(value, wanted, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_same_numbers_and_state(function):
    static = to_static(function, backend="c", strict=True)
    for seed in range(6):
        agree(static, function, seed, words=seed % 3)
    agree(static, function, 7, words=621, shape=(40, 50))
    if function is not among_others:
        program = static.dispatcher.programs[0]
        assert "dy_uniform" in program.native_code and "random" not in program.source


def test_state_is_put_back_where_native_code_declines():
    def function(x):
        h = F.dropout(x, 0.5)
        return h / x
    static = to_static(function, backend="c", strict=True)
    zero = np.zeros((3, 3), "f")
    for x in (zero + 1, zero):
        found = []
        for called in (static, function):
            np.random.seed(2)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                y = called(x)
            found.append((y.array, np.random.get_state()[1:3], len(caught)))
        np.testing.assert_equal(*found)
    assert found[0][2] == 1


def test_what_is_raised_after_a_draw():
    def function(x, n):
        h = F.dropout(x, 0.5)
        while float(F.sum(h * h).array) > 1:
            h = F.dropout(h, 0.5) * 0.5
        return h[int(n)]
    static = to_static(function, backend="c", strict=True)
    x = np.ones((4, 4), "f")
    for n in (1, 9):
        found = []
        for called in (static, function):
            np.random.seed(2)
            with contextlib.ExitStack() as stack:
                if n == 9:
                    stack.enter_context(pytest.raises(IndexError))
                called(x, np.array(n))
            found.append(np.random.get_state()[1:3])
        np.testing.assert_equal(*found)


def test_other_generators():
    """Another generator behind `numpy.random`, functions put in place of its own, a layout that is not known."""
    static = to_static(in_loop, backend="c", strict=True)
    agree(static, in_loop, 1)
    state = np.random.get_state()
    outcome(static, 3)
    np.random.set_state(state)
    agree(static, in_loop, 3)
    if hasattr(np.random, "set_bit_generator"):
        before = np.random.get_bit_generator()
        x = np.ones((4, 4), "f")
        try:
            found = []
            for called in (static, in_loop):
                np.random.set_bit_generator(np.random.PCG64(5))
                found.append((called(x)[0].array, np.random.rand()))
            np.testing.assert_equal(*found)
            np.random.set_bit_generator(np.random.MT19937(5))
            agree(static, in_loop, 4)
        finally:
            np.random.set_bit_generator(before)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draws, "_is_known", lambda: False)
        agree(static, in_loop, 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "rand", lambda *shape: np.full(shape, 0.5))
        agree(static, in_loop, 6)


def test_threads():
    """Whole calls draw under the lock of the generator, also while NumPy draws without the GIL."""
    static = to_static(lambda x: F.dropout(x, 0.5), backend="c", strict=True)
    x, rounds, count = np.ones(3000, "f"), 30, 3

    def native():
        for _ in range(rounds):
            static(x)

    def of_numpy():
        for _ in range(rounds):
            np.random.rand(3000)
    static(x)
    np.random.seed(4)
    threads = [threading.Thread(target=target) for target in (native, of_numpy) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state = np.random.get_state()[1:3]
    np.random.seed(4)
    np.random.rand(3000 * rounds * 2 * count)
    np.testing.assert_equal(state, np.random.get_state()[1:3])
