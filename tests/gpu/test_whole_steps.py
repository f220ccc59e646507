"""Whole training steps on a GPU as one launch list and one CUDA graph: the updates are the last steps of the last region."""
import contextlib
import threading
from unittest.mock import patch

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer import optimizer_hooks, optimizers
from cupy_double import on_double

from dy2static import config, to_static
from dy2static.backends.cuda.launches import ending
from dy2static.backends.cuda.launches.updates import STORE
from dy2static.backends.registry import OF_LIBRARY
from dy2static.native import nvrtc
from dy2static.native.emulated import missing
from dy2static.native.launcher import Failure

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

cupy = chainer.backends.cuda.cupy


def step(model, optimizer, x, t):
    loss = F.softmax_cross_entropy(model(x), t)
    model.cleargrads()
    loss.backward()
    optimizer.update()
    return loss


class Convolutional(chainer.Chain):
    """The gradient of a bias is a view of what the region gives.  One Link is not used: its gradients are None."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first, self.last, self.unused = L.Convolution2D(6, 5, 1), L.Linear(5, 4), L.Linear(3, 3)

    def __call__(self, x):
        return self.last(F.relu(self.first(x[:, :, None, None])))


class Recurrent(chainer.Chain):
    """Indices, a state that the model keeps, and running means: nothing of that can fail on a GPU, or ends a region."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.words, self.memory = L.EmbedID(7, 6), L.LSTM(6, 8)
            self.norm, self.last = L.BatchNormalization(8), L.Linear(8, 4)

    def __call__(self, x):
        self.memory.reset_state()
        for k in range(2):
            h = self.memory(self.words((x[:, k] * 7).astype("i")))
        return self.last(self.norm(h))


class Training:
    """A model of two layers, its optimizer, batches on the device, and the compiled step."""

    def __init__(self, optimizer=optimizers.MomentumSGD, hook=None, model=None, static=None):
        np.random.seed(0)
        self.model = model() if model else chainer.Sequential(L.Linear(6, 16), F.tanh, L.Linear(16, 4))
        self.model.to_device("@cupy:0")
        self.optimizer = optimizer().setup(self.model)
        if hook is not None:
            self.optimizer.add_hook(hook)
        random = np.random.RandomState(1)
        self.batches = [chainer.get_device("@cupy:0").send((random.rand(10, 6).astype("f"), random.randint(0, 4, 10).astype("i")))
                        for _ in range(4)]
        self.static, self.losses = to_static(step, backend="c", strict=True) if static is None else static, []

    def run(self, count):
        """Some steps, each on another batch."""
        for _ in range(count):
            loss = self.static(self.model, self.optimizer, *self.batches[len(self.losses) % 4])
            self.losses.append(loss.array.get())
        return self

    @property
    def state(self):
        """The bytes of all that the steps have made."""
        arrays = [x for p in self.model.params() for x in (p.array, p.grad, *[v for _, v in sorted((p.update_rule.state or {}).items())])]
        return [None if x is None else x.get().tobytes() for x in arrays if not np.isscalar(x)], np.array(self.losses).tobytes()


@contextlib.contextmanager
def joined(works=True):
    """Gives a list of the endings that programs get in its block.  works: whether they launch the updates together with a region."""
    found, join = [], ending.Ending.join

    def noted(self, *args):
        found.append(self)
        join(self, *args)
    with patch.object(ending.Ending, "join", noted):
        if works:
            yield found
        else:
            with patch.object(ending.Ending, "_together", lambda self, waiting, operands: False):
                yield found


def compare(changes=(), count=5, **options):
    """Steps leave the same bits where updates are launched alone.  changes: done with the training after as many steps each."""
    states = []
    for works in (False, True):
        with joined(works) as found:
            training = Training(**options).run(count)
            for change in changes:
                change(training)
                training.run(count)
        states.append(training.state)
        assert found
    assert states[0] == states[1]
    return training


