"""Working memory: what a program needs while it runs is shared, what dies is written over, and nothing is held too long."""
import gc
import os
import subprocess
import sys
import threading

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import config, not_to_static, to_static
from dy2static.backends.memory_planner import Buffer, arranged
from dy2static.native import compiler, working
from dy2static.runtime import workspace

needs_compiler = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
BACKENDS = ["numpy", pytest.param("c", marks=needs_compiler)]


class Wide(chainer.Chain):
    """Its results between are wide enough to be shared memory."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1, self.l2, self.l3 = L.Linear(8, 512), L.Linear(512, 512), L.Linear(512, 2)

    def forward(self, x):
        h = F.relu(self.l1(x))
        h = F.tanh(self.l2(h) * F.sigmoid(self.l2(F.sin(h))))
        return F.sum(self.l3(h) ** 2)


def x_(seed=0, rows=256):
    return np.random.RandomState(seed).uniform(-1, 1, (rows, 8)).astype("f")


def gradients(model, function, x):
    model.cleargrads()
    loss = function(x)
    loss.backward()
    return [loss.array.copy()] + [p.grad.copy() for p in model.params()]


@pytest.fixture
def nothing_waiting():
    gc.collect()
    workspace._free.clear()
    yield
    workspace._free.clear()


@pytest.mark.parametrize("backend", BACKENDS)
def test_shared_memory(backend, nothing_waiting):
    """Two programs, forward and backward, run in one block; values are those of eager; calls that wait are not disturbed."""
    model = Wide()
    f = to_static(lambda x: model(x), strict=True, backend=backend)
    for rows in (256, 200, 256):
        for a, b in zip(gradients(model, model, x_(rows, rows)), gradients(model, f, x_(rows, rows))):
            np.testing.assert_allclose(a, b, 1e-3, 1e-4)
    assert len(workspace._free) == 1 and workspace._free[0].memory.nbytes > 1 << 18
    first, second = f(x_(1)), f(x_(2))
    model.cleargrads()
    first.backward()
    found = [p.grad.copy() for p in model.params()]
    del first, second
    for a, b in zip(gradients(model, f, x_(1))[1:], found):
        np.testing.assert_array_equal(a, b)


def test_shared_memory_goes_with_its_last_user(nothing_waiting):
    model = Wide()
    others = workspace._users[0]
    f = to_static(lambda x: model(x), strict=True, backend="numpy")
    gradients(model, f, x_())
    assert workspace._users[0] > others
    f.clear_cache()
    del f
    gc.collect()
    assert workspace._users[0] == others
    assert others or not workspace._free
    assert all(block.made == {} for block in workspace._free) or others


@needs_compiler
def test_shared_memory_of_free_sizes():
    """It waits for the next call, is given up when calls have become small, and goes with the last program."""
    gc.collect()
    others = working._users[0]
    model = Wide()
    f = to_static(lambda x: model(x), strict=True, backend="c")
    for rows in (2, 3, 4, 700, 500, 700):
        for a, b in zip(gradients(model, model, x_(rows, rows)), gradients(model, f, x_(rows, rows))):
            np.testing.assert_allclose(a, b, 1e-3, 1e-4)
    assert f.cache_info().captures == 3 and working._users[0] > others and working.nbytes() > 1 << 20
    first = working._waiting.data
    gradients(model, f, x_(rows=10))
    assert working._waiting.data == first
    for _ in range(80):
        gradients(model, f, x_(rows=10))
    assert 0 < working.nbytes() < 1 << 20
    f.clear_cache()
    del f
    gc.collect()
    assert working._users[0] == others and (others or not working.nbytes())


@pytest.mark.parametrize("backend", BACKENDS)
def test_arenas_of_free_sizes(backend, nothing_waiting):
    """Calls of many sizes wait for their backward; memory becomes smaller with the arrays."""
    model = Wide()
    f = to_static(lambda x: model(x), strict=True, backend=backend)
    rows = (2, 3, 4, 300, 5, 200, 300, 5)
    expected = [gradients(model, model, x_(k, n)) for k, n in enumerate(rows)]
    for order in (range(8), (7, 3, 5, 0, 1, 2, 6, 4)):
        losses = [f(x_(k, n)) for k, n in enumerate(rows)]
        for k in order:
            model.cleargrads()
            losses[k].backward()
            for a, b in zip([losses[k].array] + [p.grad for p in model.params()], expected[k]):
                np.testing.assert_allclose(a, b, 1e-3, 1e-4)
    del losses
    assert f.cache_info().captures == 3
    program = f.program(x_())
    large = program.nbytes
    assert large > 300 * 512 * 4
    for _ in range(130):                                # 64 to see that nothing needs so much, and 64 before these are over
        gradients(model, f, x_(rows=6))
    assert program.nbytes < large - 300 * 512 * 4


def test_a_block_that_has_become_too_large():
    block = workspace.Block()
    for nbytes in (1000, *[400] * 63, 600, *[400] * 63):
        block.hold(nbytes)
    block.made[0] = (block.memory,)
    assert block.memory.nbytes == 1000
    block.hold(400)
    assert block.memory.nbytes == 400 and not block.made


@pytest.mark.parametrize("are_free", [False, True], ids=["known", "free"])
def test_threads_have_blocks_of_their_own(nothing_waiting, are_free):
    model = Wide()
    f = to_static(lambda x: model(x), strict=True, backend="numpy")
    rows = [2, 3, 4, 256, 200, 90, 256, 7] if are_free else [256] * 8
    with chainer.no_backprop_mode():
        expected = [f(x_(k, n)).array.copy() for k, n in enumerate(rows)]
        wrong = []

        def run(k):
            for _ in range(5):
                if not np.array_equal(f(x_(k, rows[k])).array, expected[k]):
                    wrong.append(k)
        threads = [threading.Thread(target=in_inference, args=(run, k)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong and len(workspace._free) <= 4


def in_inference(run, k):
    with chainer.no_backprop_mode():
        run(k)


@pytest.mark.parametrize("are_free", [False, True], ids=["known", "free"])
def test_a_call_inside_another_one_and_one_that_fails(nothing_waiting, are_free):
    model = Wide()
    inner = to_static(lambda x: model(x), strict=True, backend="numpy")

    def outer(x):
        h = F.sin(F.broadcast_to(F.reshape(x, (x.shape[0], 8, 1)), (x.shape[0], 8, 64)))
        number = host(x.array)
        return F.sum(F.cos(h) * F.sin(h)) * number

    def host(array):
        if array[0, 0] > 5:
            raise ValueError("too large")
        with chainer.no_backprop_mode():
            return float(inner(array).array)
    host = not_to_static(host)
    f = to_static(outer, backend="numpy")
    for k, rows in enumerate((2, 3, 4, 256) if are_free else (256, 256, 256)):
        np.testing.assert_allclose(f(chainer.Variable(x_(k, rows))).array, outer(chainer.Variable(x_(k, rows))).array, 1e-4)
    with pytest.raises(ValueError, match="too large"):
        f(chainer.Variable(x_() + 9))
    np.testing.assert_allclose(f(chainer.Variable(x_())).array, outer(chainer.Variable(x_())).array, 1e-4)


def overwriting_later(x, w):
    """The operand is read again after the result: it must not be written over before."""
    h = F.matmul(x, w)
    a = h * 2
    b = a * h + F.exp(-h * h)
    return F.matmul(b, w, transb=True) + F.matmul(a, w, transb=True)


def overwriting_turned(x, w):
    h = F.matmul(x, w)
    return F.matmul(F.transpose(h) * h, w) + h


def overwriting_rows(x, w):
    h = F.softmax(F.matmul(x, w))
    h = F.matmul(h * F.broadcast_to(F.sum(h, axis=1, keepdims=True), h.shape), w)
    return F.matmul(F.relu(h) * F.sum(h), w)


@needs_compiler
@pytest.mark.parametrize("function", [overwriting_later, overwriting_turned, overwriting_rows], ids=lambda f: f.__name__)
def test_operands_that_die_are_written_over(function):
    x, w = (chainer.Variable(np.random.RandomState(k).uniform(-1, 1, (24, 24))) for k in range(2))
    compiled = to_static(function, strict=True, backend="c")
    found = []
    for f in (function, compiled, compiled):
        y = f(x, w)
        x.cleargrad()
        w.cleargrad()
        y.grad = np.cos(y.array)
        y.backward()
        found.append((y.array.copy(), x.grad.copy(), w.grad.copy()))
    for other in found[1:]:
        for a, b in zip(found[0], other):
            np.testing.assert_allclose(a, b, 1e-9, 1e-10)


def test_where_buffers_are_put():
    def buffers(*spans):
        return [Buffer(f"b{k}", "float", 64, *span) for k, span in enumerate(spans)]
    apart = buffers((0, 1), (1, 2), (2, 3))
    assert arranged(apart)[0] == 128
    a, b, c = apart
    assert arranged(apart, [(a, b), (b, c)]) == (64, [0, 0, 0])
    assert arranged(apart, [(a, b), (a, c)])[0] == 128
    late = buffers((0, 5), (1, 2))
    assert arranged(late, [tuple(late)])[0] == 128


STEADY = """
import os, resource, sys
import dy2static, chainer, numpy as np
import chainer.functions as F, chainer.links as L
class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.c, self.bn, self.l = L.Convolution2D(3, 16, 3, pad=1), L.BatchNormalization(16), L.Linear(4096, 256)
    def forward(self, x, t):
        h = F.max_pooling_2d(F.relu(self.bn(self.c(x))), 2)
        return F.softmax_cross_entropy(self.l(h), t)
