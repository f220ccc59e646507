"""Parameters without arrays, as a Link has that is never called, do not keep training steps from being compiled."""
import against_eager
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer import optimizer_hooks, optimizers


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.used, self.unused = L.Linear(4, 3), L.Linear(None, 3)

    def forward(self, x):
        return self.used(x)


def whole(net, optimizer, x):
    return optimizer.update(lambda: F.mean(net(x) ** 2)), len(list(net.params())), [p.is_initialized for p in net.params()]


def by_hand(net, optimizer, x):
    net.cleargrads()
    loss = F.mean(net(x) ** 2)
    loss.backward()
    for name, p in net.namedparams():
        if p.grad is not None and p.array is not None:
            p.array -= 0.1 * p.grad * len(name)
    return loss.array


@pytest.mark.parametrize("step", [whole, by_hand], ids=lambda step: step.__name__)
@pytest.mark.parametrize("kind", [optimizers.SGD, optimizers.Adam, optimizers.MomentumSGD], ids=lambda kind: kind.__name__)
def test_steps_of_models_with_links_that_are_never_called(kind, step):
    def make(compile):
        np.random.seed(1)
        net = Net()
        optimizer = kind().setup(net)
        optimizer.add_hook(optimizer_hooks.WeightDecay(1e-3))
        optimizer.add_hook(optimizer_hooks.GradientClipping(0.1))
        return compile(lambda x: step(net, optimizer, x)), [net, optimizer]
    function = against_eager.check(make, [lambda: (against_eager.variable(5, 4),)] * 4, compiled=True)
    assert function.stats()["cuts"] == 0 and function.stats()["captures"] == 1


def test_an_array_that_comes_later_is_trained_from_then_on():
    def make(compile):
        np.random.seed(1)
        net = Net()
        optimizer = optimizers.SGD(0.5).setup(net)
        first = compile(lambda x: optimizer.update(lambda: F.mean(net(x) ** 2)))
        calls = [0]

        def f(x):
            calls[0] += 1
            if calls[0] == 4:
                net.unused(x)
                net.unused.W.grad = np.ones_like(net.unused.W.array)
            return first(x), net.unused.W.array
        return f, [net, optimizer]
    function = against_eager.check(make, [lambda: (against_eager.variable(5, 4),)] * 6)
    assert function.stats()["captures"] == 2


@pytest.mark.parametrize("use", [lambda net, x: net.unused(x), lambda net, x: net.zerograds(), lambda net, x: net.unused.W.size,
                                 lambda net, x: net.unused.W.initialize((3, 2))], ids=["called", "zerograds", "size", "initialize"])
def test_what_needs_the_array_is_what_it_is_in_eager_mode(use):
    def make(compile):
        np.random.seed(1)
        net = Net()

        def f(x):
            net.cleargrads()
            use(net, x)
            return net(x), net.unused.W.array
        return compile(f), [net]
    against_eager.check(make, [lambda: (against_eager.variable(5, 4),)] * 4)


def test_what_else_is_read_of_such_a_parameter_is_guarded():
    def make(compile):
        net = Net()
        W, calls = net.unused.W, [0]
        function = compile(lambda: (net.cleargrads(), W.dtype == np.float32, W.requires_grad, F.sum(net.used.b)))

        def f():
            calls[0] += 1
            if calls[0] == 4:
                W.initializer = chainer.initializers.Zero(np.float32)
            W._requires_grad = calls[0] < 6
            return function()
        return f, [net]
    against_eager.check(make, [lambda: ()] * 4)
