"""Devices and converters: on the CPU, sending does nothing, and batches are put together inside compiled functions."""
import warnings
from unittest import mock

import against_eager
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array
from chainer.backends import cuda

from dy2static import to_static

DEVICE = chainer.get_device("@numpy")


class Model(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(4, 2)
            self.norm = L.BatchNormalization(2)


class Doubling(chainer.backend.CpuDevice):
    """A device of the user's."""

    def send_array(self, array):
        return array * 2


class Stacking(chainer.dataset.Converter):
    """A converter of the user's."""

    def __call__(self, batch, device):
        return device.send(np.stack(batch))


DOUBLING, STACKING = Doubling(), Stacking()


@chainer.dataset.converter()
def converted(batch, device):
    return {"xs": [chainer.dataset.to_device(device, row) for row in batch], "device": device}


def made_here(m, x):
    device = chainer.get_device("@numpy")
    m.device_of_x = chainer.backend.get_device_from_array(x)
    same = device == m.device_of_x, device is chainer.get_device(device), type(device) is chainer.backend.CpuDevice
    return m.l(device.send(x)), device, same, str(device), chainer.get_device(-1).xp is np, repr({device: 1})


def of_links(m, x):
    xp = m.xp if m.xp is np else None
    with chainer.using_device(m.device), chainer.using_config("train", False), chainer.no_backprop_mode():
        h = m.l(xp.tanh(x))
    return h, m.device, m.device is m.l.device, m.l.xp is np, m.device == DEVICE, f"{DEVICE}", m.device.is_array_supported(x)


def of_variables(m, x):
    h = m.l(x)
    h.to_device(DEVICE)
    m.kept = m.l.W.device
    return h * h.xp.float32(2), h.device is DEVICE, h.device, m.kept is m.l.W.device, chainer.Variable(x).device == m.kept


def nothing_to_do(m, x):
    v = chainer.Variable(x)
    v.to_cpu()
    m.l.W.to_device("@numpy")
    DEVICE.use()
    same = m.to_device("@numpy") is m, m.l.device is m.device
    y = m.norm(m.l(cuda.to_cpu(v.array)))
    m.norm.to_device(DEVICE)
    return y, same, cuda.to_cpu((x, None)), backend_of(y)


def backend_of(y):
    return cuda.get_array_module(y) is np and chainer.backend.get_array_module(y.array) is np


def sent(m, x):
    made = DEVICE.send([x, x, None, x * 2])
    return made, made[0] is x, DEVICE.send(x[0, 0]), DEVICE.send(2), chainer.dataset.to_device(None, 1.5), m.l(DOUBLING.send(x))


def deprecated(m, x):
    return m.to_cpu().l(x)


def states(m, x):
    m.lstm.set_state(chainer.Variable(x), chainer.Variable(x * 2))
    return m.lstm(x), m.lstm.h


def tuples(m, x):
    xs, ts = chainer.dataset.concat_examples([(row, i) for i, row in enumerate(x)], DEVICE)
    return m.l(xs), ts, chainer.dataset.concat_examples([([1, 2], 1.5), ([3, 4], 2.5)])


def dicts(m, x):
    found = chainer.dataset.concat_examples([{"x": row, "t": row.sum()} for row in x], device=-1)
    return m.l(found["x"]), found


def padded(m, x):
    xs, ts = chainer.dataset.concat_examples([(x[:1], x[0, 1:]), (x[:2, :2], x[1])], "@numpy", padding=(0, -1))
    return m.l(xs[0]), ts, chainer.dataset.concat_examples([x[0, :1], x[1]], padding=float(x[0, 0]))


def own_converters(m, x):
    found = converted(list(x), -1)
    old = chainer.dataset.convert._call_converter(lambda batch, device: (device, batch[0]), list(x), DEVICE)
    return m.l(F.stack(found["xs"])), found["device"], m.l(STACKING(list(x), DEVICE)), old, STACKING(list(x), DOUBLING)


PROGRAMS = (made_here, of_links, of_variables, nothing_to_do, sent, tuples, dicts, padded, own_converters)


@pytest.mark.parametrize("program, backend", [*((program, "numpy") for program in PROGRAMS), (padded, "c")],
                         ids=lambda item: getattr(item, "__name__", item))
def test_devices(program, backend):
    def make(compile):
        model = Model()
        return compile(lambda x: program(model, x)), model
    calls = [lambda: (array(3, 4),), lambda: (array(3, 4, seed=1),)]
    against_eager.check(make, calls, strict=True, compiled=True, backend=backend)


def test_states_of_links_are_set():
    def make(compile):
        model = Model()
        model.add_link("lstm", L.LSTM(4, 4))
        return compile(lambda x: states(model, x)), model
    against_eager.check(make, [lambda: (array(3, 4),)], strict=True, compiled=True, backend="numpy")


def test_each_call_warns_of_what_is_deprecated():
    function, model, x = to_static(deprecated, strict=True, backend="numpy"), Model(), array(3, 4)
    for _ in range(3):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            function(model, x)
        assert [str(w.message) for w in said] == ["to_cpu is deprecated. Please use to_device('@numpy') instead."]
    assert function.stats()["fallbacks"] == 0


def test_devices_in_arguments_share_a_program():
    function = to_static(lambda device, x: F.tanh(device.send(x)), strict=True, backend="numpy")
    for _ in range(4):
        function(chainer.get_device("@numpy"), array(3))
    assert function.stats()["captures"] == 1


def concatenated(x):
    return chainer.dataset.concat_examples([(x, 1), (x, 2)], DEVICE)


@pytest.mark.parametrize("name, made", (
    ("dataset.concat_examples", lambda batch, device: batch), ("dataset.convert.to_device", lambda device, x: x * 0),
    ("backends._cpu.CpuDevice.send_array", lambda device, x: x * 3),
    ("dataset.concat_examples.base_callable", lambda batch, device: device)))
def test_what_is_replaced_is_noticed(name, made):
    function, x = to_static(concatenated, strict=True, backend="numpy"), array(3)
    for _ in range(2):
        assert repr(function(x)) == repr(concatenated(x))
        with mock.patch(f"chainer.{name}", made):
            assert repr(function(x)) == repr(concatenated(x))


@pytest.mark.parametrize("what", (lambda x: DEVICE.send("text"), lambda x: DEVICE.send(F.tanh(x)),
                                  lambda x: chainer.dataset.concat_examples([x[:1], x], padding=0),
                                  lambda x: chainer.dataset.concat_examples([]), lambda x: chainer.get_device("@other")))
def test_what_fails(what):
    against_eager.check(lambda compile: compile(what), [lambda: (array(3),)], backend="numpy")
