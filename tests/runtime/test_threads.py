"""Threads: programs are re-entrant, captures belong to one thread, and other threads see Chainer unchanged."""
import concurrent.futures
import functools
import random
import sys
import threading

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array, check, variable

import dy2static
from dy2static import pipeline, to_static
from dy2static.heap.aborts import CaptureAborted
from dy2static.heap.global_state_guard import undisturbed
from dy2static.parts.divided import Divided, Parts
from dy2static.runtime.budget import Verdict
from dy2static.symbolic.patches import patched
from dy2static.threads.alive import Alive


def in_threads(work, count=6):
    """Run ``work(k)`` in threads at once; the first exception of any is raised here."""
    errors, start = [], threading.Barrier(count)

    def run(k):
        try:
            start.wait()
            work(k)
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def net(x, w, n):
    h = F.tanh(F.matmul(x, w)) * n
    return F.sum(h * h), h


def gradients(function, k, rows):
    x, w = variable(rows, 4, seed=k), variable(4, 5, seed=k + 7)
    loss, h = function(x, w, 0.5 + k)
    loss.backward()
    return loss.array, h.array, x.grad, w.grad


def test_first_calls_at_once():
    static = to_static(net)

    def work(k):
        for rows in (2, 3, 2, 5):
            for a, b in zip(gradients(static, k, rows), gradients(net, k, rows)):
                np.testing.assert_allclose(a, b, rtol=1e-5)
    in_threads(work)
    assert not static.dispatcher.fallback.refused


def test_one_program_many_threads():
    static = to_static(net)
    gradients(static, 0, 3), gradients(static, 1, 3), gradients(static, 2, 3)
    captures = static.cache_info().captures

    def work(k):
        for _ in range(60):
            for a, b in zip(gradients(static, k, 3), gradients(net, k, 3)):
                np.testing.assert_allclose(a, b, rtol=1e-5)
    in_threads(work)
    assert static.cache_info().captures == captures


def test_eager_work_while_another_thread_captures():
    """Captures in some threads, eager Chainer in others."""
    apply = chainer.FunctionNode.apply

    def work(k):
        for i in range(15):
            if k % 2:
                model = L.Linear(3, 2, initialW=array(2, 3, seed=i))
                y = F.sum(F.tanh(model(array(4, 3, seed=k))))
                y.backward()
                assert isinstance(y.array, np.ndarray) and model.W.grad is not None
            else:
                fresh = to_static(lambda x: F.sum(F.relu(x) * 2))
                np.testing.assert_allclose(fresh(array(2, 3, seed=i)).array, np.maximum(array(2, 3, seed=i), 0).sum() * 2, rtol=1e-5)
    in_threads(work)
    assert chainer.FunctionNode.apply is apply


class Doubling(chainer.FunctionNode):
    """A user's function: its types are learned from an eager call."""

    def forward(self, inputs):
        return inputs[0] * 2,

    def backward(self, indexes, gys):
        return gys[0] * 2,


def test_observing_and_capturing_at_once():
    apply = chainer.FunctionNode.apply

    def work(k):
        for i in range(10):
            static = to_static(lambda x: Doubling().apply((F.relu(x),))[0])
            for _ in range(3):
                np.testing.assert_allclose(static(array(2, 3, seed=i)).array, np.maximum(array(2, 3, seed=i), 0) * 2)
    in_threads(work)
    assert chainer.FunctionNode.apply is apply


def test_calls_that_wait_for_the_first_one_do_not_count_as_tries():
    """The types of results are learned from an eager call, which has not ended; other threads call the function meanwhile."""
    going, count = threading.Event(), threading.Semaphore(0)

    class Waiting(Doubling):
        """In eager mode its forward waits."""

        def forward(self, inputs):
            count.release()
            assert going.wait(60)
            return super().forward(inputs)
    static, results = to_static(lambda x: Waiting().apply((F.relu(x),))[0]), []
    threads = [threading.Thread(target=lambda: results.append(static(array(2, 3)).array)) for _ in range(6)]
    for thread in threads:
        thread.start()
        assert count.acquire(timeout=60)
    going.set()
    for thread in threads:
        thread.join(60)
    assert len(results) == 6 and not static.dispatcher.fallback.refused
    captures = static.cache_info().captures
    np.testing.assert_allclose(static(array(2, 3)).array, np.maximum(array(2, 3), 0) * 2)
    assert static.cache_info().captures == captures + 1


