"""Products that a nest follows part by part: the parts of the kernel, and the programs that use them."""
import ctypes
import itertools

import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static
from dy2static.native import compiler, products

pytestmark = [pytest.mark.any_python, pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")]


# The kernel -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("shape", [(1, 40, 9), (40, 1, 9), (5, 40, 64), (30, 70, 20), (150, 60, 33), (130, 600, 900), (200, 530, 8),
                                   (150, 20, 40), (300, 4, 9), (6, 5, 0),
                                   (300, 290, 900)], ids=str)
def test_each_part_is_complete_and_comes_once(shape):
    """Whatever way a product takes: few rows, turned, panels packed as they are needed or before, parts of the depth."""
    m, n, k = shape
    word, pointer = ctypes.c_int64, ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(None, pointer, word, word, word, word)
    library = compiler.build(products.text("f32", shared=1 << 14), products.FLAGS)
    function = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_int, word, word, word, ctypes.c_float, pointer, word, pointer, word,
                                ctypes.c_float, pointer, word, kind, pointer)(library.address("finished_product"))
    random = np.random.RandomState(0)
    for trans_a, trans_b in itertools.product((0, 1), (0, 1)):
        a, b = random.standard_normal((m, k)).astype("f"), random.standard_normal((k, n)).astype("f")
        left, right = np.ascontiguousarray(a.T if trans_a else a), np.ascontiguousarray(b.T if trans_b else b)
        c, times, expected = np.full((m, n), np.nan, "f"), np.zeros((m, n), int), a.astype(float) @ b

        def finish(given, begin, end, first, last):
            part = slice(begin, end), slice(first, last)
            times[part] += 1                                                        # noqa: B023  called at once
            np.testing.assert_allclose(c[part], expected[part], rtol=1e-4, atol=1e-4)   # noqa: B023
            c[part] = np.inf                                                        # noqa: B023  nobody reads it again
        function(trans_a, trans_b, m, n, k, 1, left.ctypes.data, max(1, left.shape[1]), right.ctypes.data, max(1, right.shape[1]), 0,
                 c.ctypes.data, n, kind(finish), None)
        assert (times == 1).all() and np.isinf(c).all()


# Programs -------------------------------------------------------------------------------------------------------------

def array(*shape):
    return np.random.RandomState(sum(shape)).standard_normal(shape).astype("f")


X, W, V, BIAS, ROWS = array(130, 90), array(600, 90), array(90, 600), array(600), array(130, 1)
BATCH, SUM = array(2, 65, 90), array(130, 600)

def twice_turned(y):
    return y + F.transpose(y)


#: name: (function, operands, how many products are finished)
PROGRAMS = {
    "bias": (lambda x, w, b: F.linear(x, w, b), (X, W, BIAS), 1),
    "bias and activation": (lambda x, w, b: F.relu(F.linear(x, w, b)), (X, W, BIAS), 1),
    "residual": (lambda x, w, s: F.linear(x, w) + s, (X, W, SUM), 1),
    "an own operand": (lambda x, w: F.linear(x, w) * x, (array(150, 150), array(150, 150) * 2), 1),
    "rows": (lambda x, w, r: F.matmul(x, w) * F.broadcast_to(r, (130, 600)), (X, V, ROWS), 1),
    "stacks": (lambda x, w, b: F.tanh(F.linear(x, w, b, n_batch_axes=2)), (BATCH, W, BIAS), 1),
    "the product, too": (lambda x, w, b: (F.matmul(x, w), F.relu(F.matmul(x, w) + 1)), (X, V, BIAS), 1),
    "two": (lambda x, w, b, v: F.sigmoid(F.linear(F.relu(F.linear(x, w, b)), v)), (X, W, BIAS, array(210, 600)), 2),
    "transposed": (lambda x, w: twice_turned(F.matmul(x, w)), (array(140, 140), array(140, 140) + 1), 0),
    "a row": (lambda x, w, b: F.relu(F.linear(x, w, b)), (X[:1], array(40000, 90), array(40000)), 0),
    "sums": (lambda x, w: F.sum(F.relu(F.matmul(x, w)), axis=0), (X, V), 0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, monkeypatch):
    function, operands, count = PROGRAMS[name]
    texts, start = [], compiler.start
    monkeypatch.setattr(compiler, "start", lambda text, *flags: texts.append(text) or start(text, *flags))
    compiled = to_static(function, backend="c", strict=True)
    with chainer.no_backprop_mode():
        for _ in range(2):
            found, expected = compiled(*operands), function(*operands)
            for ours, eager in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected))):
                np.testing.assert_allclose(ours.array, eager.array, rtol=1e-4, atol=1e-4)
    assert "".join(texts).count("dy_finished_gemm_f32(") == count


def test_gradients():
    x, w, b = (chainer.Variable(a) for a in (X, W, BIAS))

    def loss(x, w, b):
        return F.sum(F.tanh(F.linear(x, w, b)) ** 2)
    found = chainer.grad([to_static(loss, backend="c")(x, w, b)], [x, w, b])
    for ours, eager in zip(found, chainer.grad([loss(x, w, b)], [x, w, b])):
        np.testing.assert_allclose(ours.array, eager.array, rtol=1e-3, atol=1e-3)


def test_threads(threads):
    """Bit by bit what one thread computes."""
    function, operands, _ = PROGRAMS["two"]
    compiled, found = to_static(function, backend="c"), []
    for count in (1, 2, 3):
        threads(count)
        with chainer.no_backprop_mode():
            found.append(compiled(*operands).array)
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])
