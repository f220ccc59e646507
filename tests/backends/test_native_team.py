"""Threads of native code: the same results for any number of them, exceptions of floats, fork, callers beside each other."""
import concurrent.futures
import ctypes
import itertools
import os
import signal
import threading
import time
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest
from test_native_convolutions import CALLS, native, reference, windows
from test_native_products import check

from dy2static import config, to_static
from dy2static.backends.loops import parallelize
from dy2static.native import compiler, products, team

pytestmark = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler")

TEXT = """
#include <sched.h>
#include <time.h>
#include "dy2static_python.h"
#include "dy2static_shares.h"

static _Thread_local int caller;
static int helped;

static void divide(const void *given, int64_t begin, int64_t end)
{
    if (!caller) {
        volatile double zero = 0, one = 1;
        one /= zero;
        __atomic_store_n(&helped, 1, __ATOMIC_SEQ_CST);
    }
    for (time_t start = time(0); caller && !__atomic_load_n(&helped, __ATOMIC_SEQ_CST) && time(0) - start < 20;)
        sched_yield();
}

/* Whether a worker came, and the flags of what it did. */
int flags_of_worker(void)
{
    caller = 1;
    helped = 0;
    dy_clear_float_flags();
    dy_share(divide, 0, 2, 1);
    return helped ? dy_float_flags() : -1;
}

static void count_up(const void *given, int64_t begin, int64_t end)
{
    int64_t *const items = *(int64_t *const *)given;
    for (int64_t i = begin; i < end; i++)
        items[i] += i;
}

void count(int64_t *items, int64_t count, int64_t step) { dy_share(count_up, &items, count, step); }
"""


@pytest.fixture
def threads(monkeypatch, threads):
    """The same where everything is shared, however little it is."""
    for name, value in {"LEAST": 0, "EACH": 1, "_GRAIN": 4, "_SUMMED": 0.1}.items():
        monkeypatch.setattr(parallelize, name, value)
    return threads


@pytest.fixture(scope="module")
def library():
    return compiler.build(TEXT)


def counted(library, size, step, times):
    items = np.zeros(size, np.int64)
    for _ in range(times):
        library.handle.count(ctypes.c_void_p(items.ctypes.data), ctypes.c_int64(size), ctypes.c_int64(step))
    return items


@pytest.mark.any_python
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("size, step", [(0, 1), (1, 1), (7, 3), (1000, 1), (1000, 999), (999, 1000)])
def test_each_element_is_done_once(threads, library, count, size, step):
    threads(count)
    np.testing.assert_array_equal(counted(library, size, step, 20), 20 * np.arange(size))


def test_flags_of_workers(threads, library):
    threads(2)
    assert library.handle.flags_of_worker() > 0


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="threads cannot change cores here")
def test_workers_leave_the_core_of_a_caller_that_moves(threads, library):
    """A worker left the caller's core.  The caller comes to the only core that it was left."""
    threads(2)
    assert library.handle.flags_of_worker() > 0                 # there is one
    cores, me = os.sched_getaffinity(0), threading.get_native_id()
    before, after = sorted(cores)[:2]
    try:
        for thread in map(int, os.listdir("/proc/self/task")):
            os.sched_setaffinity(thread, {before})
        assert library.handle.flags_of_worker() > 0
        moved = [thread for thread in map(int, os.listdir("/proc/self/task")) if before not in os.sched_getaffinity(thread)]
        assert moved and me not in moved
        os.sched_setaffinity(me, {after})
        counted(library, 1000, 1, 1)
        assert all(os.sched_getaffinity(thread) == cores - {after} for thread in moved)
    finally:
        for thread in map(int, os.listdir("/proc/self/task")):
            os.sched_setaffinity(thread, cores)


def test_callers_without_help(threads, library):
    """On a busy machine all is done, by whomever."""
    threads(2)
    team.team().handle.insist(0)
    np.testing.assert_array_equal(counted(library, 1000, 16, 50), 50 * np.arange(1000))


def test_callers_beside_each_other(threads, library):
    threads(3)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda size: counted(library, size, 16, 50), range(1000, 1040)))
    for size, items in zip(range(1000, 1040), found):
        np.testing.assert_array_equal(items, 50 * np.arange(size))


def test_set_before_the_first_use():
    assert team.team().handle.get_threads() >= 1
    assert team.address() == (team.team().address("team") if team.wanted() > 1 else 0)


@pytest.mark.parametrize("own, openmp, expected", [
    (0, None, "cores"), (0, "1", 1), (0, "1,4", 1), (0, "100000", "cores"), (0, "many", "cores"), (0, "", "cores"), (0, "0", "cores"),
    (1, None, 1), (7, "1", 7)])
def test_wanted(monkeypatch, own, openmp, expected):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if openmp is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", openmp)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with config.THREADS.set(own):
        assert team.wanted() == (cores if expected == "cores" else expected)


@pytest.mark.any_python
@pytest.mark.parametrize("m, n, k", [(193, 70, 9), (70, 193, 9), (1, 1030, 20), (1030, 1, 20), (9, 65, 40), (8, 129, 40), (145, 2, 40),
                                     (100, 100, 400), (260, 70, 40), (515, 66, 40), (210, 40, 1024),
                                     (400, 290, 300)], ids=str)
