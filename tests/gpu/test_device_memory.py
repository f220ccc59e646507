"""A GPU whose memory is short: arenas that wait are released, and what is left is CuPy's own error."""
import functools
import threading

import chainer
import chainer.functions as F
import numpy as np
import pytest
from cupy_double import on_device, on_double, tolerance
from numpy_on_double import array
from test_whole_steps import Recurrent, Training, step

from dy2static import to_static
from dy2static.native.emulated import missing
from dy2static.runtime import segment

cupy = chainer.backends.cuda.cupy

BACKENDS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(bool(missing()), reason=missing()))]


def function(x):
    y = F.tanh(F.matmul(x, x))
    return F.exp(y) * F.sigmoid(y) + x


def waiting():
    """How many arenas wait."""
    return sum(len(pool.free) for pool in segment._pools.all())


def ready(backend):
    """A compiled function that has been called, and its argument; an arena waits for the next call."""
    refuse()
    static, x = to_static(function, backend=backend, strict=True), array(6, 6)
    for _ in range(2):
        static(x)
    assert waiting()
    return static, x


class Allocator:
    """What allocates memory of a device for CuPy, with the counts of the stand-in's."""

    def __init__(self):
        self.allocations, self.refused = 0, set()

    def __call__(self, size):
        pool, number = cupy.get_default_memory_pool(), self.allocations
        self.allocations += 1
        if number in self.refused:
            raise cupy.cuda.memory.OutOfMemoryError(size, pool.total_bytes())
        return pool.malloc(size)


@functools.lru_cache(maxsize=None)
def memory():
    """What counts allocations, and lets some fail."""
    if not on_device():
        return cupy.memory
    made = Allocator()
    cupy.cuda.set_allocator(made)
    return made


def refuse(*numbers):
    """Let some of the next allocations fail."""
    memory().refused = {memory().allocations + number for number in numbers}


@pytest.mark.parametrize("backend", BACKENDS)
@on_double
def test_arenas_are_released_and_the_call_goes_on(backend):
    (other, y), (static, x) = ready(backend), ready(backend)
    expected, before = function(x).array.get(), waiting()
    refuse(0)
    result = static(x)
    assert before > 1 and waiting() <= 1                        # its own came back
    np.testing.assert_allclose(result.array.get(), expected, rtol=1e-5)
    del result
    for compiled, argument in ((static, x), (other, y)):        # they make new ones
        np.testing.assert_allclose(compiled(argument).array.get(), function(argument).array.get(), rtol=tolerance(1e-5))
    assert waiting()


@pytest.mark.parametrize("backend", BACKENDS)
@on_double
def test_what_does_not_help_is_the_error_of_cupy(backend):
    static, x = ready(backend)
    refuse(*range(20))
    with pytest.raises(cupy.cuda.memory.OutOfMemoryError, match="Out of memory allocating"):
        static(x)
    refuse()
    np.testing.assert_allclose(static(x).array.get(), function(x).array.get(), rtol=tolerance(1e-5))
    assert static.stats()["fallbacks"] == 0


@pytest.mark.parametrize("backend", BACKENDS)
@on_double
def test_a_function_without_memory_in_its_first_call_is_compiled_later(backend):
    def chosen(x):
        return F.tanh(x)[:, [2, 0, 1]]                          # the indices become an array of the device
    static, x = to_static(chosen, backend=backend, strict=True), array(6, 6)
    refuse(*range(100))
    with pytest.raises(cupy.cuda.memory.OutOfMemoryError):
        static(x)
    refuse()
    for _ in range(2):
        np.testing.assert_allclose(static(x).array.get(), chosen(x).array.get(), rtol=tolerance(1e-5))
    assert static.stats()["programs"] == 1


@pytest.mark.parametrize("backend", BACKENDS)
@on_double
def test_gradients(backend):
    def total(x):
        return F.sum(function(x))
    static, values, found = to_static(total, backend=backend, strict=True), array(6, 6), []
    for compiled, short in ((total, False), (static, False), (static, True)):
        x = chainer.Variable(values)
        loss = compiled(x)
        loss.grad = cupy.ones_like(loss.array)
        if short:
            refuse(0)
        loss.backward()
        found.append(x.grad.get())
    assert memory().allocations > min(memory().refused)
    for grad in found[1:]:
        np.testing.assert_allclose(grad, found[0], rtol=1e-4, atol=1e-6)


def arrays_of(training):
    """Parameters, what the optimizer keeps, and running means."""
    model = training.model
    return [x.get() for p in model.params() for x in (p.array, *[v for _, v in sorted((p.update_rule.state or {}).items())])] + [
        model.norm.avg_mean.get(), model.norm.avg_var.get()]


@pytest.mark.parametrize("for_good", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
@on_double
def test_each_allocation_of_a_training_step_fails(backend, for_good):
    """If one fails, the step goes on.  If all fail from there on, nothing is changed, and the step can be done again."""
    refuse()
    static, failed = to_static(step, backend=backend, strict=True), 0
    training, eager = Training(model=Recurrent, static=static).run(2), Training(model=Recurrent, static=step).run(2)
    for number in range(200):
        first = memory().allocations
        refuse(*range(number, 1000 if for_good else number + 1))
        try:
            training.run(1)
        except cupy.cuda.memory.OutOfMemoryError:
            failed += 1
            refuse()
            training.run(1)
        is_over = memory().allocations - first <= number
        refuse()
        eager.run(1)
        if is_over:
            break
    assert number > 5 and failed == (number if for_good else 0)
    for found, expected in zip(arrays_of(training), arrays_of(eager)):
        np.testing.assert_allclose(found, expected, rtol=tolerance(1e-3), atol=tolerance(1e-5))


@pytest.mark.parametrize("backend", BACKENDS)
@on_double
def test_streams_do_not_share_arenas(backend):
    """What has been started on a stream may still run when a call on another one begins."""
    static, x = ready(backend)
    (program,) = static.dispatcher.programs
    first = program.pool.take()
    program.pool.give(first)
    with cupy.cuda.Stream():
        other = program.pool.take()
        np.testing.assert_allclose(static(x).array.get(), function(x).array.get(), rtol=tolerance(1e-5))
    assert other is not first and program.pool.take() is first
    program.pool.give(other)
    assert program.pool.nbytes == 2 * program.pool.arena_bytes          # that of the call on the stream, and the other one


@pytest.mark.parametrize("backend", BACKENDS)
@on_double
def test_threads(backend):
    static, _ = ready(backend)
    wrong = []

    def work(seed):
        x = array(6, 6, seed=seed)
        expected = function(x).array.get()
        wrong.extend(seed for _ in range(10) if not np.allclose(static(x).array.get(), expected, rtol=1e-4))
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
