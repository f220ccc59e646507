"""Arrays of two GPUs in one compiled call, with transfers between them, against eager mode."""
import contextlib
import copy
import warnings
from unittest.mock import patch

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer import optimizers
from cupy_double import on_double

from dy2static import FallbackWarning, to_static
from dy2static.backends.registry import OF_LIBRARY

pytestmark = pytest.mark.devices(2)

cuda = chainer.backends.cuda
cupy = cuda.cupy


def array(*shape, device=0, seed=0):
    with cupy.cuda.Device(device):
        return cupy.array(np.random.RandomState(seed).uniform(-1, 1, shape))


class OnTwo(chainer.Chain):
    """Links on two GPUs. Constants, running means and a sum of squares are on both."""

    def __init__(self):
        super().__init__()
        with self.init_scope(), chainer.using_config("dtype", np.float64):
            self.first, self.norm, self.last = L.Linear(6, 5), L.BatchNormalization(5), L.Linear(5, 4)
        for link, number in ((self.first, 0), (self.norm, 1), (self.last, 0)):
            link.to_device(f"@cupy:{number}")

    def __call__(self, x):
        h = F.clipped_relu(self.first(x), 0.5)
        h = F.clipped_relu(self.norm(F.copy(h, 1)), 0.5) + 0.25
        return self.last(F.copy(F.tanh(h), 0))


def placed(item):
    """A result as its type, its devices, and its elements on the host."""
    if isinstance(item, (tuple, list)):
        return [placed(part) for part in item]
    if isinstance(item, chainer.Variable):
        return ["Variable", item.device, *placed(item.array)]
    return [item.device.id, item.get()] if isinstance(item, cupy.ndarray) else [item]


def same(found, wanted):
    """Whether two results of `placed` are the same; elements may be rounded differently."""
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, np.ndarray):
        return found.dtype == wanted.dtype and np.allclose(found, wanted, rtol=1e-9, atol=1e-12)
    return found == wanted


def compare(function, *args, backend="numpy"):
    """The compiled function, after two calls that gave what eager mode gives, and what it warned of."""
    static = to_static(function, backend=backend)
    wanted = placed(function(*args))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(2):
            assert same(placed(static(*args)), wanted)
    return static, [str(w.message) for w in found if issubclass(w.category, FallbackWarning)]


@pytest.mark.parametrize("backend", ["numpy", "c"])
@on_double
def test_gradients_of_two_orders(backend):
    def gradients(model, call, x, scale):
        loss = F.sum(call(x) ** 2 * scale)
        found = chainer.grad([loss], [x, *model.params()], enable_double_backprop=True)
        model.cleargrads()
        F.sum(found[0] ** 2).backward()
        return loss, list(found), [p.grad for p in model.params()], x.grad, model.norm.avg_mean
    results = []
    model = OnTwo()
    for is_static in (False, True):
        copied, x = copy.deepcopy(model), chainer.Variable(array(8, 6))
        call = to_static(copied.__call__, backend=backend, strict=True) if is_static else copied
        results.append(placed(gradients(copied, call, x, array(8, 4, seed=1))))
    assert same(*results) and call.stats()["captures"] == 1, call.stats()
    assert [p.grad.device.id for name, p in sorted(copied.namedparams())] == [0, 0, 0, 0, 1, 1]


@contextlib.contextmanager
def noted_order():
    """Gives what streams of the stand-in are told in its block, and copies from one device to another, in their order."""
    order, copy = [], cupy.array

    def array(x):
        if isinstance(x, cupy.ndarray) and x.device != cupy.cuda.Device():
            order.append(("copied", x.device.id, cupy.cuda.Device().id))
        return copy(x)
    with patch.object(cupy, "array", array), \
            patch.object(cupy.cuda.Event, "record", lambda self, stream=None: order.append(("recorded", cupy.cuda.Device().id, self))), \
            patch.object(cupy.cuda.Stream, "wait_event", lambda self, event: order.append(("waits", cupy.cuda.Device().id, event))):
        yield order


@pytest.mark.stand_in("its streams can be looked at")
@pytest.mark.parametrize("backend", ["numpy", "c"])
@on_double
def test_a_copy_waits_for_the_stream_of_its_source_which_waits_for_the_copy(backend):
    model, x = OnTwo(), array(8, 6)
    with noted_order() as order:
        F.sum(to_static(model.__call__, backend=backend, strict=True)(x)).backward()
    copies = [k for k, (what, *_) in enumerate(order) if what == "copied"]
    assert len(copies) == 4 and len(order) == 5 * len(copies)
    for k in copies:
        (before, source, first), (waiting, target, same), copied, (after, there, last), (then, here, other) = order[k - 2:k + 3]
        assert (before, waiting, after, then) == ("recorded", "waits", "recorded", "waits")
        assert copied == ("copied", source, target) and (there, here) == (target, source) and first is same and last is other


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("optimizer", [optimizers.MomentumSGD, optimizers.Adam])
@on_double
def test_whole_steps_update_parameters_of_both(optimizer, backend):
    def step(model, optimizer, x, t):
        loss = F.softmax_cross_entropy(model(x), t)
        model.cleargrads()
        loss.backward()
        optimizer.update()
        return loss
    model, results = OnTwo(), []
    t = cupy.array(np.arange(8) % 4)
    for function in (step, to_static(step, backend=backend, strict=True)):
        copied = copy.deepcopy(model)
        used = optimizer().setup(copied)
        losses = [function(copied, used, array(8, 6, seed=k), t) for k in range(4)]
        results.append(placed([losses, list(copied.params()), [copied.norm.avg_mean, copied.norm.avg_var]]))
    assert same(*results)