def test_products(threads, m, n, k):
    """Bit by bit what one thread computes, wherever a product is cut."""
    address = compiler.build(products.text("f32", shared=2), products.FLAGS).address("product")
    found = []
    for count in (1, 2, 3):
        threads(count)
        found.append([check(address, "f32", m, n, k, trans_a, trans_b, beta=beta)
                      for trans_a, trans_b, beta in itertools.product((0, 1), (0, 1), (0, 1))])
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


#: Rows, columns and inner size of products that were once cut unevenly, or not at all.
UNEVEN = [(1024, 256, 64), (256, 64, 256), (300, 300, 64), (100, 1000, 64), (200, 100, 128), (20, 800, 200), (1024, 30, 64), (300, 300, 300)]


@pytest.mark.any_python
@pytest.mark.parametrize("trans_a, trans_b", [(0, 0), (0, 1), (1, 0)])
def test_products_are_cut_evenly(threads, trans_a, trans_b):
    """Of two threads, the one that has most has little more than half."""
    body_of = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *2 * [ctypes.c_int64])
    run, found = ctypes.CFUNCTYPE(None, body_of, ctypes.c_void_p, *2 * [ctypes.c_int64]), []

    @run
    def shared(body, given, count, step):
        begins = range(0, count, abs(step))
        middle = begins[len(begins) // 2]
        found.append(max(middle, count - middle) / count)
        for begin in begins:
            body(given, begin, min(begin + abs(step), count))

    class Team(ctypes.Structure):
        _fields_ = [("run", run), ("threads", ctypes.c_int64)]

    library = compiler.build(products.text("f32", shared=4), products.FLAGS)
    team_of_two = Team(shared, 2)
    library.find("dy2static_set_team")(ctypes.byref(team_of_two))
    try:
        for m, n, k in UNEVEN:
            found.clear()
            check(library.address("product"), "f32", m, n, k, trans_a, trans_b)
            assert found and found[-1] <= 0.6, (m, n, k, found)
    finally:
        library.find("dy2static_set_team")(ctypes.c_void_p(team.address()))


#: Convolutions of which images, channels, or sums over images are shared.
WINDOWS = {
    "images": windows(9, 1, 8, 12, (17, 16), (3, 3), pad=(1, 1)),
    "images, strided": windows(9, 2, 8, 16, (33, 31), (3, 3), stride=(2, 2), pad=(1, 1)),
    "channels of x": windows(5, 1, 64, 96, (8, 8), (4, 4), stride=(2, 2), pad=(1, 1)),
    "channels": windows(2, 1, 40, 100, (9, 9), (3, 3), pad=(1, 1)),
    "one image": windows(1, 1, 40, 75, (9, 9), (3, 3), pad=(1, 1)),
    "1x1 of many channels": windows(2, 1, 260, 264, (4, 5), (1, 1)),
    "dilated, many channels": windows(1, 1, 128, 96, (9, 11), (2, 3), pad=(2, 1), dilate=(3, 2)),
    "channels of x, filters turned": windows(2, 1, 160, 40, (9, 11), (2, 3), pad=(2, 1), stride=(1, 2)),
    "images, few channels": windows(4, 1, 60, 50, (7, 7), (3, 3), pad=(1, 1)),
    "a channel each, tiny": windows(3, 160, 1, 1, (5, 6), (3, 3), stride=(2, 2), pad=(1, 1)),
    "groups": windows(2, 5, 32, 36, (6, 7), (3, 3), pad=(1, 1)),
    "groups, strided": windows(1, 8, 48, 48, (9, 8), (3, 3), stride=(2, 2), pad=(1, 1)),
    "groups of patches": windows(3, 4, 24, 64, (12, 12), (4, 4), stride=(4, 4)),
    "many places": windows(11, 1, 5, 6, (40, 41), (3, 3), pad=(1, 1)),
}


@pytest.mark.any_python
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", WINDOWS)
def test_convolutions(threads, call, name):
    """Bit by bit what one thread computes, and what NumPy does."""
    function, (args, expected) = native(call, "f32", WINDOWS[name]), reference(call, WINDOWS[name], np.float32)
    found = []
    for count in (1, 2, 3):
        threads(count)
        for _ in range(2):
            found.append(np.full(expected.shape, np.nan, np.float32))
            function(*args, found[-1])
    for result in found:
        np.testing.assert_array_equal(result, found[0])
    np.testing.assert_allclose(found[0], expected, rtol=1e-3, atol=1e-2)


def trained(compiled, special):
    """The parameter of a Link after each of three steps, and what was warned of."""
    link, optimizer = chainer.links.Scale(axis=0, W_shape=(250, 301)), chainer.optimizers.SGD(0.1)
    link.W.array[...] = np.linspace(-2, 2, link.W.size).reshape(link.W.shape)
    link.W.array.reshape(-1)[special] = np.inf
    optimizer.setup(link)

    def step():
        link.cleargrads()
        F.sum(F.square(link.W)).backward()
        optimizer.update()
        return link.W.array.copy()

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function = to_static(step, backend="c") if compiled else step
        return [function() for _ in range(3)], [str(warning.message) for warning in found]


@pytest.mark.parametrize("special", [[], [5, 40_000, 40_001, 75_000]], ids=["finite", "infinite"])
def test_updates(threads, special):
    """What eager mode makes of large arrays, and one warning for all shares that have something to say."""
    expected, warned = trained(False, special)
    for count in (1, 3):
        threads(count)
        found, warned_too = trained(True, special)
        np.testing.assert_array_equal(found, expected)
        assert warned_too == warned and len(warned) == bool(special)


# Generated code --------------------------------------------------------------------------------------------------------


def elementwise(x, y):
    return F.tanh(x * y) + F.exp(-x), F.transpose(x) * 2 + 1


def rows(x, y):
    return F.softmax(x) + y, F.layer_normalization(x * y, y[0], x[0]), F.logsumexp(x, axis=1)


def sums(x, y):
    return F.sum(x * y), F.sum(F.sigmoid(x), axis=0), F.max(y, axis=0), F.batch_normalization(x, y[0], y[1])


def multiplied(x, y):
    return F.matmul(x, y, transb=True), F.matmul(x[None] * np.float32(2), F.stack([y] * 3), transb=True)


def moved(x, y):
    return F.concat([x, y], axis=1) * 1, F.stack([x, y * 2], axis=1), F.pad(x, ((1, 0), (0, 2)), "constant"), F.flip(x, axis=0)


def pooled(x, y):
    images = F.reshape(x[:36, :64], (4, 9, 8, 8))
    places = np.arange(50) % 37 - 3
    return (F.max_pooling_2d(images, 3, 2, pad=1), F.average_pooling_2d(images, 2), F.unpooling_2d(images, 2),
            F.local_response_normalization(images), y[places])


FUNCTIONS = (elementwise, rows, sums, multiplied, moved, pooled)


def variables(rows=37, columns=70):
    random = np.random.RandomState(3)
    return [chainer.Variable(random.randn(rows, columns).astype("f")) for _ in range(2)]


def results(function):
    """Results and gradients."""
    operands = variables()
    found = function(*operands)
    loss = sum(F.sum(F.square(y)) for y in found)
    gradients = chainer.grad([loss], operands)
    return [v.array for v in (*found, *gradients)]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_same_numbers(threads, function):
    """Bit by bit for one and several threads; what eager Chainer computes, up to rounding."""
    compiled = to_static(function, strict=True, backend="c")
    found = []
    for count in (1, 2, 3):
        threads(count)
        found += [results(compiled) for _ in range(2)]
    for values in found:
        for value, first, expected in zip(values, found[0], results(function)):
            np.testing.assert_array_equal(value, first)
            np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-4)
    assert compiled.stats()["native"] > 0