def decayed_weights():
    """Two forms of updates: weights have a hook of their own, biases have none."""
    optimizer = optimizers.Adam()
    setup = optimizer.setup

    def set_up(model):
        setup(model)
        for name, p in model.namedparams():
            if name.endswith("W"):
                p.update_rule.add_hook(optimizer_hooks.WeightDecay(0.1))
        return optimizer
    optimizer.setup = set_up
    return optimizer


@pytest.mark.parametrize("options", [
    {"optimizer": optimizers.SGD}, {"optimizer": optimizers.Adam}, {"optimizer": decayed_weights},
    {"optimizer": optimizers.AdamW, "hook": optimizer_hooks.WeightDecay(0.1)}, {"hook": optimizer_hooks.GradientClipping(0.1)},
    {"model": Convolutional}, {"model": Recurrent}],
    ids=["SGD", "Adam", "two forms", "weight decay", "clipping", "views and no gradients", "state"])
@on_double
def test_the_same_bits_as_launched_alone(options):
    compare(**options)


@on_double
def test_a_step_is_one_launch():
    """After the first steps, a step is one replay of a graph: nothing is launched or copied from Python."""
    device = OF_LIBRARY["cupy", True].device(0)
    with joined() as found:
        training = Training(optimizers.Adam).run(4)

    def refuse(*args):
        raise AssertionError("launched from Python")
    whole = found[-1]._whole.region
    before = whole.counts
    with patch.object(device, "launch", refuse), patch.object(device, "upload", refuse):
        training.run(8)
    after = whole.counts
    assert after.plain + after.replayed == before.plain + before.replayed + 8 and after.failures == 0
    assert after.replayed >= before.replayed + 4, (before, after)           # NumPy's memory does not always come again


@on_double
def test_what_cannot_fail_on_a_gpu_ends_no_region():
    with joined() as found:
        training = Training(model=Recurrent).run(3)
    program = training.static.dispatcher.programs[0]
    assert found and program.source.count("native(") == 1 and "native_1(" not in program.source and "host_call" not in program.source


def new_rate(training):
    training.optimizer.hyperparam.lr = training.optimizer.hyperparam.lr * 0.5


def moved(training):
    for p in training.model.params():
        p.array = p.array.copy()


def turned(training):
    """A parameter that is not contiguous."""
    p = training.model[0].W
    p.array = cupy.array(p.array.T.copy()).T
    assert not p.array.flags.c_contiguous


@pytest.mark.parametrize("change", [new_rate, moved, turned])
@on_double
def test_what_changes_between_steps(change):
    compare([change] * 3, count=3)


@on_double
def test_tables_of_several_steps():
    with patch.object(ending, "MOST_WORDS", 7):
        compare(optimizer=optimizers.Adam)


@pytest.mark.parametrize("most", [1, 4, 5, 6, 11, 12])
def test_the_words_of_a_table(most):
    constants, given = [10, 11, 12, 13, 14], [0, 1, 0, 2, 3, 4]
    with patch.object(ending, "MOST_WORDS", most):
        steps = ending._stored(7, constants, given)
    table = [None] * 11
    for one in steps:
        assert one.pointer == 7 and len(one.constants) + len(one.words) <= most
        part = [*one.constants, *one.words]
        table[one.begin:one.begin + len(part)] = part
    assert table == constants + given


@on_double
def test_without_graphs():
    with config.GPU_GRAPHS.set(0):
        training = compare()
    assert training.static.stats()["fallbacks"] == 0


@on_double
def test_streams():
    """Steps on two streams in turns, each of which waits for the other, as users have to write it."""
    def on_streams(training):
        streams = [cupy.cuda.Stream() for _ in range(2)]
        for _ in range(4):
            for stream in streams:
                with stream:
                    training.run(1)
                stream.synchronize()
    compare([on_streams])


