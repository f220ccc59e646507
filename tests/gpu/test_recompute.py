"""Elementwise values that kernels compute again in place of loading them: which ones, and the bits stay the same."""
import re

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer import optimizers
from cupy_double import on_double
from emulated_graphs import array, case, results

from dy2static import ops, to_static
from dy2static.backends.cuda.launches.region import DeviceRegion
from dy2static.backends.cuda.nests.parallel import at_once
from dy2static.backends.cuda.program.steps import Finished
from dy2static.backends.loops import recompute
from dy2static.backends.loops.groups import Group
from dy2static.backends.registry import OF_LIBRARY
from dy2static.check_gpu.samples import kernels_of
from dy2static.ir.building import Builder, building
from dy2static.ir.dims import Dim
from dy2static.ir.graph import Value
from dy2static.ir.op import OPS
from dy2static.ir.types import Tensor
from dy2static.native import nvrtc
from dy2static.native.device_kernels import text_of
from dy2static.native.emulated import missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

NEVER = 1 << 60


def times(x, w):
    return OPS["matmul"](x, w, transa=False, transb=False)


def activation(x, w, b):
    """As a GELU between two products, forward and backward."""
    y = x + b
    half, bent = y * 0.5, ops.tanh(y * 0.8) + 1.0
    z = times(half * bent, w)
    return z, z * bent + half * (bent * bent) * 0.8


def loss(x, w, b):
    """As cross entropy: exponentials of what is a result in any case, and a number for each row."""
    y = x + b
    shifted = y - ops.max(y, axis=(1,), keepdims=True)
    logarithms = shifted - ops.log(ops.sum(ops.exp(shifted), axis=(1,), keepdims=True))
    shares = ops.exp(logarithms)
    return logarithms, ops.sum(shares * shares, axis=(1,)), times(logarithms, w) * (shares - b)


def normalized(x, w, b):
    """The backward reads rows twice: what it computes again is there in both sweeps."""
    away = x - ops.mean(x, axis=(1,), keepdims=True)
    scale = 1.0 / ops.sqrt(ops.mean(away * away, axis=(1,), keepdims=True) + 0.1)
    z = times(away * scale * b, w)
    return z, (z - away * scale * ops.mean(z * (away * scale), axis=(1,), keepdims=True)) * scale, ops.sum(z * away, axis=(0,))


def reshaped(x, w, b):
    """The backward has another shape; one operand is repeated."""
    y = ops.tanh(x) * b
    z = ops.reshape(times(y * y, w), shape=(2, 4, 8))
    return z * (1.0 + ops.reshape(y, shape=(2, 4, 8))) - ops.reshape(y * 2.0, shape=(2, 4, 8))


def parts(x, w, b):
    """As gates: parts of a product."""
    y = times(x, w) + b
    left, right = ops.split(y, sizes=(4, 4), axis=1)
    one, two = ops.sigmoid(left), ops.tanh(right)
    z = times(times(one * two, ops.getitem(w, index=(slice(4), slice(8)))), ops.getitem(w, index=(slice(8), slice(4))))
    return z * one * (1.0 - one), z * (1.0 - two * two)


def several(x, w, b):
    """Two later nests read one value, and all can do without."""
    y = ops.relu(x * b + 0.5)
    z = times(x, w)
    first = times(z * y, w)
    return first * (y * y), z - y


#: Functions of which kernels compute something again.
AGAIN = (activation, loss, normalized, reshaped, parts, several)


def cases(functions, dtype, monkeypatch):
    """Cases with values that are computed again, and without."""
    found = []
    monkeypatch.setattr(recompute, "_FULL", 1)                     # these are small
    for least in (1, NEVER):
        monkeypatch.setattr(recompute, "_LEAST", least)
        found += [case(function, array(8, 8, dtype=dtype), array(8, 8, dtype=dtype, seed=1), array(8, dtype=dtype, seed=2))
                  for function in functions]
    return found


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_the_bits_stay_the_same_and_less_memory_is_needed(dtype, monkeypatch):
    found = cases(AGAIN, dtype, monkeypatch)
    given = results(found)
    for function, one, other, new, old in zip(AGAIN, found, found[len(AGAIN):], given, given[len(AGAIN):]):
        assert [x.tobytes() for x in new] == [x.tobytes() for x in old], function.__name__
        is_same = function is loss and dtype != "float32"          # exponentials take as long as the load
        assert is_same == ((arguments(one), one.region.scratch) == (arguments(other), other.region.scratch)), function.__name__
        assert arguments(one) <= arguments(other), function.__name__
        assert one.region.scratch <= other.region.scratch, function.__name__


def arguments(one):
    """How many arrays the kernels of a case load and store."""
    return len(re.findall(r"\bp\d+[,)]", "".join(re.findall(r"__global__.*", one.text))))


def losses(rows, columns):
    """The text of something like a cross entropy and the gradient of a bias, which sums columns."""
    def function(x, w):
        logarithms = x - ops.log(ops.sum(ops.exp(x), axis=(1,), keepdims=True))
        shares = ops.exp(logarithms)
        return logarithms, ops.sum(shares * shares, axis=(1,)), ops.sum(times(logarithms, w) * shares, axis=(0,))
    builder = Builder("losses")
    inputs = [builder.input(Tensor((size, columns), np.dtype("float32")), name) for size, name in ((rows, "x"), (columns, "w"))]
    with building(builder):
        return text_of(list(DeviceRegion(builder.build(function(*inputs))).function.kernels))


@pytest.mark.parametrize("rows, columns, full, are_again", [(20, 10000, recompute._FULL, False), (20, 10000, 1, True),
                                                            (2048, 8000, recompute._FULL, True)])
