"""Sequences that are convolved are images of one row: what stays in blocks of channels, and that numbers stay."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from random_graphs import build

from dy2static import ops, to_static
from dy2static.ir.interpret import interpret
from dy2static.ir.verify import verify
from dy2static.native import compiler
from dy2static.passes import channel_blocks
from dy2static.passes.channel_blocks import block_channels

pytestmark = pytest.mark.any_python

X = (2, 5, 40)


def conv(x, W, stride=1, pad=0, dilate=1, groups=1):
    size = (x.shape[2] + 2 * pad - dilate * (W.shape[2] - 1) - 1) // stride + 1
    return ops.conv(x, W, size=(size,), stride=(stride,), pad=(pad,), dilate=(dilate,), groups=groups)


def of_channels(x, values):
    return ops.broadcast_to(ops.constant(value=values.astype("f")), shape=x.shape)


def normalized(x):
    numbers = [ops.constant(value=np.linspace(a, 2, x.shape[1]).astype("f")) for a in (1, -1, 0, 0.5)]
    return ops.fixed_batch_norm(x, *numbers, axis=(0, 2), eps=1e-5)[0]


def points(x, first, *weights):
    h = conv(x, first)
    for W in weights:
        h = conv(h, W)
        h = ops.relu(normalized(h + of_channels(h, np.linspace(-1, 1, W.shape[0]).reshape(1, -1, 1))))
    return ops.max(h, axis=2), ops.min(h, axis=2, keepdims=True), ops.mean(h, axis=2), h


def gates(x, first, filters, gates, point):
    """Padded on one side, two convolutions of one sequence, and what a half of the channels is."""
    h = conv(x, first)
    for _ in range(2):
        padded = ops.scatter_slice(h, index=(slice(None), slice(None), slice(4, None)), shape=(*h.shape[:2], h.shape[2] + 4))
        both = ops.concat(ops.tanh(conv(padded, filters, dilate=2)), ops.sigmoid(conv(padded, gates, dilate=2)), axis=1)
        a, b = ops.split(both, sizes=(16, 16), axis=1)
        h = h + conv(a * b, point)
    return ops.getitem(h, index=(slice(None), slice(2, 7), slice(3, -3)))


def pools(x, first, each, last):
    h = ops.max_pool(ops.relu(conv(x, first, pad=2)), kernel=(3,), size=(14,), stride=(3,))[0]
    h = ops.average_pool(conv(h, each, pad=1, groups=16), kernel=(2,), size=(7,), stride=(2,))
    part = ops.getitem(h, index=(slice(None), slice(None), slice(1, 6)))
    return conv(part, last), ops.transpose(h, axes=(0, 2, 1)), ops.exp(h)


def filters_are_computed(x, first, last):
    """What makes filters from a sequence is not about images."""
    h = conv(x, first)
    W = ops.reshape(ops.sum(h, axis=2), shape=(2, 16, 1))
    return conv(conv(h, last), W)


@pytest.mark.parametrize("function, shapes, blocks", [
    (points, ((20, 5, 1), (16, 20, 1), (24, 16, 1)), {"max", "min", "sum"}), (gates, ((16, 5, 1), *[(16, 16, 3)] * 2, (16, 16, 1)), {"tanh"}),
    (pools, ((16, 5, 5), (16, 1, 3), (16, 16, 2)), {"max_pool_blocks", "average_pool_blocks"}),
    (filters_are_computed, ((16, 5, 3), (16, 16, 3)), {"sum"})])
def test_sequences_are_computed_in_blocks(function, shapes, blocks):
    graph = build(function, X, *shapes, dtype="float32")
    for layout in ("blocks", "parts", ""):
        after = verify(block_channels(graph, layout))
        found = [node.op.name for node in after.nodes]
        if layout == "blocks":
            assert blocks < set(found) and found.count("conv_blocks") == [node.op.name for node in graph.nodes].count("conv")
        inputs = [np.random.RandomState(k).standard_normal(v.shape).astype("f") * 0.2 for k, v in enumerate(graph.inputs)]
        for a, b in zip(interpret(graph, *inputs), interpret(after, *inputs)):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_graph_that_stays_as_it_is_keeps_its_sequences():
    graph = build(lambda x, W: ops.tanh(conv(x, W)), X, (4, 5, 3), dtype="float32")
    assert block_channels(graph) is graph


class Network(chainer.Chain):
    """Random layers over sequences, the same in each call."""

    def __init__(self, r):
        super().__init__()
        self.kinds = [int(r.randint(6)) for _ in range(5)]
        with self.init_scope():
            self.stem = L.ConvolutionND(1, 3, int(r.choice([20, 32])), 5, pad=2)
            self.layers = chainer.ChainList(*[
                L.ConvolutionND(1, None, int(r.choice([12, 16, 40])), k, stride=s, pad=k // 2, dilate=1 if s > 1 else d)
                for k, s, d in r.choice([1, 2, 3], (5, 3)).tolist()])
            self.back = L.DeconvolutionND(1, None, 24, 4, stride=2, pad=1)
            self.norm = L.BatchNormalization(24)

    def forward(self, x):
        h = F.relu(self.stem(x))
        for kind, layer in zip(self.kinds, self.layers):
            h = F.relu(layer(h))
            if kind == 0:
                h = F.max_pooling_1d(h, 2, 1, 1)
            elif kind == 1:
                h = F.concat([h, F.sigmoid(h[:, ::-1]) * 2], axis=1)
            elif kind == 2:
                h = F.pad(h, ((0, 0), (0, 0), (2, 1)), "constant")[:, :, 1:]
            elif kind == 3:
                h = h * F.broadcast_to(F.sigmoid(F.mean(h, axis=2, keepdims=True)), h.shape)
            elif kind == 4:
                h = F.average_pooling_1d(h, 2, 1)
        h = self.norm(self.back(h))
        return F.max(h, axis=2), h, F.softmax(h, axis=1)


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
@pytest.mark.parametrize("seed", range(2))
def test_random_networks_give_what_they_give_eagerly(seed, monkeypatch):
    monkeypatch.setattr(channel_blocks, "worthwhile", lambda graph, taken: [one.node for one in taken])
    r = np.random.RandomState(seed)
    net, x = Network(r), r.standard_normal((2, 3, 41)).astype("f")
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        wanted = net(x)
        compiled = to_static(net.forward, backend="c", strict=True)
        for a, b in zip(compiled(x), wanted):
            np.testing.assert_allclose(a.array, b.array, rtol=1e-4, atol=1e-5)
        assert "dy_blocks_conv(" in compiled.program(x).native_code