def test_warnings_of_shares(threads):
    """The last element divides by zero, whoever gets to it: the NumPy program does it again and warns."""
    threads(3)
    compiled = to_static(lambda x, y: (x / y, F.sum(x / y)), strict=True, backend="c")
    x, y = variables()
    for last in (2, 0, 1):
        y.array[-1, -1] = last
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            quotient, _ = compiled(x, y)
        assert bool(seen) == (last == 0)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(quotient.array, x.array / y.array)


def test_bail_out_of_a_share(threads):
    """An index that there is not, whoever gets to it: NumPy's error."""
    threads(3)
    compiled = to_static(lambda x, places: F.tanh(x)[places.array] * 2, strict=True, backend="c")
    x, places = variables()[0], np.arange(40, dtype=np.int64) % 37
    for wrong in (False, True, False):
        places[-1] = 99 if wrong else 5
        if wrong:
            with pytest.raises(IndexError):
                compiled(x, chainer.Variable(places))
        else:
            y = compiled(x, chainer.Variable(places))
            np.testing.assert_allclose(y.array, np.tanh(x.array)[places] * 2, rtol=1e-5)


def _in_child(check):
    """Run a function in a child made by fork, which has a minute; gives its exit status."""
    child = os.fork()
    if not child:
        try:
            check()
            os._exit(0)
        finally:
            os._exit(1)
    for _ in range(6000):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "the child hangs"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is Unix's")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_fork(threads, library):
    """A child computes alone, the parent goes on with its workers."""
    threads(3)
    compiled = to_static(sums, strict=True, backend="c")
    expected, handle = results(compiled), team.team().handle

    def check():
        for value, other in zip(results(compiled), expected):
            np.testing.assert_array_equal(value, other)
        assert (handle.get_threads(), handle.get_workers()) == (1, 0)
        np.testing.assert_array_equal(counted(library, 1000, 16, 10), 10 * np.arange(1000))

    assert handle.get_workers() >= 2
    assert [_in_child(check) for _ in range(3)] == [0, 0, 0]
    np.testing.assert_array_equal(counted(library, 1000, 16, 10), 10 * np.arange(1000))
    assert handle.get_workers() >= 2