def test_parts_that_are_not_worth_their_calls_in_two_threads():
    """Both calls run in parts when it turns out that this does not pay; both were about to forget the signature."""
    barrier, lock = threading.Barrier(2), threading.Lock()

    @dy2static.not_to_static
    def meet():
        barrier.wait(60)

    @to_static
    def work(x):
        y = x + 1
        with lock:
            y = y * 2
        meet()
        return y

    def calls(k):
        for _ in range(4):
            np.testing.assert_array_equal(work(array(2, 3)), (array(2, 3) + 1) * 2)
    with pytest.warns(dy2static.FallbackWarning) as told:
        in_threads(calls, 2)
    assert len(told) == 1


def test_whether_parts_pay_is_asked_by_one_thread_at_a_time():
    """A question that another thread had not answered yet was taken for that of a function that calls itself."""
    divided, entered = Divided(net, Parts(lambda function, parts: None)), []
    divided._calls = 4

    class Part:
        def is_worth_it(self):
            other = threading.Thread(target=lambda: entered.append(divided.parts.known.lock.acquire(blocking=False)))
            other.start()
            other.join(60)
            return True
    divided._used = [Part()]
    assert divided.is_worth_it() is True and entered == [False]


def test_what_varies_changes_while_no_other_thread_captures(monkeypatch):
    """A capture reads it; where captures no longer pay, calls look at the programs, too, and note what varies."""
    static, held = to_static(lambda x, n: F.relu(x) * n), []
    dispatcher = static.dispatcher
    static(array(2, 3), 2)
    note = dispatcher.varying.note
    monkeypatch.setattr(dispatcher.varying, "note", lambda guards: (held.append(dispatcher.lock._is_owned()), note(guards)))
    monkeypatch.setattr(dispatcher.budget, "ask", lambda: Verdict.PAUSE)
    np.testing.assert_allclose(static(array(2, 3), 3).array, np.maximum(array(2, 3), 0) * 3)
    assert set(held) == {True}


def test_config_of_each_thread():
    """``chainer.config`` is thread-local; so is what a call sees of it."""
    static = to_static(lambda x: (F.dropout(x, 0.5), chainer.config.train))
    x = array(2, 3)
    static(x), static(x)

    def work(k):
        for _ in range(20):
            with chainer.using_config("train", bool(k % 2)):
                y, train = static(x)
                assert train == bool(k % 2) and (train or np.array_equal(y.array, x))
    in_threads(work)


@pytest.fixture
def other():
    """Runs functions in another thread, which is there all the time."""
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        executor.submit(int).result()
        yield lambda function: executor.submit(function).result()


def test_a_capture_while_another_thread_draws(other, monkeypatch):
    """Such as a data loader: what it draws is neither taken for the capture's nor taken back."""
    compile_call, drawn = pipeline.compile_call, []

    def disturbed(*args):
        program = compile_call(*args)
        drawn.extend(other(lambda: [np.random.rand(), random.random()]))
        return program
    monkeypatch.setattr(pipeline, "compile_call", disturbed)
    static = to_static(lambda x: F.sum(F.dropout(F.relu(x))))
    np.random.seed(0), random.seed(0)
    static(array(2, 3))
    info = static.cache_info()
    assert (info.captures, info.fallbacks) == (1, 0) and len(drawn) >= 4
    np.random.seed(0), random.seed(0)
    assert drawn == [f() for _ in drawn[::2] for f in (np.random.rand, random.random)]


def test_a_capture_that_draws_while_another_thread_draws(other):
    calls = []

    def capture(draw):
        calls.append(draw)
        other(np.random.rand)
        return draw and random.random()
    assert undisturbed(lambda: capture(None)) is None and len(calls) == 2
    with pytest.raises(CaptureAborted, match="draws random numbers"):
        undisturbed(lambda: capture(True))
    assert sys.getprofile() is None


