"""`Executor`: what it is given and what it gives; places."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

import dy2static
from dy2static import CPUPlace, CUDAPlace, Executor, InputSpec, to_static


def x_(*shape):
    return np.arange(1, 1 + np.prod(shape or (2, 3)), dtype=np.float32).reshape(shape or (2, 3))


class Net(chainer.Chain):
    """Gives a dict; decides by values and drops units in training."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(3, 4)

    @to_static(strict=True, input_spec=[InputSpec([None, 3], name="image"), InputSpec([None, 4], name="bias")])
    def forward(self, x, bias):
        h = F.relu(self.l(x)) + bias
        if float(F.sum(h).array) > 1000:
            h = h * 2
        return {"h": h, "total": F.sum(h), "number": float(F.max(h).array)}


@pytest.fixture
def net():
    found = Net()
    found(x_(), x_(2, 4))
    return found


def eager(net, x, bias):
    return net.forward.python_function(x, bias)


def test_run():
    net = Net()
    net.forward.clear_cache()                   # of the class: other tests share it
    net(x_(), x_(2, 4))
    before = net.forward.cache_info().captures
    exe = Executor(CPUPlace())
    program = net.forward.main_program
    for x, bias in ((x_(), x_(2, 4)), (x_(5, 3), x_(5, 4) * 100)):
        expected = eager(net, x, bias)
        h, total, number = exe.run(program, feed={"image": x, "bias": bias})
        assert type(h) is type(total) is type(number) is np.ndarray
        np.testing.assert_allclose(h, expected["h"].array, 1e-6)
        np.testing.assert_allclose(total, expected["total"].array, 1e-6)
        np.testing.assert_allclose(number, expected["number"], 1e-6)
    assert net.forward.cache_info().captures == before + 1, "to train, and without graph"


FETCHED = {
    "all": (None, ["h", "total", "number"]),
    "all targets": (lambda outputs: outputs, ["h", "total", "number"]),
    "a target": (lambda outputs: outputs[1], ["total"]),
    "a name": (lambda outputs: "total", ["total"]),
    "names and targets": (lambda outputs: ["number", outputs[0], "h"], ["number", "h", "h"]),
    "nothing": (lambda outputs: [], []),
}


@pytest.mark.parametrize("case", FETCHED)
def test_fetch_list(net, case):
    fetch, names = FETCHED[case]
    expected = eager(net, x_(), x_(2, 4))
    fetch = None if fetch is None else fetch(net.forward.outputs)
    found = Executor().run(net.forward.main_program, {"image": x_(), "bias": x_(2, 4)}, fetch)
    assert len(found) == len(names)
    for mine, name in zip(found, names):
        np.testing.assert_allclose(mine, F.identity(np.asarray(getattr(expected[name], "array", expected[name]))).array, 1e-6)


FED = {
    "arrays": lambda x: x,
    "Variables": chainer.Variable,
    "lists": lambda x: x.tolist(),
    "tuples": lambda x: tuple(map(tuple, x)),
}


@pytest.mark.parametrize("case", FED)
def test_feed(net, case):
    expected = eager(net, x_(), x_(2, 4))
    h, = Executor("cpu").run(net.forward, {"image": FED[case](x_()), "bias": FED[case](x_(2, 4))}, "h")
    np.testing.assert_allclose(h, expected["h"].array, 1e-6)
    assert h.dtype == np.float32


def test_variables_have_no_graph(net):
    found = Executor().run(net.forward, {"image": x_(), "bias": chainer.Variable(x_(2, 4))}, return_numpy=False)
    assert all(isinstance(y, chainer.Variable) and y.creator is None for y in found)


WRONG = {
    "nothing fed": (lambda exe, net: exe.run(net.forward), "'image' and 'bias' are not fed"),
    "one not fed": (lambda exe, net: exe.run(net.forward, {"bias": x_()}), "'image' is not fed"),
    "unknown input": (lambda exe, net: exe.run(net.forward, {"x": x_()}), "no input 'x'[^$]*there are image, bias"),
    "unknown result": (lambda exe, net: exe.run(net.forward, {"image": x_(), "bias": x_(2, 4)}, ["y"]),
                       "no result 'y'[^$]*there are h, total, number"),
    "no program": (lambda exe, net: exe.run(net, {"image": x_()}), "runs programs, not Net"),
    "another dtype": (lambda exe, net: exe.run(net.forward, {"image": x_().astype("d"), "bias": x_(2, 4)}), "x is float64"),
    "closed": (lambda exe, net: (exe.close(), exe.run(net.forward)), "has been closed"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong(net, case):
    call, message = WRONG[case]
    with pytest.raises(dy2static.Dy2StaticError, match=message):
        call(Executor(), net)


def test_places():
    assert CPUPlace() == CPUPlace() != CUDAPlace(0) == CUDAPlace(0) != CUDAPlace(1)
    assert len({CPUPlace(), CPUPlace(), CUDAPlace(0), CUDAPlace(1), CUDAPlace(1)}) == 3
    assert [repr(Executor(place)) for place in (None, "cpu", CPUPlace())] == ["Executor(CPUPlace())"] * 3
    for gpu in (CUDAPlace(0), "gpu", "gpu:0"):
        with pytest.raises(dy2static.errors.BackendError, match=r"CUDAPlace\(0\): programs run on the processor"):
            Executor(gpu)
    for unknown in ("tpu", "gpu:x", 3):
        with pytest.raises(dy2static.Dy2StaticError, match="a place is CPUPlace"):
            Executor(unknown)