def sent(x):
    y = x.array
    return (cuda.to_gpu(y, 1), cuda.to_gpu(y), chainer.dataset.to_device("@cupy:1", y), chainer.get_device("@cupy:1").send([y, y]),
            cuda.to_cpu(cuda.to_gpu(y, 1)), F.copy(F.copy(x, -1) * 2, 1), F.copy(F.copy(x, 1), 0) * 2)


def told(x):
    y = F.copy(x, 1)
    return y, y.device, y.array.device.id, y.xp is cupy, chainer.get_device("@cupy:1") == y.device


def constants(x):
    y = F.copy(x, 1)
    return F.clipped_relu(x, 0.5), F.clipped_relu(y, 0.5), F.dropout(y, 0.0), F.max(y, axis=0), F.hstack([y, y])


def current(x):
    with chainer.using_device("@cupy:1"):
        there = x.xp.ones(3), cuda.to_gpu(x.array) * 2 + 1, cupy.asarray(np.array([1.0, 2.0]))
    return there, x.xp.ones(3), x.array + 1


def gradient_inside(x):
    g, = chainer.grad([F.sum(F.copy(x, 1) ** 3)], [x], enable_double_backprop=True)
    return F.sum(g * g)


@pytest.mark.parametrize("function", [sent, told, constants, current, gradient_inside], ids=lambda function: function.__name__)
@on_double
def test_captured(function):
    static, warned = compare(function, chainer.Variable(array(3, 4)))
    assert not warned and static.stats()["programs"] == 1


def mixed(x):
    try:
        return F.copy(x, 1) + x
    except ValueError as error:
        return str(error)[:12]


def of_another_device(x):
    try:
        return cuda.to_gpu(x.array, 1) * 2
    except ValueError as error:
        return str(error)[:12]


def branch(x):
    y = F.copy(x, 1)
    return (F.tanh(y), x) if x.array.sum() > 0 else (y, F.tanh(x))


def makes_current(x):
    with cupy.cuda.Device(0):
        chainer.get_device("@cupy:1").use()
        return x.xp.ones(3)


@pytest.mark.stand_in("it has two devices that cannot reach each other")
@pytest.mark.parametrize("function, reason", [
    (mixed, "arrays of cupy:0 and of cupy:1 are used together"), (of_another_device, "the current device is another one"),
    (branch, "arrays are on several GPUs"), (makes_current, "the current GPU is changed")], ids=lambda item: getattr(item, "__name__", ""))
@on_double
def test_refused(function, reason):
    _, warned = compare(function, chainer.Variable(array(3, 4)))
    assert any(reason in text for text in warned)


@on_double
def test_programs_are_for_the_devices_of_their_inputs():
    static = to_static(lambda x, y: (F.tanh(x), F.exp(y), F.copy(x, 1)), strict=True)
    for devices in ((0, 1), (1, 0), (1, 1), (0, 1)):
        x, y = (array(3, device=number, seed=number) for number in devices)
        found = static(x, y)
        assert [each.array.device.id for each in found] == [*devices, 1]
        np.testing.assert_allclose(found[1].array.get(), np.exp(y.get()))
    assert static.stats()["programs"] == 3


@on_double
def test_draws_are_those_of_the_device():
    def function(x):
        with chainer.using_device("@cupy:1"):
            drawn = cupy.random.normal(0, 1, (3,))
        return drawn, F.dropout(F.copy(x, 1)), F.dropout(x)
    results = []
    for called in (function, to_static(function, strict=True)):
        for number in (0, 1):
            with cupy.cuda.Device(number):
                cupy.random.seed(number)
        results.append(placed([called(chainer.Variable(array(3, 4))) for _ in range(2)]))
    assert same(*results)


def launched():
    """How many kernels each of the two emulated devices has been asked for."""
    return np.array([OF_LIBRARY["cupy", True].device(number).launched for number in (0, 1)])


def there_and_back(x):
    y = F.softmax(F.tanh(F.copy(x, 1)) * 2 + 1) @ F.exp(F.copy(x.T, 1))
    return F.sum(F.sigmoid(F.copy(y, 0)) + 0.5), y


@pytest.mark.stand_in("it counts emulated launches")
@on_double
def test_kernels_run_on_each_device():
    """Those of a part of a program are launched on the device of its arrays, with memory there; transfers are in between."""
    x = chainer.Variable(array(16, 16))
    static = to_static(there_and_back, backend="c", strict=True)
    wanted, before = placed(there_and_back(x)), launched()
    for _ in range(3):                                                  # launched, and replayed as graphs
        found = static(x)
        assert same(placed(found), wanted)
    counts = launched() - before
    assert counts[0] >= 3 and counts[1] >= 6 and not counts[0] % 3 and not counts[1] % 3
    found[0].backward()
    eager = chainer.Variable(x.array)
    there_and_back(eager)[0].backward()
    assert same(placed(x.grad), placed(eager.grad)) and all(launched() - before - counts)
    program = static.dispatcher.programs[-1]
    assert "with cp.cuda.Device(1):" in program.source and program.native_code.count("__global__") >= 3


@on_double
def test_memory_is_used_again_on_each_device():
    def function(x):
        for _ in range(4):
            x = F.copy(F.tanh(F.sigmoid(F.exp(x))), 1)
            x = F.copy(F.tanh(F.sigmoid(F.exp(x))), 0)
        return x
    static = to_static(function, backend="numpy", strict=True)
    with chainer.no_backprop_mode():
        x = array(64, 64)
        assert same(placed(static(x)), placed(function(x)))
        before = cupy.get_default_memory_pool().used_bytes()
        static(x)
        assert cupy.get_default_memory_pool().used_bytes() == before
    assert static.stats()["peak_bytes"] < 8 * x.nbytes