def test_the_global_configuration_that_another_thread_sets(other):
    try:
        undisturbed(lambda: other(lambda: setattr(chainer.global_config, "cudnn_deterministic", True)))
        assert chainer.global_config.cudnn_deterministic is True
    finally:
        chainer.global_config.cudnn_deterministic = False


def test_captures_and_calls_while_another_thread_captures():
    """What that replaces in Chainer is not taken for a change."""
    static = to_static(lambda x: F.sum(F.mean(x) * 2))
    with patched():
        static(array(2, 3))
    for _ in range(2):
        static(array(2, 3))
        with patched():
            static(array(2, 3))
    info = static.cache_info()
    assert (info.captures, info.misses, info.fallbacks) == (1, 1, 0)


class Net(chainer.Chain):
    """A model that eight threads share: its statistics and its state are not what they write at the same time."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a = L.Linear(4, 6, initialW=array(6, 4))
            self.b = L.Linear(6, 3, initialW=array(3, 6, seed=2))

    def forward(self, x, scale):
        h = F.relu(self.a(x)) * scale
        while float(F.max(abs(h)).array) > 1:
            h = F.tanh(h)
        return self.b(h)


def test_eight_threads_and_one_model():
    """Each thread has shapes, numbers and gradients of its own; the cache is too small for all of them together."""
    eager, model = Net(), Net()
    static = to_static(model, cache_limit=5)

    def gradients_of(net, k, rows):
        x = variable(rows, 4, seed=k)
        y = net(x, 0.5 + k)
        return [y.array, *[g.array for g in chainer.grad([F.sum(y * y)], [x, net.a.W, net.b.b])]]

    def work(k):
        for i in range(25):
            rows = 1 + (k + i) % 6
            for one, other in zip(gradients_of(static, k, rows), gradients_of(eager, k, rows)):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
    in_threads(work, count=8)
    info = type(model).forward.cache_info()
    assert info.programs <= 5 and info.fallbacks == 0 and info.captures == info.programs + info.evicted


def test_nothing_is_captured_twice():
    """Who waits for the capture of another thread uses what came out."""
    static = to_static(net)
    gradients(static, 0, 3), gradients(static, 1, 3)
    captures = static.cache_info().captures
    in_threads(lambda k: gradients(static, k, 7), count=8)
    assert static.cache_info().captures == captures + 1


def test_steps_of_eight_models_at_once():
    """One decorated class, a model for each thread, trained with an optimizer: each is as if trained alone."""
    class Model(Net):
        forward = to_static(Net.forward)

    def trained(model, k):
        optimizer = chainer.optimizers.MomentumSGD(0.01).setup(model)
        for i in range(6):
            optimizer.update(lambda: F.sum(model(array(3, 4, seed=k + i), 1.0) ** 2))
        return [param.array for param in model.params()]

    def work(k):
        for one, other in zip(trained(Model(), k), trained(Net(), k)):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    in_threads(work, count=8)


# --- numbers that calls read and write ------------------------------------------------------------------------------------------

TOTAL = 0


class Counts(chainer.Chain):
    """A model that counts its calls in many places."""

    def __init__(self):
        super().__init__()
        self.n, self.sum, self.named, self.listed = 0, 0.0, {"n": 0}, [7, 0]
        with self.init_scope():
            self.l = L.Linear(64, 64, initialW=array(64, 64))
        count = 0

        def add():
            nonlocal count
            count += 1
            return count
        self.add = add

    def attribute(self, x):
        self.n += 1
        return F.tanh(self.l(x)), self.n

    def several(self, x):
        self.n += 1
        self.sum = self.sum + 0.5
        self.named["n"] += 1
        self.listed[1] += 1
        self.add()
        return F.tanh(self.l(x))

    # What changes here enters a computation, or decides: the call begins again.

    def computed_with(self, x):
        self.n += 1
        return F.tanh(self.l(x)) * self.n

    def decided_by(self, x):
        self.n += 1
        return F.tanh(self.l(x)) if self.n % 3 else x

    def from_arrays(self, x):
        self.sum += float(F.sum(F.tanh(self.l(x)) * 0 + 1).array) / x.size
        return self.sum

    def of_the_module(self, x):
        global TOTAL
        TOTAL += 1
        return F.tanh(self.l(x))

    def drawing(self, x):
        self.n += 1
        return F.dropout(F.tanh(self.l(x)))


COUNTERS = {
    "attribute": lambda model: [model.n],
    "several": lambda model: [model.n, model.sum * 2, model.named["n"], model.listed[1], model.add() - 1],
    "of_the_module": lambda model: [TOTAL],
    "drawing": lambda model: [model.n]}


@pytest.mark.parametrize("name, backend", [*((name, "numpy") for name in COUNTERS), ("attribute", "c")])
def test_no_count_is_lost(name, backend):
    """Of calls that other threads come between, with the captures among them."""
    global TOTAL
    TOTAL, model, x = 0, Counts(), array(8, 64)
    static = to_static(getattr(Counts, name), backend=backend)
    first = 3 if name == "drawing" else 0               # what draws cannot begin again
    for _ in range(first):
        static(model, x)
    seen = []

    def work(k):
        seen.extend(static(model, x) for _ in range(50))
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        in_threads(work)
    finally:
        sys.setswitchinterval(before)
    assert COUNTERS[name](model) == [300 + first] * len(COUNTERS[name](model))
    assert not static.dispatcher.fallback.refused
    if name == "attribute":
        assert sorted(n for _, n in seen) == list(range(1, 301))


@pytest.mark.parametrize("changes", [False, True])
def test_what_the_call_itself_changes_is_not_read_again(changes):
    """A number that was written before a call of unknown code, which may change it, too."""
    def make(compile):
        model = Counts()

        def look(x):
            model.__dict__["n"] += 10 * changes

        def count(x):
            before = model.n
            model.n += 1
            dy2static.not_to_static(look)(x)
            model.n = before + 2
            return F.tanh(x)
        return compile(count), model
    check(make, [lambda: (variable(2, 3),)] * 4)


class Meanwhile:
    """A model, and calls in the middle of which another thread changes it."""

    def __init__(self, name):
        self.model, self.x, self.left, self.calls = Counts(), array(8, 64), 0, 0
        self.static = to_static(getattr(Counts, name), backend="numpy")
        for _ in range(9):
            self.static(self.model, self.x)
        for program in self.static.dispatcher.programs:
            entry = program.call.__globals__
            entry["forward"] = functools.partial(self._forward, entry["forward"])

    def _forward(self, forward, *operands):
        self.calls += 1
        if self.left:
            self.left -= 1
            self.model.__dict__["n"] += 300
            self.model.__dict__["sum"] += 300.0
        return forward(*operands)

    def call(self, changes):
        """How often the call begins; as many changes as that come in between."""
        self.left, self.calls = changes, 0
        self.static(self.model, self.x)
        return self.calls


@pytest.mark.parametrize("name", ["computed_with", "decided_by", "from_arrays"])
def test_a_call_begins_again_where_a_number_was_used(name):
    meanwhile = Meanwhile(name)
    assert meanwhile.call(1) == 2
    found = meanwhile.model.sum if name == "from_arrays" else meanwhile.model.n
    assert round(found) == 310


def test_a_call_does_not_begin_again_for_ever():
    """One that takes long ends, though others change what it has read all the time."""
    meanwhile = Meanwhile("computed_with")
    assert meanwhile.call(1000) < 20 and meanwhile.model.n == 10 + 300 * (1000 - meanwhile.left)


def test_all_objects_while_others_are_added():
    """A `weakref.WeakSet` raises RuntimeError then."""
    class Thing:
        pass
    alive, kept = Alive(), [Thing() for _ in range(3)]
    for thing in kept:
        alive.add(thing)
    for thing in alive.all():
        kept.append(alive.add(Thing()))
    assert alive.all() == kept
    del kept[1:5], thing
    assert alive.all() == kept
