"""A call that fails, wherever it does, leaves everything as eager leaves it, and what is compiled stays usable."""
import sys

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import Picture, array, differences

import dy2static
from dy2static import to_static


class Trouble:
    """What goes wrong next; nothing if ``kind`` is empty."""

    kind = ""


class Fragile(chainer.FunctionNode):
    """A function of the user's that fails in forward or in backward when asked to."""

    def forward(self, inputs):
        if Trouble.kind == "forward":
            raise ZeroDivisionError("in forward")
        return inputs[0] * 2,

    def backward(self, indexes, gys):
        if Trouble.kind == "backward":
            raise ZeroDivisionError("in backward")
        return gys[0] * 2,


@dy2static.not_to_static
def watch():
    if Trouble.kind == "interrupt":
        raise KeyboardInterrupt
    if Trouble.kind == "host":
        raise OSError("on the host")


class Model(chainer.Chain):
    """Running statistics, dropout, counters, lists and Variables that are kept, before and after what may fail."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(4, 6, initialW=array(6, 4))
            self.bn = L.BatchNormalization(6)
            self.l2 = L.Linear(6, 3, initialW=array(3, 6, seed=1))
            self.bn2 = L.BatchNormalization(3)
        self.calls = self.done = 0
        self.seen, self.table, self.sums = [], np.arange(3, dtype="f"), np.zeros(6, "f")

    def forward(self, x, t, limit):
        self.calls += 1
        h = F.dropout(F.relu(self.bn(self.l1(x))), 0.3)
        self.seen.append(self.calls)
        self.sums += h.array.sum(axis=0)
        h = Fragile().apply((h,))[0]
        if float(F.max(h).array) > limit:
            self.seen.append("too large")
            raise ValueError("too large")
        self.noise = np.random.rand()
        self.picked = self.table[t]
        self.h = h
        h = self.bn2(self.l2(h))
        self.done += 1
        loss = F.softmax_cross_entropy(h, t)
        self.seen.append("done")
        watch()
        return loss * 2


def good(k):
    return array(5, 4, seed=k), np.array([0, 1, 2, 1, 0], "i"), 1e3


def steps(compiled, faults):
    """What can be seen after each step: training steps, with these faults at every second one."""
    np.random.seed(5)
    model = Model()
    if compiled:
        to_static(model)
    optimizer = chainer.optimizers.MomentumSGD(0.01).setup(model)
    for k in range(2):                                  # compiled, and past its first captures
        optimizer.update(model, *good(k))
    found = []
    for k, (kind, arguments) in enumerate(faults):
        for Trouble.kind, given in ((kind, arguments(good(k))), ("", good(k + 1))):
            error = None
            model.cleargrads()
            try:
                loss = model(*given)
                loss.backward()
            except (Exception, KeyboardInterrupt) as raised:
                error = type(raised).__name__, str(raised).splitlines()[:1]
            Trouble.kind = ""
            found.append({"error": error, "random": np.random.get_state()[1:3][0].tobytes() + bytes([np.random.get_state()[2] % 256]),
                          "seen": Picture(with_graph=False).of(model)})
        optimizer.update()
    return found, model


#: What goes wrong, and what the call is given.
FAULTS = {
    "a function raises in forward": ("forward", lambda good: good),
    "a function raises in backward": ("backward", lambda good: good),
    "the host raises": ("host", lambda good: good),
    "the host is interrupted": ("interrupt", lambda good: good),
    "a raise that an array decides": ("", lambda good: (*good[:2], -1.0)),
    "an index out of bounds": ("", lambda good: (good[0], good[1] + 7, good[2])),
    "a shape that does not fit": ("", lambda good: (good[0][:, :3], *good[1:])),
    "a dtype that does not fit": ("", lambda good: (good[0].astype("i"), *good[1:])),
    "labels of another length": ("", lambda good: (good[0], good[1][:2], good[2])),
    "no array at all": ("", lambda good: (None, *good[1:])),
}


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
@pytest.mark.parametrize("name", FAULTS)
def test_state_after_a_failure(name):
    faults = [FAULTS[name]] * 3
    (eager, _), (compiled, model) = steps(False, faults), steps(True, faults)
    assert all(one["error"] for one in eager[::2]) and not any(one["error"] for one in eager[1::2])
    problems = [f"step {k}: {line}" for k, pair in enumerate(zip(eager, compiled)) for line in differences(*pair)]
    assert not problems, "\n".join(problems[:5])
    info = type(model).forward.cache_info()
    assert info.captures and info.programs


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
def test_all_failures_one_after_the_other():
    faults = list(FAULTS.values()) * 2
    (eager, _), (compiled, model) = steps(False, faults), steps(True, faults)
    problems = [f"step {k}: {line}" for k, pair in enumerate(zip(eager, compiled)) for line in differences(*pair)]
    assert not problems, "\n".join(problems[:5])


def test_working_memory_after_failures():
    """A failed call gives its arena back, once, or lets it go."""
    model = to_static(Model())
    static = type(model).forward
    for k in range(3):
        model(*good(k)).backward()
    for k in range(20):
        Trouble.kind = ("forward", "host", "backward")[k % 3]
        with pytest.raises((ZeroDivisionError, OSError)):
            model(*good(k)).backward()
        Trouble.kind = ""
    for program in static.dispatcher.programs:
        pools = [program.pool] + [b.pool for s in program.segments for b in s.backward.values()]
        for pool in pools:
            if pool is not None:
                assert len({id(arena) for arena in pool.free}) == len(pool.free) <= pool.keep
    captures = static.cache_info().captures
    losses = [model(*good(k)) for k in range(4)]        # four alive at once: none shares memory with another
    values = [loss.array.copy() for loss in losses]
    for loss in losses:
        loss.backward()
    assert static.cache_info().captures == captures and all(np.array_equal(v, l.array) for v, l in zip(values, losses))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, MemoryError, RecursionError])
def test_interrupted_while_it_is_captured(kind):
    """An interruption of the capture itself leaves nothing behind, and the next call is captured."""
    model, plain = to_static(Model()), Model()
    apply, state = chainer.FunctionNode.apply, np.random.get_state()[1].tobytes()
    before = Picture().of(model)
    original = dy2static.lowering.registry.LOWERINGS[F.activation.relu.ReLU]

    def interrupted(*args):
        raise kind
    dy2static.lowering.registry.LOWERINGS[F.activation.relu.ReLU] = interrupted
    try:
        if kind is MemoryError:
            model(*good(0))                             # runs eagerly, for once: it may be short in this call only
        elif issubclass(kind, Exception):
            with pytest.warns(dy2static.FallbackWarning):
                model(*good(0))                         # runs eagerly
        else:
            with pytest.raises(kind):
                for _ in range(3):                      # the first one may be observed only
                    model(*good(0))
    finally:
        dy2static.lowering.registry.LOWERINGS[F.activation.relu.ReLU] = original
    assert chainer.FunctionNode.apply is apply
    if kind is MemoryError:
        for k in range(3):
            model(*good(k))
        assert type(model).forward.cache_info().programs
    if not issubclass(kind, Exception):
        type(model).forward.clear_cache()
        for net in (model, plain):
            np.random.seed(1)
            net.calls, net.done, net.seen = 0, 0, []
        calls = [[net(*good(k)).array for k in range(3)] for net in (to_static(Model()), Model()) if not np.random.seed(1)]
        np.testing.assert_allclose(*calls, rtol=1e-5)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_gradients_of_other_types(backend):
    f = to_static(lambda x: F.tanh(x) * 2, backend=backend)
    x = chainer.Variable(array(3, 2))
    expected = chainer.grad([F.tanh(x) * 2], [x], [chainer.Variable(np.full((3, 2), 0.5, "f"))])[0]
    for dtype in "fde":
        gx, = chainer.grad([f(x)], [x], [chainer.Variable(np.full((3, 2), 0.5, dtype))])
        np.testing.assert_allclose(gx.array, expected.array, rtol=1e-6)
    for shape in ((2, 2), (4, 2), (1, 2)):
        with pytest.raises(ValueError, match="shape"):
            chainer.grad([f(x)], [x], [chainer.Variable(np.ones(shape, "f"))])


@pytest.mark.parametrize("how", ["backward", "grad"])
@pytest.mark.parametrize("replaced", [np.ones((2, 3), "f"), np.ones((80, 30), "f"), np.ones((40, 30))], ids=["small", "large", "double"])
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_arrays_of_other_types_before_backward(backend, replaced, how):
    """A backward is made for the shapes of the call: it does not read what has another one."""
    link, x = L.Linear(30, 40), chainer.Variable(array(8, 30))
    loss = to_static(lambda x: F.sum(F.tanh(link(x)) * link(x)), backend=backend)

    def gradients():
        link.cleargrads()
        y = loss(x)
        link.W.array, before = replaced, link.W.array
        try:
            return y.backward() if how == "backward" else chainer.grad([y], [x])
        finally:
            link.W.array = before

    for _ in range(3):                                  # also where everything has been compiled
        loss(x).backward()
        with pytest.raises(dy2static.errors.RunError, match="another shape or dtype"):
            gradients()
    replaced = link.W.array * 2
    gradients()


@pytest.mark.parametrize("replaced", [np.ones((2, 3), "f"), np.ones((8, 3)), np.ones((), "f")], ids=["small", "double", "number"])
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_arrays_of_other_types_before_backward_with_free_sizes(backend, replaced):
    loss = to_static(lambda x, w: F.sum(F.sin(F.tanh(x) * w + F.exp(x)) * w), backend=backend)
    for size in (4, 5, 6, 7, 8):
        x, w = chainer.Variable(array(size, 3)), chainer.Variable(array(size, 3, seed=1))
        y = loss(x, w)
        y.backward()
    assert loss.cache_info().programs == 3              # the third is for any size
    for how in ("backward", "grad"):
        y, before = loss(x, w), w.array
        w.array = replaced
        with pytest.raises(dy2static.errors.RunError, match="another shape or dtype"):
            y.backward() if how == "backward" else chainer.grad([y], [x])
        w.array = before


CHANGES = {
    "shape": lambda a: setattr(a, "shape", (3, 2)),
    "dtype": lambda a: setattr(a, "dtype", np.dtype("i4")),
    "size": lambda a: a.resize((1, 1), refcheck=False),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("sizes", [(2,), (2, 3, 4, 5, 2)], ids=["known", "free"])
def test_arrays_that_python_changes_while_the_program_runs(sizes, name):
    """Native code does not read memory by a shape that an array has no more; the error names the line."""
    change = dy2static.not_to_static(lambda a, is_asked: CHANGES[name](a) if is_asked else None)

    def f(x, is_asked):
        y = F.tanh(x) * 3 + F.exp(x)
        change(x.array, is_asked)
        return F.sum(F.sin(y) * x)

    compiled = to_static(f, backend="c")
    for size in sizes:
        compiled(chainer.Variable(array(size, 3)), False)
    with pytest.raises(dy2static.errors.RunError, match=r"made for .*\(2, 3\).* float32") as raised:
        compiled(chainer.Variable(array(2, 3)), True)
    assert raised.value.at.text().strip() == "return F.sum(F.sin(y) * x)" and "a copy" in raised.value.hint


def test_a_function_of_numpy_that_gives_something_else(monkeypatch):
    """What NumPy gave in the capture is relied on, and looked at where native code would read it."""
    def f(x, a):
        return F.sum(F.tanh(x) * np.corrcoef(a)[0].astype("f") + F.exp(x) * x)

    compiled, x, a = to_static(f, backend="c"), chainer.Variable(array(5)), array(5, 3)
    for _ in range(3):
        compiled(x, a)
    monkeypatch.setattr(sys.modules[np.corrcoef.__wrapped__.__module__], "cov", lambda *args, **kwargs: np.ones((2, 2)))
    with pytest.raises(dy2static.errors.RunError, match=r"made for .*\(5, 5\).* float64 here, and not for \(2, 2\)"):
        compiled(x, a)
