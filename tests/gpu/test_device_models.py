"""Models train with emulated kernels as they do eagerly: forward, backward, and the memory of whole programs."""
import chainer.functions as F
import numpy as np
import pytest
from models.training import train
from models.zoo import ZOO

import dy2static
from dy2static.backends.cuda.backend import CudaBackend
from dy2static.backends.cuda.emit import write
from dy2static.backends.cuda.program import Launch
from dy2static.backends.registry import BACKENDS, register
from dy2static.ir.building import Builder, building
from dy2static.ir.op import OPS
from dy2static.ir.types import Tensor
from dy2static.native.emulated import EmulatedDevice, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

#: Models that are emulated in a few seconds, and how many of their launches are kernels, at least.
MODELS = {"MLP": 20, "VAE": 40, "MAML: two inner steps, second order": 60, "CNN: batch normalisation, dropout": 100}


class EmulatedBackend(CudaBackend):
    """The CUDA backend under a name that `to_static` knows."""

    name = "emulated"


@pytest.fixture
def backend(monkeypatch):
    """The emulated backend, by its name."""
    monkeypatch.setattr(dy2static.config, "BACKENDS", list(dy2static.config.BACKENDS))
    made = EmulatedBackend(EmulatedDevice(order=2))
    register(made)
    yield made
    del BACKENDS[made.name]


@pytest.mark.parametrize("name", MODELS)
def test_model(name, backend):
    report = train(ZOO[name]._replace(steps=2, warm=1), backend="emulated")
    assert not report.problems, "\n".join(report.problems[:5])
    assert backend.device.launched >= MODELS[name]


def test_memory_is_used_again_and_views_are_read_where_they_are(backend):
    """A chain of row sums whose results die one after the other, turned operands, and a result that is an input."""
    def function(x, w):
        y = x
        for _ in range(4):
            y = F.softmax(F.matmul(y, w, transb=True)) + F.broadcast_to(F.sum(y, axis=0), y.shape)
        return y, F.transpose(y)[2:5, ::2], x

    x, w = (np.random.RandomState(0).rand(40, 40).astype(np.float32) for _ in range(2))
    fast = dy2static.to_static(function, backend="emulated", strict=True)
    for _ in range(2):
        for one, other in zip(fast(x, w), function(x, w)):
            np.testing.assert_allclose(getattr(one, "array", one), getattr(other, "array", other), rtol=2e-5)
    assert sum(text.count("__global__") for text in backend.device.texts) < backend.device.launched
    assert backend.device.products


def test_sums_by_many_blocks_are_added_up_in_their_order():
    builder = Builder("columns")
    x = builder.input(Tensor((5000, 64), np.dtype("float32")), "x")
    with building(builder):
        graph = builder.build(builder.add(OPS["sum"], (x,), {"axis": 0}))
    function = write(graph)
    first, second = function.steps
    assert isinstance(first, Launch) and first.blocks > 100 and second.blocks == 1
    assert "atomic" not in first.kernel + "".join(kernel.text for kernel in function.kernels)


@pytest.mark.parametrize("shape, type", [((1 << 16, 1 << 13), "int"), ((1 << 16, 1 << 14), "int64_t")], ids=str)
@pytest.mark.parametrize("op, attrs", [("exp", {}), ("sum", {"axis": 1}), ("sum", {"axis": 0})], ids=str)
def test_indices_are_wide_where_there_are_many_elements(op, attrs, shape, type):
    builder = Builder("large")
    x = builder.input(Tensor(shape, np.dtype("float32")), "x")
    with building(builder):
        graph = builder.build(builder.add(OPS[op], (x,), attrs))
    assert f"    const {type} " in write(graph).kernels[0].text
