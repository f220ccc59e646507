"""Parts, joins and shuffles of the channels of images in blocks: what stays in blocks, and that numbers stay."""
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

X, STEM = (2, 3, 12, 10), (32, 3, 3, 3)


def conv(x, W):
    pad = W.shape[2] // 2
    return ops.conv(x, W, size=x.shape[2:], stride=(1, 1), pad=(pad, pad))


def shuffled(x, groups, axes=(0, 2, 1, 3, 4)):
    n, channels, *places = x.shape
    apart = ops.transpose(ops.reshape(x, shape=(n, groups, channels // groups, *places)), axes=axes)
    return ops.reshape(apart, shape=x.shape)


def exchange(x, stem, *weights):
    h = conv(x, stem)
    for weight in weights[:-1]:
        kept, part = ops.split(h, sizes=(h.shape[1] // 2,) * 2, axis=1)
        h = shuffled(ops.concat(kept, ops.relu(conv(part, weight)), axis=1), 2)
    return conv(h, weights[-1])


def hierarchy(x, stem, *weights):
    """Parts of six and four channels; each part is added to the next one, and one of them is read twice."""
    h = conv(x, stem)
    first, second, third, last = (ops.getitem(h, index=(slice(None), slice(a, b))) for a, b in ((0, 6), (6, 12), (12, 18), (18, 22)))
    second = ops.relu(conv(second + first, weights[0]))
    third = ops.relu(conv(third + second, weights[0]))
    return conv(ops.concat(first, second, third, last, third, axis=1), weights[1])


def taken_apart(x, stem, *weights):
    """Every third channel backwards, and one of two parts that a reshape tells apart."""
    h = conv(x, stem)
    some = ops.getitem(h, index=(slice(None), slice(30, None, -3)))
    half = ops.getitem(ops.reshape(h, shape=(2, 2, 16, 12, 10)), index=(slice(None), 1))
    return conv(ops.concat(some, half, axis=1), weights[0])


def read_otherwise(x, stem, *weights):
    """What a reshape tells apart is read by an op that is not computed in blocks."""
    apart = ops.reshape(ops.relu(conv(x, stem)), shape=(2, 4, 8, 12, 10))
    swapped = ops.transpose(apart, axes=(0, 2, 1, 3, 4))
    h = conv(conv(ops.reshape(swapped, shape=(2, 32, 12, 10)), weights[0]), weights[0])
    return h, ops.sum(swapped, axis=(1, 3)), ops.sum(apart, axis=(4,))


def left_as_they_are(x, stem, *weights):
    """These move more than channels, or more than rows and columns."""
    h = conv(conv(x, stem), weights[0])
    turned = ops.transpose(h, axes=(0, 2, 1, 3))
    row = ops.getitem(h, index=(slice(None), slice(0, 8), slice(0, 6)))
    first = ops.getitem(h, index=(slice(0, 1), slice(0, 4)))
    return ops.exp(turned), row, ops.reshape(h, shape=(2, 32 * 120)), ops.reshape(h, shape=(1, 64, 12, 10)), first


def enlarged(x, stem, *weights):
    """Each place four times, rows as columns, backwards; and what others read of arrays of more or fewer axes."""
    h = conv(conv(x, stem), weights[0])
    apart = ops.reshape(h, shape=(2, 32, 12, 1, 10, 1))
    wide = ops.reshape(ops.broadcast_to(apart, shape=(2, 32, 12, 2, 10, 2)), shape=(2, 32, 24, 20))
    turned = ops.transpose(ops.getitem(wide, index=(slice(None), slice(None), slice(None, None, -1), slice(3, 20, 2))), axes=(0, 1, 3, 2))
    around = ops.scatter_slice(turned, index=(slice(None), slice(None), slice(1, 10), slice(2, 26)), shape=(2, 32, 11, 27))
    rows = ops.reshape(around, shape=(2, 32, 297))
    return conv(around, weights[0]), ops.matmul(rows, ops.transpose(rows, axes=(0, 2, 1))), ops.sum(apart, axis=(2, 4)), ops.tanh(apart)


WIDE = (32, 32, 3, 3)


@pytest.mark.parametrize("function, weights, joins, inside", [
    (exchange, ((16, 16, 3, 3), (16, 16, 3, 3), WIDE), 7, 4), (hierarchy, ((6, 6, 3, 3), (20, 28, 1, 1)), 5, 4),
    (taken_apart, ((24, 27, 1, 1),), 1, 2), (read_otherwise, (WIDE,), 3, 3), (left_as_they_are, (WIDE,), 0, 2),
    (enlarged, (WIDE,), 0, 3)])
def test_channels_move_in_blocks(function, weights, joins, inside):
    stem = (22, 3, 3, 3) if function is hierarchy else STEM
    graph = build(function, X, stem, *weights, dtype="float32")
    for layout in ("blocks", "parts", ""):
        after = verify(block_channels(graph, layout))
        found = [node.op.name for node in after.nodes]
        if layout == "blocks":
            assert found.count("join_blocks") <= joins and found.count("conv_blocks") == inside
            assert "to_blocks" not in found and (joins == 0) == ("join_blocks" not in found)
        inputs = [np.random.RandomState(k).standard_normal(v.shape).astype("f") * 0.2 for k, v in enumerate(graph.inputs)]
        for a, b in zip(interpret(graph, *inputs), interpret(after, *inputs)):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


class Network(chainer.Chain):
    """Random moves of channels between convolutions, the same in each call."""

    def __init__(self, r):
        super().__init__()
        self.steps = [(r.randint(9), int(r.randint(1, 4)), int(r.randint(1, 40))) for _ in range(4)]
        with self.init_scope():
            self.stem = L.Convolution2D(3, int(r.choice([24, 32, 48])), 3, 1, 1)
            self.layers = chainer.ChainList(*[L.Convolution2D(None, int(r.choice([12, 24, 30, 32])), int(r.choice([1, 3])), pad=0)
                                              for _ in self.steps])

    def forward(self, x):
        h = F.relu(self.stem(x))
        for (kind, groups, begin), layer in zip(self.steps, self.layers):
            n, channels, *places = h.shape
            cut = begin % channels
            if kind == 0:
                h = F.concat([h[:, cut:], h[:, :cut]])
            elif kind == 1 and channels % groups == 0:
                h = F.reshape(F.transpose(F.reshape(h, (n, groups, -1, *places)), (0, 2, 1, 3, 4)), h.shape)
            elif kind == 2 and cut:
                kept, h = F.split_axis(h, [cut], axis=1)
                h = F.concat([h, kept * 2, h[:, ::-2]])
            elif kind == 3:
                h = h[:, cut:] if cut < channels - 1 else h[:, ::2]
            elif kind == 4:
                h = F.unpooling_2d(h, groups, cover_all=False)[:, :, :places[0], 1:1 + places[1]]
            elif kind == 5:
                h = F.pad(h, ((0, 0), (0, 0), (groups, 0), (0, 1)), "constant")[:, :, ::-1]
            elif kind == 6:
                h = F.transpose(h, (0, 1, 3, 2)) * 2
            elif kind == 7:
                h = F.concat([h, F.broadcast_to(F.max(h, axis=(2, 3), keepdims=True), h.shape)])
            more = F.relu(layer(h))
            h = F.concat([h[:, :, :more.shape[2], :more.shape[3]][:, :begin], more[:, :, :h.shape[2], :h.shape[3]]])
        return F.mean(h, axis=(2, 3)), h


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
@pytest.mark.parametrize("seed", range(3))
def test_random_moves_give_what_they_give_eagerly(seed, monkeypatch):
    monkeypatch.setattr(channel_blocks, "worthwhile", lambda graph, taken: [one.node for one in taken])
    r = np.random.RandomState(seed)
    net, x = Network(r), r.standard_normal((2, 3, 14, 13)).astype("f")
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        wanted = net(x)
        compiled = to_static(net.forward, backend="c", strict=True)
        for a, b in zip(compiled(x), wanted):
            np.testing.assert_allclose(a.array, b.array, rtol=1e-4, atol=1e-5)
        assert "dy_blocks_join(" in compiled.program(x).native_code
