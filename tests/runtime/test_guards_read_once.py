"""Guards of a table that are read path by path in a first call: they tell what their generated code tells."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import to_static
from dy2static.program import guards as guards_module
from dy2static.runtime.guard_tests import GuardTable
from dy2static.runtime.program import MISS


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.layers = chainer.ChainList(*[L.Linear(3, 3) for _ in range(3)])
        self.scale, self.names, self.options = 0.0, ("a", 2, True), {"slope": 0.5}
        self.kept = np.zeros((2, 3), np.float32)

    def forward(self, x):
        for layer in self.layers:
            x = F.leaky_relu(layer(x), self.options["slope"])
        if "bias" not in self.options and self.names[1] == 2:
            x = x * 2
        self.kept[...] = x.array
        return F.sum(x) + self.scale


def table_of(static, *args):
    program = static.program(*args)
    (table,) = [value for value in program.call.__globals__.values() if type(value) is GuardTable]
    return table


@pytest.fixture
def readers(monkeypatch):
    """What reads the guards of the tables that are made."""
    made, reader = [], guards_module.reader

    def noting(guards, wanted):
        made.append(reader(guards, wanted))
        return made[-1]

    monkeypatch.setattr(guards_module, "reader", noting)
    return made


def minus_zero(net):
    net.scale = -0.0


def other_names(net):
    net.names = ("a", 3, True)


def one_more_option(net):
    net.options["bias"] = 1


def other_slope(net):
    net.options["slope"] = 0.25


def other_array(net):
    net.kept = np.zeros((3, 3), np.float32)


def turned_array(net):
    net.kept = np.zeros((3, 2), np.float32).T


def same_memory(net):
    net.kept = net.layers[0].W.array[:2]


def no_gradient(net):
    net.layers[1].W._requires_grad = False


def one_layer_twice(net):
    net.layers._children[1] = net.layers._children[0]


def one_layer_less(net):
    del net.layers._children[2]


def no_layer(net):
    del net.layers._children[1].__dict__["W"]


CHANGES = (minus_zero, other_names, one_more_option, other_slope, other_array, turned_array, same_memory, no_gradient,
           one_layer_twice, one_layer_less, no_layer)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_reading_tells_what_generated_code_tells(change, readers):
    net, x = Net(), np.ones((2, 3), np.float32)
    static = to_static(Net.forward, backend="c", strict=True)
    static(net, x)
    (read,), code = readers, table_of(static, net, x).python._later
    before = read((net, x), {}), code((net, x), {})
    assert len(before[0]) == len(before[1]) > 3 and all([a is b for a, b in zip(*before)])
    change(net)
    after = read((net, x), {}), code((net, x), {})
    assert (after[0] is MISS) == (after[1] is MISS)
    assert after[0] is MISS or all([a is b for a, b in zip(*after)])


def test_a_first_step_with_new_states_compiles_no_guards(monkeypatch):
    texts = []
    compiled = guards_module.compile_text

    def noting(text, name, *args, **more):
        texts.append(name)
        return compiled(text, name, *args, **more)

    monkeypatch.setattr(guards_module, "compile_text", noting)

    def step(net, optimizer, x):
        loss = net.forward(x)
        net.cleargrads()
        loss.backward()
        optimizer.update()
        return loss

    losses = []
    for function in (step, to_static(step, backend="c", strict=True)):
        np.random.seed(0)
        net, x = Net(), np.ones((2, 3), np.float32)
        optimizer = chainer.optimizers.Adam().setup(net)
        losses.append(float(function(net, optimizer, x).array))
    np.testing.assert_allclose(*losses, rtol=1e-5)
    assert not texts