model = Net()
optimizer = chainer.optimizers.SGD(0.01).setup(model)
loss_of = dy2static.to_static(model, strict=True, backend=sys.argv[1])
x, t = np.random.rand(16, 3, 32, 32).astype('f'), np.zeros(16, 'i')
def step():
    loss = loss_of(x, t)
    model.cleargrads()
    loss.backward()
    optimizer.update()
for _ in range(6): step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10): step()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 10)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts page faults as Linux does")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_steady_step_asks_the_system_for_no_memory(backend, tmp_path):
    """A step moves more than ten MiB; what it asks for anew would be thousands of pages."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    (tmp_path / "user.py").write_text(STEADY)
    ran = subprocess.run([sys.executable, str(tmp_path / "user.py"), backend], env={**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"},
                         stdout=subprocess.PIPE, check=True, universal_newlines=True)
    assert float(ran.stdout) < 40


@pytest.mark.parametrize("backend", BACKENDS)
def test_how_much_a_program_needs(backend):
    model = Wide()
    f = to_static(lambda x: model(x), strict=True, backend=backend)
    assert f.stats()["peak_bytes"] == 0
    loss = f(x_())
    program, = f.dispatcher.programs
    before = program.memory
    layer, weights = 256 * 512 * 4, sum(p.array.nbytes for p in model.params())
    assert 4 * layer <= before.kept and before.results == 4 and before.backward == before.gradients == 0
    assert program.peak_bytes == sum(before)
    loss.backward()
    memory = program.memory
    assert memory[:3] == before[:3] and memory.gradients == weights and memory.backward >= layer
    assert program.peak_bytes == f.stats()["peak_bytes"] == memory.peak
    assert memory.peak == memory.kept + memory.results + max(memory.forward, memory.backward + memory.gradients)
    less = to_static(lambda x: model(x), strict=True, backend=backend, recompute=0)
    less(x_()).backward()
    assert less.dispatcher.programs[0].memory.kept == 0


def test_bytes_of_sizes_that_only_the_run_knows_are_not_counted():
    f = to_static(lambda x: F.sum(F.tanh(x[x.array > 0])), strict=True)
    f(chainer.Variable(x_())).backward()
    assert f.dispatcher.programs[0].memory.kept < 256 * 8 * 4


@needs_compiler
def test_what_native_loops_save_lies_in_memory_of_earlier_calls():
    def loop(x):
        total = x * 0
        while float(F.sum(F.absolute(x)).array) > 0.5:
            x = x * 0.97 - F.sin(x) * 0.01
            total = total + F.sin(x) * F.cos(total)
        return F.sum(total)

    def stacks(y):
        return [item for item in y.creator_node.held if isinstance(item, np.ndarray) and item.ndim == 2]

    f = to_static(loop, strict=True, backend="c")
    x = chainer.Variable(np.linspace(0.1, 1, 40))
    seen = []
    for _ in range(4):
        y = f(x)
        assert len(stacks(y)) >= 2 and all(len(stack) > 30 for stack in stacks(y))
        seen.append({stack.ctypes.data for stack in stacks(y)})
        del y
    assert seen[2] == seen[3]
    first, second = f(x), f(chainer.Variable(x.array * 0.5))
    assert not {s.ctypes.data for s in stacks(first)} & {s.ctypes.data for s in stacks(second)}
    f.clear_cache()
    first.backward()
    found = x.grad.copy()
    x.cleargrad()
    loop(x).backward()
    np.testing.assert_allclose(x.grad, found, 1e-9)
    none = f(chainer.Variable(np.zeros(40) + 1e-9))
    none.backward()
    assert all(len(stack) == 0 for stack in stacks(none))


def test_programs_that_are_replaced_give_their_memory_back():
    """One that is evicted, and one that becomes native code, keep no arenas; a backward that is still to come has its own."""
    def f(x):
        return F.sum(F.sin(F.exp(F.tanh(x * 2) * 3)))
    with config.NATIVE_AFTER.set(2), config.BACKGROUND.set(0):
        function = to_static(f, strict=True, backend="auto", cache_limit=1)
        first, late = (chainer.Variable(np.ones((8, 8), "f")) for _ in range(2))
        loss = function(late)
        numpy_program, = function.dispatcher.programs
        function(first).backward()
        assert numpy_program.pool.nbytes > 0
        for _ in range(3):
            function(first)
        assert function.dispatcher.programs != [numpy_program] or not compiler.available()
        function(chainer.Variable(np.ones((4, 8), "f")))
        loss.backward()
        first.cleargrad()
        function(first).backward()
        np.testing.assert_allclose(late.grad, first.grad, 1e-5)
        del loss
        assert numpy_program.pool.nbytes == 0 and all(segment.nbytes == 0 for segment in numpy_program.segments)