@on_double
def test_threads():
    """Two models, one program: each thread has a region of its own that waits."""
    first = Training()
    trainings = [first, Training(static=first.static)]
    first.run(3)
    trainings[1].run(3)
    threads = [threading.Thread(target=training.run, args=(4,)) for training in trainings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert trainings[0].state == trainings[1].state == Training().run(7).state


@on_double
def test_a_step_inside_of_a_step():
    """A destructor may run a step while another one waits for its updates: that is launched first."""
    inner = Training(optimizers.SGD).run(4)
    defer, nested = ending.Ending.defer, []

    def deferring(self, addresses, held):
        defer(self, addresses, held)
        if not nested:
            nested.append(True)
            inner.run(1)
    with patch.object(ending.Ending, "defer", deferring):
        outer = Training(optimizers.SGD)
        inner.static = outer.static
        outer.run(5)
    assert nested and outer.state == inner.state == Training(optimizers.SGD).run(5).state


@on_double
def test_a_step_that_ends_before_its_update():
    """What a region gives is there, though nothing is updated: here an interrupt comes in between."""
    training, expected = Training(optimizers.SGD), Training(optimizers.SGD).run(3)

    def interrupt(self, *operands):
        raise KeyboardInterrupt
    training.run(2)
    before = [p.array.get() for p in training.model.params()]
    with patch.object(ending.Ending, "update", interrupt), pytest.raises(KeyboardInterrupt):
        interrupted = Training(optimizers.SGD, static=to_static(step, backend="c", strict=True))
        interrupted.model.copyparams(training.model)
        interrupted.static(interrupted.model, interrupted.optimizer, *training.batches[2])
    for p, old, other in zip(interrupted.model.params(), before, expected.model.params()):
        np.testing.assert_array_equal(p.array.get(), old)
        np.testing.assert_allclose(p.grad.get(), (old - other.array.get()) / 0.01, rtol=1e-3, atol=1e-5)


@pytest.mark.stand_in("the emulated driver fails where a test wants it")
@pytest.mark.parametrize("helps", [True, False])
@on_double
def test_short_memory(helps):
    """Where the driver has no memory for the launch, CuPy's pool is emptied; where that does not help, nothing is updated."""
    device, empty = OF_LIBRARY["cupy", True].device(0), cupy.memory.free_all_blocks
    expected = Training().run(6).state
    training = Training().run(5)
    arrays = [p.array.get() for p in training.model.params()]

    def free_all_blocks(stream=None):
        empty()
        device.state.launch_status = device.state.graph_status = 0
    device.state.launch_status = device.state.graph_status = 2
    try:
        with patch.object(cupy.memory, "free_all_blocks", free_all_blocks if helps else empty):
            if helps:
                training.run(1)
            else:
                with pytest.raises(cupy.cuda.driver.CUDADriverError, match="CUDA_ERROR_2"):
                    training.run(1)
    finally:
        device.state.launch_status = device.state.graph_status = 0
    if helps:
        assert training.state == expected
    else:
        assert all(np.array_equal(p.array.get(), old) for p, old in zip(training.model.params(), arrays))


@on_double
def test_an_update_that_fails_is_an_error():
    """What has been launched before it is not launched again."""
    with joined() as found:
        training = Training().run(5)
    last = found[-1]
    failure = Failure("driver", 700, last._first + 1)
    with patch.object(last._whole, "region", lambda place, addresses: failure):
        with pytest.raises(cupy.cuda.driver.CUDADriverError) as error:
            training.run(1)
    assert "update_" in str(error.value.__cause__) and last._local.waiting is None
    training.run(1)


def test_the_kernel_that_stores_tables():
    """It reads its arguments where they are: they are not copied to memory of the thread."""
    if not nvrtc.available():
        pytest.skip("there is no NVRTC")
    for architecture in ("sm_75", "sm_90"):
        log = nvrtc.machine_code("typedef long long int64_t;\n" + STORE.text, architecture, ["--ptxas-options=-v"]).log
        assert "0 bytes stack frame, 0 bytes spill stores" in log, log
