"""Convolutions with one window, which is the whole image: products in native code, with the numbers of eager mode."""
import chainer
import chainer.functions as F
import numpy as np
import pytest
from random_graphs import arrays, build

from dy2static import ops, to_static
from dy2static.ir.interpret import interpret
from dy2static.native import compiler
from dy2static.passes.whole_windows import products_of_whole_windows

pytestmark = pytest.mark.any_python

ONE = {"stride": (3, 1), "pad": (0, 0), "dilate": (1, 1)}


def convolution(x, W, groups=1, **attrs):
    y = ops.conv(x, W, size=(1, 1), groups=groups, **{**ONE, **attrs})
    return y, ops.conv_grad_weight(x, y, size=(2, 4), groups=groups, **ONE), ops.conv_transpose(y, W, size=(2, 4), groups=groups, **ONE)


@pytest.mark.parametrize("channels, filters, groups, made", [(3, (5, 3, 2, 4), 1, "matmul"), (3, (3, 1, 2, 4), 3, "mul")])
def test_graphs(channels, filters, groups, made):
    graph = build(lambda x, W: convolution(x, W, groups), (2, channels, 2, 4), filters)
    after = products_of_whole_windows(graph)
    names = [node.op.name for node in after.nodes]
    assert names.count(made) == 3 and not any(name.startswith("conv") for name in names)
    assert after.outputs == graph.outputs
    inputs = arrays(graph)
    for a, b in zip(interpret(graph, *inputs), interpret(after, *inputs)):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("image, filters, attrs", [
    ((2, 5), (5, 3, 2, 4), {}), ((2, 4), (5, 3, 2, 4), {"pad": (0, 1), "stride": (3, 3)}), ((3, 4), (5, 3, 2, 4), {"dilate": (2, 1)})], ids=["larger image", "padding", "between taps"])
def test_others_stay(image, filters, attrs):
    graph = build(lambda x, W: ops.conv(x, W, size=(1, 1), groups=1, **{**ONE, "stride": (3, 3), **attrs}), (2, 3, *image), filters)
    assert products_of_whole_windows(graph) is graph


def test_images_of_one_place_are_rows():
    graph = build(lambda x, W: ops.conv(x, W, size=(1, 1)), (4, 3, 1, 1), (5, 3, 1, 1))
    after = products_of_whole_windows(graph)
    assert [node.op.name for node in after.nodes] == ["reshape", "reshape", "matmul", "reshape"]
    (found,), (wanted,) = interpret(after, *arrays(graph)), interpret(graph, *arrays(graph))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
def test_generator_and_discriminator():
    r = np.random.RandomState(0)
    V, W = [chainer.Parameter(r.standard_normal(shape).astype("f")) for shape in ((6, 4, 3, 3), (5, 4, 3, 3))]

    def loss(z):
        image = F.tanh(F.deconvolution_2d(z, V))
        return F.sum(F.sigmoid(F.convolution_2d(image, W)) ** 2)

    static = to_static(loss, backend="c")
    for batch in (4, 4, 7, 9):
        z, found = chainer.Variable(r.standard_normal((batch, 6, 1, 1)).astype("f")), []
        for function in (loss, static):
            V.cleargrad()
            W.cleargrad()
            z.cleargrad()
            y = function(z)
            y.backward()
            found.append((y.array, V.grad, W.grad, z.grad))
        for a, b in zip(*found):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert static.cache_info().fallbacks == 0
