"""Networks of convolutions and pooling, compiled as a whole: against eager, in one node, in planned memory."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import FallbackWarning, to_static


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.c1 = L.Convolution2D(1, 3, 3, pad=1)
            self.c2 = L.Convolution2D(3, 4, 3, stride=2)
            self.up = L.Deconvolution2D(4, 2, 2, stride=2)
            self.fc = L.Linear(None, 5)

    def forward(self, x, t):
        h = F.max_pooling_2d(F.relu(self.c1(x)), 2)
        h = F.average_pooling_2d(F.relu(self.up(F.tanh(self.c2(h)))), 2)
        return F.softmax_cross_entropy(self.fc(h), t)


X = np.random.RandomState(0).uniform(-1, 1, (3, 1, 14, 14)).astype("f")
T = np.array([1, 4, 0], np.int32)


@pytest.fixture
def net():
    np.random.seed(0)
    made = Net()
    made(X, T)
    return made


def step(net, function, x):
    net.cleargrads()
    x = chainer.Variable(x)
    loss = function(x, T)
    loss.backward()
    return [loss.array, x.grad] + [p.grad for _, p in sorted(net.namedparams())]


def test_trained_in_one_node(net):
    compiled = to_static(lambda x, t: net(x, t), strict=True)
    for x in (X, X[::-1].copy(), X[:, :, ::-1]):
        for actual, expected in zip(step(net, compiled, x), step(net, net.forward, x)):
            np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-6)
    stats = compiled.stats()
    assert (stats["opaque"], stats["segments"], stats["fallbacks"], stats["programs"]) == (0, 1, 0, 1)


def test_tested_without_places(net):
    """Nobody asks for the places of the maxima where nothing is differentiated."""
    compiled = to_static(lambda x, t: net(x, t), strict=True)
    with chainer.no_backprop_mode():
        np.testing.assert_allclose(compiled(X, T).array, net(X, T).array, rtol=1e-5)
        code = compiled.program(X, T).code
    assert "None)" in next(line for line in code.splitlines() if "take_maximum(" in line)


def test_input_changed_before_backward(net):
    """Backward of the pooling reads where the maxima were, not the image."""
    def pooled(x):
        return F.max_pooling_2d(x, 2)
    gradients = []
    for function in (pooled, to_static(pooled, strict=True)):
        x = chainer.Variable(X.copy())
        y = function(x)
        x.array[...] = -x.array
        y.grad = np.ones_like(y.array)
        y.backward()
        gradients.append(x.grad)
    np.testing.assert_array_equal(*gradients)


def test_places_of_maxima():
    def function(x):
        y, places = F.max_pooling_2d(x, 2, return_indices=True)
        return F.upsampling_2d(y * 2, places, 2, outsize=x.shape[2:]), places, places.sum(axis=1), places.dtype
    compiled = to_static(function, strict=True)
    for x in (X, np.zeros_like(X)):
        (y, places, sums, dtype), (ey, eplaces, esums, edtype) = compiled(x), function(x)
        np.testing.assert_array_equal(y.array, ey.array)
        np.testing.assert_array_equal(places, eplaces)
        np.testing.assert_array_equal(sums, esums)
        assert (dtype, places.dtype) == (edtype, eplaces.dtype)
    assert compiled.stats()["opaque"] == 0


def test_places_that_are_written():
    """Backward would read them: the call runs eagerly."""
    def function(x):
        y, places = F.max_pooling_2d(x, 2, return_indices=True)
        places[...] = 0
        return F.sum(y)
    expected, actual = chainer.Variable(X), chainer.Variable(X)
    function(expected).backward()
    with pytest.warns(FallbackWarning, match="changed in place"):
        to_static(function)(actual).backward()
    np.testing.assert_array_equal(actual.grad, expected.grad)
