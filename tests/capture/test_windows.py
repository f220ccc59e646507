"""Slices of a fixed size that begin at a drawn number: crops, shifts, patches.  Their sizes are known, so what follows is compiled."""
import random
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import load, save, to_static
from dy2static.native import compiler

BACKENDS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not compiler.available(), reason="no C compiler"))]


def crop(x):
    """A crop as in training on images, by both modules, and a convolution of it."""
    top, left = np.random.randint(0, 3), random.randint(0, 2)
    bottom, right = top + 6, left + 6
    return F.convolution_2d(x[:, :, top:bottom, left:right], np.ones((2, 3, 3, 3), "f"))


def of_array(x):
    offset = random.choice(range(5))
    rows = slice(offset, offset + 3)
    y = x.array
    return F.tanh(y[0, :, rows]), y[None, ..., rows, 1:-1].sum(), y[1:, 0][:, rows][:, ::-1]


def clipped(x):
    """Bounds follow from arithmetic."""
    i, j = np.random.randint(8, size=2)
    i, j = max(int(i) - 2, 0), np.clip(j // 2 - 1, 0, 2)
    k = 7 - random.randrange(3, 8) % 4
    return x[:, :, i:i + 3, j:j + 5] * x[:, 0, None, k - 4:k - 1, 2:7]


def written(x):
    """A window is a view."""
    y = x.array.copy()
    i = random.randrange(4)
    part = y[..., i:i + 4]
    part += 1
    y[:, :, i:i + 2] *= 2
    return F.sum(x * y), part


def each_image(x):
    out = np.empty((len(x), 3, 5, 5), "f")
    for n in range(len(x)):
        i, j = random.randint(0, 3), np.random.randint(4)
        out[n] = x.array[n, :, i:i + 5, j:j + 5]
    return F.sum(x) * out


def in_loop(x):
    total = F.sum(x) * 0
    while float(total.array) < 50:
        i = np.random.randint(2, 5)
        total = total + F.sum(x[:, :, i:i + 3, i - 1:i + 3])
    return total


def in_branch(x):
    if random.random() < 0.5:
        i = random.randrange(3)
        x = x[:, :, i:i + 6]
    else:
        x = x[:, :, :6]
    return F.relu(x)


def gradient_inside(x):
    i = np.random.randint(0, 3)
    loss = F.sum(x[:, :, i:i + 4] ** 2)
    gx, = chainer.grad([loss], [x])
    return gx.array * 2, loss


def not_inside(x):
    """This slice may end before the sixth row: the size is one that only the run knows."""
    i = np.random.randint(0, 6)
    return F.sum(x[:, :, i:i + 6])


def below_zero(x):
    """This one may be empty."""
    i = np.random.randint(0, 6) - 1
    return F.sum(x[:, :, i:i + 2])


def keyword(x):
    """The bound is an argument by keyword."""
    i = np.random.randint(2, high=9)
    return F.sum(x[:, :, i:i + 4])


ALL = [crop, of_array, clipped, written, each_image, in_loop, in_branch, gradient_inside]


def flat(result):
    if isinstance(result, (tuple, list)):
        return [leaf for item in result for leaf in flat(item)]
    return [result.array if isinstance(result, chainer.Variable) else result]


def outcome(function, x, seed):
    """Results, gradients of two orders, and what both generators give next."""
    np.random.seed(seed)
    random.seed(seed)
    y = function(x)
    found = [*flat(y), np.random.rand(), random.random()]
    first = y[0] if isinstance(y, tuple) else y
    if isinstance(first, chainer.Variable) and first.requires_grad and first.creator is not None:
        gx, = chainer.grad([F.sum(first * first)], [x], enable_double_backprop=True)
        found.append(gx.array)
        if gx.creator is not None:
            found += [g if g is None else g.array for g in chainer.grad([F.sum(gx * gx)], [x])]
    return found


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", ALL, ids=lambda function: function.__name__)
def test_windows(function, backend):
    x = chainer.Variable(np.random.RandomState(0).rand(2, 3, 8, 8).astype("f"))
    compiled = to_static(function, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(8):
            expected, found = outcome(function, x, seed), outcome(compiled, x, seed)
            assert len(expected) == len(found)
            for a, b in zip(expected, found):
                np.testing.assert_allclose(b, a, rtol=2e-5, atol=1e-5)
    assert not any("Dim" in line or "size_" in line for line in str(compiled.program(x).graph).splitlines())


@pytest.mark.parametrize("function", [not_inside, below_zero, keyword], ids=lambda function: function.__name__)
def test_slices_that_may_be_shorter_keep_the_size_of_the_run(function):
    x = chainer.Variable(np.random.RandomState(0).rand(2, 3, 8, 8).astype("f"))
    compiled = to_static(function)
    for seed in range(12):
        for a, b in zip(outcome(function, x, seed), outcome(compiled, x, seed)):
            np.testing.assert_allclose(b, a, rtol=2e-5, atol=1e-5)


def test_a_window_shares_memory_with_the_array():
    def part(x):
        i = random.randrange(3)
        return x[:, i:i + 2]
    x = np.zeros((4, 5), "f")
    compiled = to_static(part)
    compiled(x)
    assert np.shares_memory(compiled(x), x)


def test_a_model_with_a_window_is_saved(tmp_path):
    class Cropped(chainer.Chain):
        @to_static
        def forward(self, x):
            i = np.random.randint(0, 3)
            return F.tanh(x[:, i:i + 4])

    model, x = Cropped(), np.random.RandomState(0).rand(3, 6).astype("f")
    model.forward(x)
    save(model, str(tmp_path / "model"))
    loaded = load(str(tmp_path / "model"))
    for seed in range(4):
        np.random.seed(seed)
        expected = model.forward(x).array
        np.random.seed(seed)
        np.testing.assert_array_equal(loaded(x).array, expected)