def test_exponentials_are_loaded_where_a_kernel_has_few_threads(rows, columns, full, are_again, monkeypatch):
    """A sum of 20 rows is one thread's for each column: nothing hides how long an exponential takes."""
    monkeypatch.setattr(recompute, "_FULL", full)
    found = losses(rows, columns)
    monkeypatch.setattr(recompute, "_LEAST", NEVER)
    assert (found != losses(rows, columns)) == are_again


def group(shape, split=None, rows=(), totals=()):
    values = [[Value(Tensor(shape, np.dtype("float32")), "v") for shape in shapes] for shapes in (rows, totals)]
    return Group(shape, split=split, rows=set(values[0]), totals=set(values[1]))


@pytest.mark.parametrize("one, expected", [
    (group((20, 650)), 13000), (group((Dim("n"), 8)), 256 * 8),
    (group((20, 10000), 1, [(20,)]), 4 * 20 * 1024), (group((64, 100), 1, [(64,)]), 6400), (group((2, 1 << 20), 1, [(2,)]), 4 * 264 * 256),
    (group((20, 10000), totals=[(10000,)]), 10000), (group((4096, 32), totals=[(32,)]), 8192), (group((1 << 14, 1 << 10), totals=[()]), 1 << 18),
    (group((4096, 256), 1, [(4096,)], [(256,)]), 4 * 528 * 64), (group((64, 100), totals=[(64, 1), (100,)]), 6400)])
def test_how_many_elements_are_computed_at_once(one, expected):
    assert at_once(one) == expected


def transposed(x, w, b):
    """Not element by element."""
    y = ops.tanh(x)
    return times(y * 2.0, w) * ops.transpose(y, axes=(1, 0))


def dear(x, w, b):
    """What is loaded in any case is not made again by functions that take longer than the load."""
    return times(ops.tanh(ops.exp(ops.sin(x))), w) * ops.tanh(ops.exp(ops.sin(x)))


def reductions(x, w, b):
    y = ops.sum(x, axis=(0,))
    return times(x * y, w) * y


@pytest.mark.parametrize("function", [transposed, dear, reductions])
def test_what_is_loaded_as_before(function, monkeypatch):
    one, other = cases([function], "float32", monkeypatch)
    assert one.text == other.text


def test_a_product_is_not_finished_if_a_kernel_reads_it(monkeypatch):
    """After what follows from the sum is computed again, only the sum follows the product; but its own values are read."""
    def function(x, w, b):
        y = times(x, w) + b
        half = y * 0.5
        return times(y, w) * half * (half + 1.0), y

    found = cases([function], "float32", monkeypatch)
    new, old = results(found)
    assert [x.tobytes() for x in new] == [x.tobytes() for x in old]


def test_products_that_only_now_are_finished(monkeypatch):
    """The square is computed where it is read, so that only the bias and ReLU follow the product.  The sum is in no memory then."""
    def function(x, w, b):
        y = ops.relu(times(x, w) + b)
        return times(y, w) * (y * y)
    found = cases([function], "float32", monkeypatch)
    assert [sum(isinstance(step, Finished) for step in one.region.function.steps) for one in found] == [1, 0]
    new, old = results(found)
    assert new[0].tobytes() == old[0].tobytes()


class Norms(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first, self.norm, self.last = L.Linear(6, 32), L.LayerNormalization(32), L.Linear(32, 4)
            self.batch = L.BatchNormalization(32)

    def __call__(self, x):
        h = self.norm(self.first(x))
        h = h * F.sigmoid(h) + F.relu(self.batch(h))
        return self.last(F.dropout(h, 0.3))


def trained(least, monkeypatch):
    """Losses and parameters of three whole steps, and the bytes of working memory."""
    monkeypatch.setattr(recompute, "_LEAST", least)
    monkeypatch.setattr(recompute, "_FULL", 1)
    np.random.seed(0)
    chainer.backends.cuda.cupy.random.seed(0)
    model = Norms()
    model.to_device("@cupy:0")
    optimizer = optimizers.Adam(alpha=0.01).setup(model)

    def step(x, t):
        loss = F.softmax_cross_entropy(model(x), t)
        model.cleargrads()
        loss.backward()
        optimizer.update()
        return loss
    compiled = to_static(step, backend="c")
    x = chainer.backends.cuda.to_gpu(array(16, 6))
    t = chainer.backends.cuda.to_gpu(np.arange(16, dtype=np.int32) % 4)
    losses = [compiled(x, t).array.get() for _ in range(3)]
    return losses + [param.array.get() for _, param in sorted(model.namedparams())]


@on_double
def test_whole_steps_have_the_same_bits(monkeypatch):
    assert OF_LIBRARY
    new, old = trained(1, monkeypatch), trained(NEVER, monkeypatch)
    assert [x.tobytes() for x in new] == [x.tobytes() for x in old]


@pytest.mark.skipif(not nvrtc.available(), reason="there is no NVRTC (python -m pip install nvidia-cuda-nvrtc)")
def test_registers(monkeypatch):
    """Nothing is spilled to memory."""
    monkeypatch.setattr(recompute, "_LEAST", 1)
    text = text_of(kernels_of([case(function, array(64, 256), array(256, 256), array(256)) for function in (normalized, activation)]))
    log = nvrtc.machine_code(text, "sm_90", ["--ptxas-options=-v"]).log
    assert set(re.findall(r"(\d+) bytes spill stores", log)) == {"0"}
    assert max(map(int, re.findall(r"Used (\d+) registers", log))) <= 64
