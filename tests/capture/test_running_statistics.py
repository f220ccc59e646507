"""Running statistics: compiled calls change the arrays of the link as eager calls do, bit for bit, and when."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import to_static

IDS = np.array([0, 2], "i")


class Net(chainer.Chain):
    """A layer, a normalisation, and whatever the case does with them."""

    def __init__(self, body, bn):
        super().__init__()
        self.body, self.calls = body, 0
        with self.init_scope():
            self.l, self.bn = L.Linear(4, 3, initialW=np.linspace(-1, 1, 12).reshape(3, 4)), bn()

    def forward(self, x):
        return self.body(self, x)


def plain(net, x):
    return F.relu(net.bn(net.l(x)))


def shared(net, x):
    return net.bn(net.l(x)) * net.bn(net.l(x * 2))


def finetuned(net, x):
    return net.bn(net.l(x), finetune=True)


def read_between(net, x):
    h = net.bn(net.l(x))
    return h * (net.bn.avg_mean + 1) + F.sum(net.bn(h)) * net.bn.avg_var


def then_tested(net, x):
    h = net.bn(net.l(x))
    with chainer.using_config("train", False):
        return h + net.bn(net.l(x))


def decided(net, x):
    h = net.l(x)
    if F.sum(h).array > 0:
        h = net.bn(h)
    return h * 2


def repeated(net, x):
    h = net.l(x)
    for _ in range(3):
        h = net.bn(h)
    return h


def while_small(net, x):
    h = net.l(x)
    while F.sum(h).array > 1:
        h = net.bn(h) - 0.5
    return h


def counted(net, x):
    h = net.l(x)
    for _ in range(int(abs(F.sum(h).array) // 2)):
        h = net.bn(h)
    return h


def reset_between(net, x):
    h = net.bn(net.l(x))
    net.bn.avg_mean[...] = 0
    net.bn.avg_var.fill(1)
    return net.bn(h)


def of_its_own(net, x):
    """Statistics that are made in the function."""
    mean, var = np.zeros(3, "f"), np.ones(3, "f")
    h = F.batch_normalization(net.l(x), net.bn.gamma, net.bn.beta, running_mean=mean, running_var=var)
    net.bn.avg_mean[...] = mean
    return h * F.sum(var * h)


def only_read(net, x):
    with chainer.using_config("train", False):
        return net.bn(net.l(x))


BODIES = (plain, shared, finetuned, read_between, then_tested, decided, repeated, while_small, counted,
          reset_between, of_its_own, only_read)


def history(net, function, dtype="f"):
    """What some calls give, with gradients and statistics after each."""
    found = []
    for seed in range(4):
        x = chainer.Variable(np.random.RandomState(seed).randn(5, 4).astype(dtype))
        net.cleargrads()
        y = function(x)
        after = [net.bn.avg_mean.copy(), net.bn.avg_var.copy(), np.array(net.bn.N)]
        F.sum(y * y * 0.5).backward()
        found.append([y.array, *after, x.grad, *(p.grad for _, p in sorted(net.namedparams()))])
    return found


def same(actual, expected, exact=4):
    for ours, theirs in zip(actual, expected):
        for k, (a, e) in enumerate(zip(ours, theirs)):
            assert (a is None) == (e is None)
            if e is not None:
                assert (a.dtype, a.shape) == (e.dtype, e.shape)
                tolerance = 1e-2 if a.dtype == np.float16 else 1e-5
                np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance)
            if k < exact and e is not None:
                np.testing.assert_array_equal(a, e)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_batch_normalization(body):
    def bn():
        return L.BatchNormalization(3)
    eager, net = Net(body, bn), Net(body, bn)
    same(history(net, to_static(net.forward, strict=True)), history(eager, eager.forward))


@pytest.mark.parametrize("options", [
    {"size": 3, "use_gamma": False, "use_beta": False}, {"size": 3, "decay": 0.5, "eps": 1e-2}, {"axis": 0, "size": 3},
    {"axis": 0}], ids=str)
def test_options(options):
    eager, net = (Net(plain, lambda: L.BatchNormalization(**options)) for _ in range(2))
    same(history(net, to_static(net.forward, strict="size" in options)), history(eager, eager.forward))


def test_mixed_precision():
    """Half precision is normalised with parameters and statistics in single precision."""
    found = []
    for compiled in (False, True):
        with chainer.using_config("dtype", chainer.mixed16):
            net = Net(plain, lambda: L.BatchNormalization(3))
            found.append(history(net, to_static(net.forward, strict=True) if compiled else net.forward, np.float16))
    same(found[1], found[0])


@pytest.mark.parametrize("body", (plain, shared, then_tested, repeated), ids=lambda body: body.__name__)
def test_batch_renormalization(body):
    eager, net = (Net(body, lambda: L.BatchRenormalization(3, rmax=1.5, dmax=0.5)) for _ in range(2))
    same(history(net, to_static(net.forward, strict=True)), history(eager, eager.forward))


def test_whole():
    """One op in the program, and nothing that stays Chainer's."""
    net = Net(plain, lambda: L.BatchNormalization(3))
    program = to_static(net.forward, strict=True).program(np.ones((5, 4), "f"))
    names = [node.op.name for node in program.graph.nodes]
    assert names.count("batch_norm") == 1 and "opaque" not in names


def fails(net, x, ids):
    h = net.bn(net.l(x))
    return h, F.embed_id(ids, net.l.W)


def test_statistics_of_a_call_that_fails():
    """What raises after the normalisation finds the statistics changed, as eager."""
    x, states = np.random.RandomState(0).randn(5, 4).astype("f"), []
    for compiled in (False, True):
        net = Net(fails, lambda: L.BatchNormalization(3))
        function = to_static(lambda x, ids, net=net: fails(net, x, ids), strict=True) if compiled else \
            lambda x, ids, net=net: fails(net, x, ids)
        function(x, IDS)
        with pytest.raises(IndexError):
            function(x, IDS + 1)
        states.append([(net.bn.avg_mean, net.bn.avg_var)])
    same(states[1], states[0])


def refused(net, x):
    h = net.bn(net.l(x))
    return h * len("a" * int(abs(h.array).sum()))


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
def test_refused():
    """A call that cannot be compiled changes them once."""
    eager, net = (Net(refused, lambda: L.BatchNormalization(3)) for _ in range(2))
    same(history(net, to_static(net.forward)), history(eager, eager.forward))


@pytest.mark.filterwarnings("ignore:A batch with no more than one sample")
def test_single_sample():
    """Chainer's own forward, which warns, also after one that is compiled."""
    def both(net, x):
        h = net.bn(net.l(x))
        return net.bn(h[:1]) + h
    eager, net = (Net(both, lambda: L.BatchNormalization(3)) for _ in range(2))
    same(history(net, to_static(net.forward)), history(eager, eager.forward))
