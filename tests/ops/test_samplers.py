"""Links that draw samples: eager's numbers, in eager's order, and what they change."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import to_static

COUNTS = [4, 2, 3, 5, 1]
LABELS = np.array([0, 2, -1, 4], "i")
KNOWN = LABELS.clip(0)


def gathered(net, x):
    loss, samples = net(x, LABELS, return_samples=True)
    return loss * 2, samples


def twice(net, x):
    return net(x, LABELS, reduce="no") * net(x * 2, KNOWN)


def plain(net, x):
    return net(x, KNOWN) + F.sum(F.dropout(x))


def given(net, x):
    """The sampler gives an array of the user's, which is changed before something that may fail: not compiled."""
    fixed = net.fixed
    return F.negative_sampling(x, LABELS, net.W, lambda shape: fixed, 2)


def outcome(function, net, x):
    np.random.seed(4)
    net.cleargrads()
    results = function(net, x)
    results = results if isinstance(results, tuple) else (results,)
    F.sum(results[0] * 0.5).backward()
    return [*(r.array if isinstance(r, chainer.Variable) else r for r in results), net.W.grad, np.random.rand(), net.fixed.copy()]


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
@pytest.mark.parametrize("link, function", [(L.NegativeSampling, gathered), (L.NegativeSampling, twice), (L.NegativeSampling, plain),
                                            (L.NegativeSampling, given), (L.BlackOut, plain)],
                         ids=lambda item: item.__name__)
def test_samples(link, function):
    x = np.random.RandomState(0).randn(4, 3).astype("f")
    found = []
    for compiled in (False, True):
        net = link(3, COUNTS, 2)
        net.fixed = np.array([[0, 2, 0], [0, 1, 1], [0, 0, 3], [0, 3, 3]], "i")
        net.W.array[...] = np.linspace(-1, 1, 15).reshape(5, 3)
        run = to_static(function, strict=function is not given) if compiled else function
        found.append([value for _ in range(3) for value in outcome(run, net, x)])
    for eager, ours in zip(*found):
        np.testing.assert_allclose(ours, eager, rtol=1e-5, atol=1e-6)
