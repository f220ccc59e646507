"""Chains of convolutions in blocks of channels: what the pass changes, what it leaves alone, and that numbers stay."""
import ctypes
from pathlib import Path

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from random_graphs import build

from dy2static import ops, to_static
from dy2static.ir.interpret import interpret
from dy2static.ir.verify import verify
from dy2static.native import channel_blocks, compiler, frozen, team
from dy2static.native.kernels import words
from dy2static.ops.channel_blocks import convolve_blocks, turn_to_blocks
from dy2static.passes import blocked_parts, convolution_speed
from dy2static.passes.channel_blocks import block_channels

pytestmark = pytest.mark.any_python


def names(graph):
    return [node.op.name for node in graph.nodes]


def conv(x, W, stride=1, pad=None, groups=1):
    k = W.shape[2]
    pad = k // 2 if pad is None else pad
    size = tuple((n + 2 * pad - k) // stride + 1 for n in x.shape[2:])
    return ops.conv(x, W, size=size, stride=(stride, stride), pad=(pad, pad), groups=groups)


def normalised(x, seed):
    channels = (x.shape[1],)
    r = np.random.RandomState(seed)
    gamma, beta, mean, var = (ops.constant(value=r.uniform(0.5, 1.5, channels).astype("f")) for _ in range(4))
    return ops.fixed_batch_norm(x, gamma, beta, mean, var, axis=(0, 2, 3), eps=1e-5)[0]


def bias(x, channels):
    b = ops.constant(value=np.linspace(-1, 1, channels, dtype="f").reshape(1, channels, 1, 1))
    return x + ops.broadcast_to(b, shape=x.shape)


X, STEM, POINT, WIDE = (2, 3, 20, 18), (32, 3, 3, 3), (32, 32, 1, 1), (32, 32, 3, 3)


def residual_blocks(x, stem, *weights):
    h = ops.relu(normalised(bias(conv(x, stem, 2), 32), 1))
    for k in range(0, len(weights), 2):
        branch = ops.relu(normalised(conv(h, weights[k]), 2))
        h = ops.relu(normalised(conv(branch, weights[k + 1]), 3) + h)
    return ops.average_pool(h, kernel=h.shape[2:], size=(1, 1))


def inverted_residuals(x, stem, *weights):
    h = ops.clipped_relu(normalised(conv(x, stem, 2), 1), cap=6.0)
    for k in range(0, len(weights), 3):
        wide = ops.clipped_relu(normalised(conv(h, weights[k]), 2), cap=6.0)
        each = ops.clipped_relu(normalised(conv(wide, weights[k + 1], groups=64), 3), cap=0.5)
        h = normalised(conv(each, weights[k + 2]), 4) + h
    return ops.average_pool(h, kernel=h.shape[2:], size=(1, 1))


def pooled_and_joined(x, stem, *weights):
    h = ops.clipped_relu(conv(x, stem), cap=0.5)
    h = ops.max_pool(h, kernel=(3, 3), size=(10, 9), stride=(2, 2), pad=(1, 1))[0]
    a, b = ops.tanh(bias(conv(h, weights[0]), 32)), conv(h, weights[1])
    h = conv(ops.concat(a * b, ops.sigmoid(b), axis=1), weights[2])
    return ops.reshape(h, shape=(2, 32 * 90))


def densely_joined(x, stem, *weights):
    """Channels that fill no blocks: 20, 24, 44, 68."""
    h = ops.relu(conv(x, stem))
    for weight in weights[:2]:
        h = ops.concat(h, conv(ops.relu(normalised(h, 1)), weight), axis=1)
    h = ops.average_pool(conv(h, weights[2]), kernel=(2, 2), size=(10, 9), stride=(2, 2))
    h = ops.max_pool(ops.sigmoid(bias(h, 20)), kernel=(3, 3), size=(10, 9), stride=(1, 1), pad=(1, 1))[0]
    return ops.mean(conv(ops.maximum(h, 0.5), weights[3], groups=20), axis=(2, 3)), ops.sum(h, axis=(2, 3), keepdims=True)


def gated(x, stem, *weights):
    """Each channel of each image times a number of its own (squeeze and excitation), and times a number for all."""
    h = conv(x, stem)
    h = h * ops.sigmoid(h)
    for squeeze, excite, weight in (weights[:3], weights[3:]):
        gate = ops.sigmoid(conv(ops.relu(conv(ops.average_pool(h, kernel=h.shape[2:], size=(1, 1)), squeeze)), excite))
        h = conv(h * ops.broadcast_to(gate, shape=h.shape), weight)
        h = h * ops.broadcast_to(ops.constant(value=np.full((1, 1, 1, 1), 0.5, "f")), shape=h.shape)
    return ops.average_pool(h, kernel=h.shape[2:], size=(1, 1))


def in_groups(x, stem, *weights):
    """Groups of 8, of 16 and of 32 channels."""
    h = ops.relu(conv(x, stem))
    for weight, groups in zip(weights, (8, 4, 2)):
        h = ops.relu(normalised(conv(h, weight, groups=groups), 1) + h)
    return conv(h, weights[3])


@pytest.mark.parametrize("function, weights, left", [
    (densely_joined, ((24, 20, 3, 3), (24, 44, 3, 3), (20, 68, 1, 1), (20, 1, 3, 3)),
     {"join_blocks", "average_pool_blocks", "max_pool_blocks", "getitem", "sum"}),
    (gated, ((8, 40, 1, 1), (40, 8, 1, 1), (32, 40, 1, 1), (8, 32, 1, 1), (32, 8, 1, 1), (32, 32, 3, 3)), {"conv", "sigmoid", "sum"}),
    (in_groups, ((64, 8, 3, 3), (64, 16, 3, 3), (64, 32, 1, 1), (40, 64, 1, 1)), {"from_blocks"}),
    (residual_blocks, (POINT, WIDE, WIDE, POINT), {"sum", "div", "reshape"}),
    (inverted_residuals, ((64, 32, 1, 1), (64, 1, 3, 3), (32, 64, 1, 1)) * 2, {"sum", "div", "reshape"}),
    (pooled_and_joined, (WIDE, POINT, (32, 64, 3, 3)), {"concat", "tanh", "mul", "from_blocks"})])
def test_chains_are_computed_in_blocks(function, weights, left):
    stem = {densely_joined: (20, 3, 3, 3), in_groups: (64, 3, 3, 3), gated: (40, 3, 3, 3)}.get(function, STEM)
    graph = build(function, X, stem, *weights, dtype="float32")
    after = verify(block_channels(graph))
    found = names(after)
    assert found.count("conv") == (4 if function is gated else 0) and left <= set(found) and "to_blocks" not in found
    assert found.count("conv_blocks") + found.count("conv") == names(graph).count("conv")
    inputs = [np.random.RandomState(k).standard_normal(v.shape).astype("f") * 0.2 for k, v in enumerate(graph.inputs)]
    for a, b in zip(interpret(graph, *inputs), interpret(after, *inputs)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_what_follows_a_convolution_becomes_a_part_of_it():
    after = block_channels(build(residual_blocks, X, STEM, POINT, WIDE, dtype="float32"))
    parts = [{name for name in ("scale", "shift", "residual", "relu") if node.attrs[name]} for node in after.nodes
             if node.op.name == "conv_blocks"]
    assert parts == [{"scale", "shift", "relu"}] * 2 + [{"scale", "shift", "residual", "relu"}]
    assert not {"relu", "fixed_batch_norm", "to_blocks", "from_blocks"} & set(names(after))


def chain(x, first, second):
    return conv(ops.relu(conv(x, first)), second)


@pytest.mark.parametrize("function, shapes", [
    (lambda x, w: conv(x, w), ((2, 32, 16, 16), WIDE)),                                # as many images turned as convolutions
    (lambda x, v, w: (lambda h: (h, conv(h, w)))(conv(x, v)), ((2, 32, 16, 16), WIDE, WIDE)),          # every result is wanted
    (lambda x, w: conv(ops.relu(conv(x, w, groups=32)), w, groups=32), ((2, 32, 16, 16), (32, 1, 3, 3))),   # no images in blocks
    (chain, ((2, 32, 16, 16), (20, 32, 3, 3), (20, 20, 3, 3))), (chain, ((2, 32, 3, 3), WIDE, WIDE)),     # no blocks, narrow images
])
def test_what_would_not_pay_stays(function, shapes):
    graph = build(function, *shapes, dtype="float32")
    assert block_channels(graph) is graph


def test_maxima_of_windows_pay_for_blocks():
    """Two convolutions alone would not."""
    def function(x, first, second):
        h = ops.relu(conv(x, first))
        h = ops.max_pool(h, kernel=(5, 5), size=h.shape[2:], stride=(1, 1), pad=(2, 2))[0]
        return conv(h, second)
    graph = build(function, (2, 64, 32, 32), (64, 64, 1, 1), (64, 64, 1, 1), dtype="float32")
    assert "max_pool_blocks" in names(block_channels(graph))


def test_double_precision_stays():
    graph = build(chain, (2, 32, 16, 16), WIDE, WIDE, dtype="float64")
    assert block_channels(graph) is graph


class Network(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.stem, self.norm = L.Convolution2D(3, 32, 3, 2, 1), L.BatchNormalization(32)
            self.a, self.b, self.c = (L.Convolution2D(32, 32, k, s, k // 2) for k, s in ((3, 1), (1, 1), (1, 2)))
            self.norms = chainer.ChainList(*(L.BatchNormalization(32) for _ in range(3)))
            self.each = L.DepthwiseConvolution2D(32, 1, 5, 1, 2)
            self.last = L.Linear(None, 5)

    def forward(self, x):
        h = F.max_pooling_2d(F.clipped_relu(self.each(F.relu(self.norm(self.stem(x)))), 6.), 3, 2)
        h = F.relu(self.norms[1](self.b(F.relu(self.norms[0](self.a(h))))) + h)
        h = F.relu(self.b(h) + h)                           # what is added is read by the same convolution
        return self.last(F.average_pooling_2d(self.norms[2](self.c(h)), (5, 5)))


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
def test_the_kernels_are_built():
    assert all([kernels.address() for kernels in channel_blocks.KERNELS.values()])


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
def test_a_network_gives_what_it_gives_eagerly():
    """On one thread and two, bit by bit the same; weights and statistics that change in place count; NaN stays NaN."""
    net, x = Network(), np.random.RandomState(0).standard_normal((2, 3, 40, 40)).astype("f")
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        net(x)
        compiled = to_static(net.forward, backend="c", strict=True)
        threads = team.wanted()
        try:
            for change in (lambda: None, lambda: net.a.W.array.__imul__(1.5), lambda: net.norm.avg_mean.__iadd__(0.5)):
                change()
                found = []
                for count in (1, 2):
                    team.set_threads(count)
                    found.append(compiled(x).array)
                np.testing.assert_array_equal(*found)
                assert_same(found[0], net(x).array)
        finally:
            team.set_threads(threads)
        with np.errstate(all="ignore"):
            weights = net.a.W.array, (1, 2, 1, 0)
            for array, index, number in ((x, (0, 0, 3, 3), np.nan), (*weights, np.inf), (*weights, 3e38)):
                kept, array[index] = array[index], number
                assert_same(compiled(x).array, net(x).array)
                array[index] = kept


class Odd(chainer.Chain):
    """Numbers of channels that fill no blocks, and small groups."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.stem, self.wide = L.Convolution2D(3, 24, 3, 1, 1), L.Convolution2D(24, 40, 3, 1, 1)
            self.each, self.norm = L.DepthwiseConvolution2D(40, 1, 3, 2, 1), L.BatchNormalization(64)
            self.joined = L.Convolution2D(64, 48, 1)
            self.groups, self.last = L.Convolution2D(48, 48, 3, 2, 1, groups=6), L.Convolution2D(48, 20, 1)

    def forward(self, x):
        h = F.relu(self.stem(x))
        h = F.concat([self.each(F.relu(self.wide(h))), F.average_pooling_2d(h, 2)])
        return F.mean(self.last(F.relu(self.groups(self.joined(F.relu(self.norm(h)))))), axis=(2, 3))


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
def test_channels_that_fill_no_blocks_give_what_they_give_eagerly():
    """What is infinite in one group of channels is not in the others, whether or not the kernels multiply it with zeros."""
    net, x = Odd(), np.random.RandomState(0).standard_normal((2, 3, 24, 28)).astype("f")
    with chainer.using_config("train", False), chainer.no_backprop_mode(), np.errstate(all="ignore"):
        net(x)
        compiled = to_static(net.forward, backend="c", strict=True)
        assert_same(compiled(x).array, net(x).array)
        assert "dy_blocks_join" in compiled.program(x).native_code
        net.last.W.array[:, :8] = 0
        net.joined.b.array[1] = np.inf
        net.groups.W.array[:8, 1] = 0
        assert_same(compiled(x).array, net(x).array)


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
@pytest.mark.parametrize("last", [
    lambda h: F.cast(h, np.float64), lambda h: F.max_pooling_2d(F.cast(h, np.float64) * 2, 2), lambda h: F.cast(h * 99, np.int32),
    lambda h: F.mean(F.cast(h, np.float64), axis=(2, 3)), lambda h: F.where(h.array > 0.1, h, h * 2), lambda h: h.array > 0,
    lambda h: F.concat([h, h[:, :0]])])
def test_other_dtypes_leave_the_blocks(last):
    layers = [L.Convolution2D(n, 32, 3, 1, 1) for n in (3, 32, 32, 32)]

    def network(x):
        for layer in layers:
            x = F.relu(layer(x))
        return last(x)
    x = np.random.RandomState(0).standard_normal((2, 3, 24, 24)).astype("f")
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        found, expected = (getattr(y, "array", y) for y in (to_static(network, backend="c")(x), network(x)))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1 if found.dtype.kind == "i" else 1e-5)


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
@pytest.mark.parametrize("size", [3, 5])
def test_depthwise_filters_that_are_not_finite(size):
    """Their products with the zeros beside the image are NaN."""
    first, second, each = L.Convolution2D(3, 32, 3, 1, 1), L.Convolution2D(32, 32, 1), L.DepthwiseConvolution2D(32, 1, size, 1, size // 2)
    each.W.array[0, 3, 0, 0] = np.nan
    x = np.random.RandomState(0).standard_normal((2, 3, 24, 24)).astype("f")
    with chainer.no_backprop_mode():
        assert_same(to_static(lambda x: each(second(first(x))), backend="c")(x).array, each(second(first(x))).array)


def assert_same(found, expected):
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found[np.isfinite(expected)], expected[np.isfinite(expected)], rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
@pytest.mark.parametrize("stride, dilate", [(1, (1, 1)), (2, (1, 1)), (1, (2, 3))])
@pytest.mark.parametrize("in_, out, groups, size", [(32, 80, 1, 8), (32, 80, 1, 33), (256, 48, 1, 12), (64, 96, 2, 9), (16, 72, 1, 8)])
def test_winograds_algorithm_gives_the_same_bits(in_, out, groups, size, stride, dilate):
    """For few squares and many, on any number of threads, and for frozen filters."""
    spots, strides = ((size - 1) // stride + 1,) * 2, (stride, stride)
    windows = channel_blocks.Windows(2, in_, out, groups, (size, size), (3, 3), spots, strides, dilate, dilate, algorithm=2)
    random, threads = np.random.RandomState(0), team.wanted()
    x = turn_to_blocks(random.standard_normal((2, in_, size, size)).astype("f"))
    filters = random.standard_normal((out, in_ // groups, 3, 3)).astype("f")
    expected = convolve_blocks(x, filters, (), spots, (strides, dilate, dilate), groups, False, False, False, False, None)
    found = np.full((6, *expected.shape), np.nan, np.float32)
    try:
        for k, count in enumerate((1, 2, 7)):
            team.set_threads(count)
            for j, given in enumerate((filters, *frozen.copies([filters]))):
                assert channel_blocks.compute(windows, x, given, found[2 * k + j]) == 0
    finally:
        team.set_threads(threads)
    np.testing.assert_allclose(found[0], expected, rtol=1e-3, atol=1e-3)
    assert (found == found[0]).all()


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
@pytest.mark.parametrize("special", [(), (np.inf, -np.inf), (np.nan, -np.nan, np.inf)])
@pytest.mark.parametrize("kernel, stride, pad, spots", [(2, 2, 0, 4), (3, 2, 1, 5), (3, 1, 1, 9), (5, 3, 2, 3), (4, 1, 3, 12)])
def test_maxima_of_windows_are_the_first_of_several(kernel, stride, pad, spots, special):
    """Zeros of either sign, and numbers that are none with either sign, as `numpy.argmax` chooses them."""
    random, size = np.random.RandomState(0), (9, 9)
    x = random.choice(np.array([-1, -0.0, 0.0, *special, *special], "f"), (2, 1, *size, 16))
    around = np.pad(x, ((0, 0), (0, 0), (pad, pad + kernel), (pad, pad + kernel), (0, 0)), constant_values=-np.inf)
    expected, found = (np.empty((2, 1, spots, spots, 16), "f") for _ in range(2))
    for i, j in np.ndindex(spots, spots):
        window = around[:, :, i * stride:, j * stride:][:, :, :kernel, :kernel].reshape(2, 1, -1, 16)
        expected[:, :, i, j] = np.take_along_axis(window, window.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
    windows = channel_blocks.Windows(2, 16, 16, 1, size, (kernel,) * 2, (spots,) * 2, (stride,) * 2, (pad,) * 2, (1, 1))
    (function,) = (ctypes.c_void_p * 1).from_address(channel_blocks.KERNELS["layers"].address())
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(function)(words(windows.members()), x.ctypes.data, found.ctypes.data)
    np.testing.assert_array_equal(found.view("u4"), expected.view("u4"))


def test_the_estimate_knows_when_winograds_algorithm_is_used():
    text = (Path(channel_blocks.__file__).parent / "include" / "dy2static_winograd.h").read_text()
    long, short = convolution_speed._LONG_VECTORS, convolution_speed._SHORT_VECTORS
    for line in (f"FEW_SQUARES = {convolution_speed._SQUARES}", f"FEW_CHANNELS = {convolution_speed._CHANNELS}",
                 f"FEW_STRIDED = {convolution_speed._STRIDED}", f"REPLACED_DILATED = {convolution_speed._DILATED}",
                 f"REPLACED = DY_BYTES == 64 ? {long.replaced} : {short.replaced}"):
        assert f"{line}," in text


def in_parts(x, stem, *weights):
    """A chain that gains, and beside it large images that are turned for a convolution of a channel each."""
    h = ops.relu(conv(x, stem))
    for weight in weights[:3]:
        h = ops.relu(conv(h, weight))
    pooled = ops.max_pool(h, kernel=(2, 2), size=(24, 24), stride=(2, 2))[0]
    wide = ops.concat(pooled, *[ops.cumsum(pooled, axis=2) for _ in range(7)], axis=1)
    return ops.sum(ops.tanh(conv(wide, weights[3], groups=512)), axis=(0,)), ops.sum(pooled, axis=(2, 3))


@pytest.mark.parametrize("layout", ["", "parts", "blocks", "plain"])
def test_what_is_not_worth_it_does_not_keep_the_rest_out(layout):
    graph = build(in_parts, (1, 3, 48, 48), (64, 3, 3, 3), *[(64, 64, 3, 3)] * 3, (512, 1, 3, 3), dtype="float32")
    after = verify(block_channels(graph, layout))
    assert names(after).count("conv_blocks") == {"blocks": 5, "plain": 0}.get(layout, 4)
    inputs = [np.random.RandomState(k).standard_normal(v.shape).astype("f") * 0.1 for k, v in enumerate(graph.inputs)]
    for a, b in zip(interpret(graph, *inputs), interpret(after, *inputs)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_two_readers_turn_an_image_once():
    """The image is there as it was, too: nothing makes it again."""
    def function(x, y, *weights):
        h = ops.relu(conv(ops.relu(conv(x, weights[0])), weights[1]))
        joined = conv(ops.relu(conv(ops.concat(h, y, axis=1), weights[2])), weights[3])
        again = conv(ops.relu(conv(ops.concat(joined, y, axis=1), weights[2])), weights[3])
        return ops.sum(ops.relu(again), axis=(2, 3)), ops.transpose(y, axes=(3, 2, 1, 0))

    graph = build(function, (2, 3, 20, 18), (2, 32, 20, 18), (32, 3, 3, 3), WIDE, (32, 64, 3, 3), WIDE, dtype="float32")
    after = verify(block_channels(graph, "blocks"))
    assert names(after).count("to_blocks") == 1 and "from_blocks" not in names(after)
    inputs = [np.random.RandomState(k).standard_normal(v.shape).astype("f") * 0.1 for k, v in enumerate(graph.inputs)]
    for a, b in zip(interpret(graph, *inputs), interpret(after, *inputs)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
@pytest.mark.parametrize("read_twice", [False, True])
def test_a_depthwise_convolution_reads_a_part_of_the_channels_at_a_time(read_twice):
    stem, wide, narrow = L.Convolution2D(3, 32, 3, 1, 1), L.Convolution2D(32, 144, 1), L.Convolution2D(144, 32, 1)
    each, last = L.DepthwiseConvolution2D(144, 1, 3, 2, 1), L.Convolution2D(32, 32, 1)
    x = np.random.RandomState(0).standard_normal((2, 3, 34, 36)).astype("f")

    def network(x):
        h = F.relu(wide(F.relu(stem(x))))
        y = last(narrow(F.clipped_relu(each(h), 0.5)))
        return y + F.broadcast_to(F.mean(h), y.shape) if read_twice else y
    with chainer.no_backprop_mode():
        compiled, threads = to_static(network, backend="c", strict=True), team.wanted()
        try:
            found = [(team.set_threads(count), compiled(x).array)[1] for count in (1, 2)]
        finally:
            team.set_threads(threads)
        np.testing.assert_array_equal(*found)
        assert_same(found[0], network(x).array)
        assert ("dy_blocks_pair(" in compiled.program(x).native_code) != read_twice
        each.W.array[0, 100, 0, 0] = np.nan
        assert_same(compiled(x).array, network(x).array)


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
def test_names_of_arrays_may_be_macros():
    """Functions with many arrays define their names as macros."""
    names = "conv depthwise pair each expect max mean join of back".split()
    macros = "".join(f"#define {name} p[{k}]\n" for k, name in enumerate(names))
    libraries = "".join(f"#define DY_BLOCKS_{name.upper()}\n" for name in channel_blocks.KERNELS)
    compiler.build(f"""{libraries}#include "{channel_blocks.HEADER}"
{macros}int call(float **p)
{{
    dy_blocks_expect(conv, 1), dy_blocks_max(0, conv, max), dy_blocks_mean(0, conv, max), dy_blocks_join(0, 0, 0, 0, 1, 1, join);
    dy_blocks_of(1, 1, 1, of, back), dy_blocks_back(1, 1, 1, of, back);
    return dy_blocks_conv(0, conv, mean, 0, 0, 0, of) + dy_blocks_depthwise(0, conv, mean, 0, 0, 0, of);
}}
""")


def enlarged(x, stem, *weights):
    """As a U-Net: halved, doubled again by windows side by side, and joined with what was before."""
    before = ops.relu(conv(ops.relu(conv(x, stem)), weights[0]))
    h = ops.max_pool(before, kernel=(2, 2), size=(10, 9), stride=(2, 2))[0]
    h = ops.relu(conv(h, weights[1]))
    up = bias(ops.conv_transpose(h, weights[2], size=(20, 18), stride=(2, 2)), 32)
    h = conv(ops.relu(conv(ops.concat(up, before, axis=1), weights[3])), weights[4])
    return ops.sum(ops.relu(h), axis=(2, 3))


def test_windows_side_by_side_stay_in_blocks():
    shapes = (STEM, WIDE, (48, 32, 3, 3), (48, 32, 2, 2), (32, 64, 3, 3), WIDE)
    graph = build(enlarged, X, *shapes, dtype="float32")
    after = verify(block_channels(graph))
    found = names(after)
    assert not {"conv", "conv_transpose", "to_blocks", "from_blocks"} & set(found)
    assert found.count("conv_blocks") == 5 and found.count("conv_transpose_blocks") == 1
    inputs = [np.random.RandomState(k).standard_normal(v.shape).astype("f") * 0.2 for k, v in enumerate(graph.inputs)]
    for a, b in zip(interpret(graph, *inputs), interpret(after, *inputs)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
@pytest.mark.parametrize("number", [1.0, np.nan])
def test_transposed_convolutions_stay_in_blocks(number, monkeypatch):
    """As an autoencoder: batch normalization and activations follow them at once, a sum with another image afterwards."""
    monkeypatch.setattr(blocked_parts, "_TRANSPOSED", 9.0)          # else plain ones of such small images take less time
    down = [L.Convolution2D(3, 32, 4, 2, 1), L.Convolution2D(32, 64, 4, 2, 1)]
    up = [L.Deconvolution2D(64, 64, 3, 2, 1, outsize=(12, 14)), L.Deconvolution2D(64, 40, 4, 2, 1), L.Deconvolution2D(40, 3, 5, 1, 2)]
    norms = [L.BatchNormalization(64), L.BatchNormalization(40)]
    x = np.random.RandomState(0).standard_normal((3, 3, 26, 28)).astype("f")
    x[1, 2, 5, 7] = number

    def network(x):
        h = F.relu(down[0](x))
        deep = up[0](F.relu(down[1](h)))
        deep = F.clipped_relu(norms[0](deep), 0.5) + up[0](F.leaky_relu(down[1](h)))
        return F.tanh(up[2](F.relu(norms[1](up[1](deep)))))
    with chainer.no_backprop_mode(), chainer.using_config("train", False), np.errstate(invalid="ignore"):
        compiled, threads = to_static(network, backend="c", strict=True), team.wanted()
        try:
            found = [(team.set_threads(count), compiled(x).array)[1] for count in (1, 2)]
        finally:
            team.set_threads(threads)
        np.testing.assert_array_equal(*found)
        assert_same(found[0], network(x).array)
        assert compiled.program(x).native_code.count("dy_blocks_transposed(") == 4
