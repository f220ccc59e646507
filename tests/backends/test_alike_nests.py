"""Loop nests that differ in arrays only are written once: the text is the one that writing each of them gives."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static
from dy2static.backends.c import executor
from dy2static.backends.c.alike_nests import AlikeNests
from dy2static.native import compiler

pytestmark = [pytest.mark.any_python, pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")]
X = np.random.RandomState(0).randn(12, 64, 50).astype("f")
W = np.random.RandomState(1).randn(50, 50).astype("f") / 10


def steps(x, w):
    """The same nest on other rows of an array, on others that overlap, and with a product between each two."""
    h = 0
    for k in range(11):
        h = F.matmul(F.tanh(x[k] * x[k + 1] + h), w)
    return h


def constants(x, w):
    """Nests that differ in the bits of a number, in an attribute or a shape."""
    h, found = x[0], []
    for number in (0.0, -0.0, 1.0, 2.0, 1.0, 0.0):
        h = F.matmul(F.maximum(h * np.float32(number), x[1]) + x[2], w)
    for slope in (0.1, 0.2, 0.1, 0.2):
        h = F.matmul(F.leaky_relu(h, slope) + x[3], w)
    for rows in (32, 64, 32, 64):
        part = F.matmul(F.tanh(h[:rows]) + x[4, :rows], w)
        found.append(part)
        h = h + F.sum(part)
    return [h, *found]


def aliases(x, w):
    """One array twice is another nest than two arrays; so is an array that is read turned, or summed to rows."""
    a, b = F.tanh(x[0]), F.tanh(x[1])
    for _ in range(3):
        a = F.matmul(a * a + b, w * 0.01)
        a = F.matmul(a * b + a, w * 0.01)
        b = F.matmul(b * b + a, w * 0.01)
        b = F.matmul(F.transpose(a)[:, :50] * b[:50] + F.transpose(b)[:, :50], w * 0.01)
        b = F.concat([b, x[2, :14]], axis=0)
        a = F.matmul(F.softmax(a) + F.softmax(b), w * 0.01)
    return [a, b, F.sum(a * b, axis=0)]


@pytest.mark.parametrize("function", (steps, constants, aliases))
def test_the_text_is_the_same_as_without(function, monkeypatch):
    def texts():
        found, again = [], []
        start, known = executor.compiler.start, AlikeNests.again

        def noted(self, form):
            again.append(known(self, form))
            return again[-1]

        with monkeypatch.context() as patch:
            patch.setattr(executor.compiler, "start", lambda source, *flags: found.append(source) or start(source, *flags))
            patch.setattr(AlikeNests, "again", noted)
            x, w = chainer.Variable(X), chainer.Variable(W)
            results = to_static(function, strict=True, backend="c")(x, w)
            results = results if isinstance(results, list) else [results]
            sum([F.sum(y) for y in results]).backward()
        return [text for text in found if " run_0(" in text], sum(again), [*[y.array for y in results], x.grad, w.grad]

    with_forms, count, results = texts()
    monkeypatch.setattr(AlikeNests, "again", lambda self, form: False)
    without, _, expected = texts()
    assert with_forms == without and count > 4
    for a, b in zip(results, expected):
        np.testing.assert_array_equal(a, b)
    eager = function(chainer.Variable(X), chainer.Variable(W))
    for a, b in zip(results, eager if isinstance(eager, list) else [eager]):
        np.testing.assert_allclose(a, b.array, rtol=1e-3, atol=1e-3)
