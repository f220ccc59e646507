"""Functions of libraries that call the user's, in which a line cannot be compiled: what they call is compiled all the same."""
import functools
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array, check, variable
from breaks import refuse as broken
from chainer.function_hooks import TimerHook
from chainer.training.updaters import StandardUpdater

from dy2static import to_static
from dy2static.training import StaticUpdater

LABELS = np.array([0, 3, 1], np.int32)


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(4, 4, initialW=array(4, 4, seed=1))

    def forward(self, x):
        h = F.sigmoid(F.tanh(F.sin(self.l(x)) * 2) + 1)
        h = broken(h)
        return F.tanh(F.sin(F.exp(h * 0.1) * 2) + 1)


def a_sequential(compile):
    net = chainer.Sequential(L.Linear(4, 4, initialW=array(4, 4, seed=2)), F.relu, Net())
    return compile(lambda x, w: F.sum(net(x) * w)), [net]


def a_classifier(compile):
    net = L.Classifier(Net())
    return compile(lambda x, w: net(x * w, LABELS)), [net]


def a_partial_function(compile):
    net = Net()
    call = functools.partial(net.forward)
    return compile(lambda x, w: F.sum(call(x) * w)), [net]


def steps(loss, optimizer, *hooks):
    def make(compile):
        net = Net()
        optimizer_ = optimizer().setup(net)
        for hook in hooks:
            optimizer_.add_hook(hook())

        def step(x, w):
            loss(optimizer_, net, x, w)
        return compile(step), [net]
    return make


def a_loss_function(optimizer, net, x, w):
    optimizer.update(lambda x, w: F.sum(net(x) * w), x, w)


def a_loss_without_arguments(optimizer, net, x, w):
    def loss():
        return F.sum(net(x) * w)
    optimizer.update(loss)


MAKES = {"Sequential": a_sequential, "Classifier": a_classifier, "partial": a_partial_function,
         "update": steps(a_loss_function, lambda: chainer.optimizers.SGD(0.1)),
         "update, made anew": steps(a_loss_without_arguments, lambda: chainer.optimizers.MomentumSGD(0.1)),
         "hooks": steps(a_loss_function, chainer.optimizers.RMSprop, lambda: chainer.optimizer_hooks.WeightDecay(0.1))}


def functions_run(call):
    """How many functions of Chainer a call runs."""
    with TimerHook() as hook:
        call()
    return len(hook.call_history)


@pytest.mark.parametrize("name", MAKES)
def test_what_is_called_is_compiled(name):
    make = MAKES[name]
    check(make, [lambda k=k: (variable(3, 4, seed=k), variable(3, 4, seed=k + 10)) for k in range(8)], strict="parts")
    eager, compiled = make(lambda f: f)[0], make(to_static)[0]
    x, w = variable(3, 4), variable(3, 4, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(8):
            compiled(x, w)
    assert compiled.cache_info().fallbacks == 0
    assert functions_run(lambda: compiled(x, w)) < functions_run(lambda: eager(x, w)) / 2


def trained(cls):
    """Parameters after some steps with an updater of a class, the updater, and the warnings of the steps."""
    net = L.Classifier(Net())
    optimizer = chainer.optimizers.Adam().setup(net)
    data = chainer.datasets.TupleDataset(array(12, 4), np.arange(12, dtype=np.int32) % 4)
    updater = cls(chainer.iterators.SerialIterator(data, 3, shuffle=False), optimizer)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(6):
            updater.update()
    return [p.array for p in net.params()], updater, [str(warning.message) for warning in seen]


class Clipping(StandardUpdater):
    def update_core(self):
        super().update_core()
        for p in self.get_optimizer("main").target.params():
            p.array[...] = np.clip(p.array, -0.5, 0.5)


class CompiledClipping(Clipping):
    update_core = to_static(Clipping.update_core)


@pytest.mark.parametrize("eager, compiled", [(StandardUpdater, StaticUpdater), (Clipping, CompiledClipping)])
def test_an_updater(eager, compiled):
    expected = trained(eager)[0]
    found, updater, messages = trained(compiled)
    for a, b in zip(expected, found):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    assert updater.update_core.stats()["fallbacks"] == 0
    assert len([message for message in messages if "h = broken(h)" in message]) == 1 and len(messages) <= 2
    assert functions_run(updater.update) < 12
