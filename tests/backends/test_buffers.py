"""Memory: nothing the user holds lies in an arena, calls that are alive together do not share, and everything is given back."""
import gc
import tracemalloc
import weakref

import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import floats_in, variable

from dy2static import not_to_static, to_static
from dy2static.backends.host.buffers import BufferPlan, Slot
from dy2static.backends.host.library import Library

KEPT = []


@not_to_static
def keep(value):
    KEPT.append(value)


def net(x, w):
    h = F.tanh(F.matmul(x, w) + 1)
    k = F.sigmoid(h * 2)
    return F.sum(h * k), h, F.reshape(k, (-1,)), k.array.T, h.array[0] * 2


def with_host(x, w):
    h = F.tanh(F.matmul(x, w) + 1)
    keep(h.array)
    keep(h)
    k = h * 2 + 1
    keep(k.array * 3)
    return F.sum(F.exp(k))


def with_opaque(x, w):
    return F.sum(F.selu(F.matmul(x, w) * 2) + 1), F.softplus(x * 3)


def arrays_in(item):
    if isinstance(item, chainer.Variable):
        return [a for a in (item.array, item.grad) if a is not None]
    return [item] if isinstance(item, np.ndarray) else [a for part in item for a in arrays_in(part)]


def arenas(static):
    pools = [p.pool for p in static.dispatcher.programs]
    pools += [b.pool for p in static.dispatcher.programs for s in p.segments for b in s.backward.values()]
    return [a for pool in pools if pool is not None for arena in pool.free for a in arena]


@pytest.mark.parametrize("function", [net, with_host, with_opaque])
def test_nothing_lies_in_an_arena(function):
    del KEPT[:]
    static = to_static(function)
    held = []
    for k in range(3):
        x, w = variable(3, 4, seed=k), variable(4, 5, seed=k + 9)
        out = static(x, w)
        held += arrays_in(out if isinstance(out, tuple) else (out,))
        floats_in(out)[0].backward()
        held += [x.grad, w.grad]
    held += arrays_in(KEPT)
    copies = [a.copy() for a in held]
    del out, x, w
    gc.collect()
    waiting = arenas(static)
    assert waiting or function is with_host
    for a in held:
        assert not any(np.shares_memory(a, b) for b in waiting)
        assert a.base is None or a.base.nbytes <= 2 * max(a.nbytes, 64) or a.base.size <= 20
    for b in waiting:
        b[...] = 1
    for a, copy in zip(held, copies):
        np.testing.assert_array_equal(a, copy)
    del KEPT[:]


@pytest.mark.parametrize("function", [net, with_opaque])
def test_calls_alive_together(function):
    """Many forwards, then their backwards, in another order."""
    static = to_static(function)
    inputs = [(variable(3, 4, seed=k), variable(4, 5, seed=k + 9)) for k in range(6)]
    outs = [static(*pair) for pair in inputs]
    for k in (3, 0, 5, 1, 4, 2):
        outs[k][0].backward()
    for k, (x, w) in enumerate(inputs):
        x2, w2 = variable(3, 4, seed=k), variable(4, 5, seed=k + 9)
        function(x2, w2)[0].backward()
        np.testing.assert_allclose(x.grad, x2.grad, rtol=1e-5)
        np.testing.assert_allclose(w.grad, w2.grad, rtol=1e-5)


class Counting(Library):
    """Counts the blocks that it is asked for."""

    def __init__(self):
        self.blocks = []

    def empty(self, nbytes):
        self.blocks.append(nbytes)
        return super().empty(nbytes)


def test_an_arena_is_one_block_for_each_device():
    library, slots = Counting(), tuple(Slot((5,), np.dtype("f"), k) for k in range(4))
    arena = BufferPlan(slots, (20,) * 4, ("", "cupy:1", "", ""), {}, {}).make_arena(library)
    assert [array.shape for array in arena] == [(5,)] * 4 and not any(array.ctypes.data % 64 for array in arena)
    assert library.blocks == [64 * 4, 64 * 2]


def test_dropping_the_graph_gives_the_arena_back_at_once():
    """Without the garbage collector: there are no reference cycles."""
    static = to_static(net)
    static(variable(3, 4), variable(4, 5))[0].backward()
    gc.collect()
    gc.disable()
    try:
        pool = static.dispatcher.programs[0].pool
        before = len(pool.free)
        x, w = variable(3, 4), variable(4, 5)
        out = static(x, w)
        node = weakref.ref(out[0].creator)
        assert len(pool.free) == before - 1
        out[0].backward()
        assert len(pool.free) == before - 1             # backward may run again
        del out
        assert node() is None and len(pool.free) == before
        second = static(x, w)[1]
        assert len(pool.free) == before - 1
        second.unchain_backward()
        assert len(pool.free) == before
        with chainer.no_backprop_mode():
            inference = static(x, w)
            inference = static(x, w)
        inner = static.dispatcher.programs[0].pool
        assert inference and len(inner.free) == 1
        first, = chainer.grad([static(x, w)[0]], [x], enable_double_backprop=True)
        first = weakref.ref(first)
        assert first() is None and len(pool.free) == before
    finally:
        gc.enable()


def test_memory_is_flat():
    static = to_static(net)

    def step(k):
        x, w = variable(16, 32, seed=k), variable(32, 16, seed=k)
        static(x, w)[0].backward()
        gx, = chainer.grad([static(x, w)[0]], [x], enable_double_backprop=True)
        F.sum(gx * gx).backward()
    for k in range(10):
        step(k)
    gc.collect()
    tracemalloc.start()
    for k in range(20):
        step(k)
    gc.collect()
    first = tracemalloc.get_traced_memory()[0]
    for k in range(200):
        step(k)
    gc.collect()
    last = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert last - first < 30_000, last - first


def test_second_order_keeps_what_it_reads():
    """The graph of a gradient outlives the graph it came from, while other calls use memory."""
    static = to_static(lambda x, w: F.sum(F.tanh(F.matmul(x, w))))
    x, w = variable(3, 4), variable(4, 5)
    g, = chainer.grad([static(x, w)], [x], enable_double_backprop=True)
    for k in range(5):
        static(variable(3, 4, seed=k + 1), w).backward()
    w.cleargrad()
    F.sum(g * g).backward()
    x2, w2 = variable(3, 4), variable(4, 5)
    g2, = chainer.grad([F.sum(F.tanh(F.matmul(x2, w2)))], [x2], enable_double_backprop=True)
    F.sum(g2 * g2).backward()
    np.testing.assert_allclose(w.grad, w2.grad, rtol=1e-4, atol=1e-6)


def test_views_are_views():
    """What is a view of an input eagerly is one compiled; nothing else is."""
    def views(x):
        return F.reshape(x, (6,)), F.transpose(x), x[0], x.array.T, x.array[:, 1], F.relu(x), F.broadcast_to(x, (2, 2, 3)), x.array * 1
    static, x = to_static(views), variable(2, 3)
    wanted = [np.shares_memory(a, x.array) for a in arrays_in(views(x))]
    for _ in range(3):
        assert [np.shares_memory(a, x.array) for a in arrays_in(static(x))] == wanted
