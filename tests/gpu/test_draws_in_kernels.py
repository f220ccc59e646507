"""Draws with ``rng="fast"`` in kernels: the numbers of Philox, from a key of CuPy's generator."""
import chainer
import chainer.functions as F
import numpy as np
import pytest
from chainer.backends import cuda
from cupy_double import on_double
from emulated_graphs import array as of_numpy
from emulated_graphs import case, results
from numpy_on_double import array

from dy2static import ops, to_static
from dy2static.backends.cuda.nests import elements
from dy2static.native.emulated import missing
from dy2static.ops.fast_random import philox_words

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


@pytest.mark.parametrize("key, counter, words", [
    ("00000000 00000000", "00000000 00000000 00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff", "ffffffff ffffffff ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("a4093822 299f31d0", "243f6a88 85a308d3 13198a2e 03707344", "d16cfe09 94fdcceb 5001e420 24126ea1")])
def test_known_answers(key, counter, words):
    """Those that the authors give with Random123 (kat_vectors, philox4x32 10)."""
    key, counter = (np.array([int(word, 16) for word in text.split()], np.uint32) for text in (key, counter))
    assert " ".join(f"{word:08x}" for word in philox_words(key, counter[None])[0]) == words


def test_kernels_draw_the_numbers_of_philox_wherever_they_are_read(monkeypatch):
    """By the place of an element, in sums, side by side, and from memory for what is no loop."""
    monkeypatch.setattr(elements, "VECTORS", 1)

    def drawn(key, function="random_sample", number=3):
        return ops.philox(key, shape=(6, 8), dtype=np.dtype("float32"), function=function, number=number)
    functions = (
        lambda key, x: x * ops.mask(drawn(key) + 1.0, ops.greater_equal(drawn(key, number=4), 0.25)),
        lambda key, x: ops.sum(x * drawn(key, "standard_normal"), axis=(1,), keepdims=False),
        lambda key, x: ops.sum(x + drawn(key), axis=(0,), keepdims=False),
        lambda key, x: (ops.matmul(drawn(key), x, transb=True), ops.transpose(drawn(key), axes=(1, 0))))
    key = np.random.RandomState(1).uniform(size=2)
    cases = [case(function, key, of_numpy(6, 8)) for function in functions]
    assert [len(one.region.function.steps) for one in cases] == [1, 1, 1, 4] and "dy_load" in cases[0].text
    results(cases)


def compiled(function):
    return to_static(function, backend="c", rng="fast", strict=True)


@on_double
def test_dropout():
    """As many zeros as eager mode has, the mask of the forward in the backward, and other numbers in each call."""
    cupy = cuda.cupy
    state = np.random.get_state()[1].copy()
    static, x = compiled(lambda x: F.dropout(F.dropout(x, 0.25), 0.5)), cupy.ones((40, 50), np.float32)

    def run(seed):
        cupy.random.seed(seed)
        found = []
        for _ in range(2):
            given = chainer.Variable(x)
            y = static(given)
            F.sum(y * 3).backward()
            assert (given.grad.get() == 3 * y.array.get()).all()
            found.append(y.array.get())
        return found
    first, again, other = run(1), run(1), run(2)
    assert all((a == b).all() for a, b in zip(first, again)) and (first[0] != first[1]).any() and (first[0] != other[0]).any()
    kept = np.mean([array != 0 for array in first])
    assert abs(kept - 0.375) < 5 * (0.375 * 0.625 / 4000) ** 0.5
    (program,) = static.dispatcher.programs
    assert program.native_code.count("dy_random_sample_f32") >= 2 and (np.random.get_state()[1] == state).all()


@on_double
def test_distributions():
    zeros = cuda.cupy.zeros((300, 40), np.float32)
    cuda.cupy.random.seed(0)
    normal = compiled(lambda m: F.gaussian(m, m, return_eps=True)[1])(zeros).get()
    assert abs(normal.mean()) < 0.03 and abs(normal.std() - 1) < 0.03 and normal.dtype == np.float32
    assert abs((normal < -1).mean() - 0.1587) < 0.02 and abs(np.corrcoef(normal.ravel()[::2], normal.ravel()[1::2])[0, 1]) < 0.04
    slope = -compiled(lambda x: F.rrelu(x))(zeros - 1).array.get()
    assert 1 / 8 <= slope.min() < 0.13 and 0.33 < slope.max() <= 1 / 3 and abs(slope.mean() - 11 / 48) < 3e-3


@on_double
def test_loops_draw_anew_in_each_turn():
    def function(x):
        n = 0
        y = x
        while F.sum(y).array > 20:
            y = F.dropout(x, 0.5) * (1 - n * 0.1)
            n += 1
        return y
    static, found = compiled(function), set()
    cuda.cupy.random.seed(0)
    for _ in range(3):
        found.add(static(array(6, 7) + 2).array.get().tobytes())
    assert len(found) == 3
