"""Functions in parts: a line that cannot be compiled runs as Python, and everything is as in eager mode."""
import collections
import contextlib
import random
import sys
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import paces
import pytest
from against_eager import array, check, programs, variable
from breaks import refuse as broken

from dy2static import CaptureError, FallbackWarning, to_static
from dy2static.dispatch import pace, paying

SCALE = 2.0


def calls(n=3):
    """Calls with two Variables of other contents each time."""
    return [lambda k=k: (variable(3, 4, seed=k), variable(3, 4, seed=k + 10)) for k in range(n)]


def in_a_row(compile):
    def f(x, w):
        h = F.tanh(x) * w
        h = broken(h + 1)
        h = F.sigmoid(h) * h
        return F.sum(h * 2), h
    return compile(f), []


def in_a_loop(compile):
    def f(x, w):
        h = x
        for i in range(4):
            h = F.tanh(h) * w
            h = h + i
            if i == 2:
                continue
            h = broken(h)
            h = F.relu(h) + 0.1
            if float(F.sum(h).array) > 1e6:
                break
            h = F.sin(h) * 2
        else:
            h = h * 3 + 1
        return F.sum(h)
    return compile(f), []


def returns_from_parts(compile):
    def f(x, w):
        for i in range(3):
            h = F.tanh(x) * (i - 1)
            h = h + w
            if float(F.sum(h).array) > 2:
                return h * 2, i
            broken(h)
            h = F.sin(h) + x
            if float(F.sum(h).array) < -1:
                return h
        return F.exp(h) * w
    return compile(f), []


def in_with(compile):
    @contextlib.contextmanager
    def scope(log):
        log.append("in")
        try:
            yield log
        finally:
            log.append("out")

    log = []

    def f(x, w):
        with chainer.no_backprop_mode(), scope(log) as seen:
            k = F.tanh(x) * w
            k = broken(k + 1)
            seen.append(len(seen))
            k = F.exp(k) * 0.1
        h = F.relu(x * k) * w
        return F.sum(h), k
    return compile(f), [log]


def in_try(compile):
    def f(x, w):
        h = x
        try:
            h = F.tanh(h) * w
            h = broken(h) + 1
            g = F.exp(h) * 2
            if float(F.sum(g).array) > 20:
                raise ValueError("large")
            h = g
        except ValueError as error:
            h = h + len(str(error))
            h = F.sin(h) * 3
        finally:
            h = h * 0.5
            h = F.sin(h)
        return F.sum(h)
    return compile(f), []


def seen_by_a_handler(compile):
    def f(x, w):
        done = 0
        try:
            h = F.tanh(x) * w
            done = 1
            h = F.sin(h) * w
            done = 2
            broken(h)
            h = F.reshape(h, (12 + (float(h.array[0, 0]) > 0),))
            done = 3
        except chainer.utils.type_check.InvalidType:
            h = h * done
        return F.sum(h), done
    return compile(f), []


def names_without_values(compile):
    def f(x, w):
        n = int(x.array[0, 0] > 0)
        if n:
            m = F.tanh(x) * 2
        h = F.relu(x) + 1
        broken(h)
        h = F.sin(h) * w
        if n:
            h = h * m + 1
        broken(h)
        try:
            h = F.exp(m) * h
        except NameError as error:
            h = h * len(type(error).__name__)
        return F.sum(h)
    return compile(f), []


def deleted(compile):
    def f(x, w):
        h = F.tanh(x) * w
        k = F.sin(h) + 1
        broken(k)
        del h
        k = F.cos(k) * 2
        try:
            return F.sum(h)  # noqa: F821
        except UnboundLocalError:
            return F.sum(k) * 2
    return compile(f), []


def in_a_callee(compile):
    def inner(x, w, n=2, *more, scale=1):
        for _ in range(n):
            x = F.tanh(x) * w
            x = broken(x) * scale
            x = F.sin(x) + 1
        return x, more

    def f(x, w):
        h = F.relu(x) * 2 + w
        h, more = inner(h, w, 2, h, scale=3)
        h = h * F.sum(more[0])
        return F.sum(h)
    return compile(f), []


class Model(chainer.Chain):
    """Counts, logs and keeps what it computes."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(4, 4, initialW=array(4, 4, seed=1))
        self.count, self.log, self.last = 0, [], None

    def forward(self, x, w):
        self.count += 1
        h = F.tanh(self.l(x)) / self.count
        self.log.append(round(float(F.sum(h).array), 2))
        broken(h)
        self.count += 1
        h = F.sin(h) / self.count
        self.last = h
        return F.sum(h * w)


class Derived(Model):
    def forward(self, x, w):
        h = super().forward(x, w) * 2 + 1
        broken(h)
        self.log.append("between")
        return super().forward(x, w) * h


def in_a_method(compile):
    model = Model()
    return compile(model.forward), [model]


def in_a_base_class(compile):
    model = Derived()
    return compile(model.forward), [model]


def in_links(compile):
    model, other = Model(), Model()

    def f(x, w):
        h = F.sin(x) * 2
        h = model(h, w) + h
        return other(h, w) * 2 + 1
    return compile(f), [model, other]


def containers(compile):
    def f(x, w):
        hs, named = [], {}
        h = x
        for _ in range(2):
            h = F.tanh(h) * w
            h = h * 1.1
            hs.append(h)
        broken(h)
        named["all"] = hs
        hs.append(F.relu(h) + 1)
        named["sins"] = [F.sin(k) * 2 for k in hs]
        broken(h)
        hs[0] = F.exp(hs[0]) + named["sins"][1]
        named["sum"] = F.sum(hs[0]) + F.sum(named["all"][0])
        return named["sum"], named, hs
    return compile(f), []


def closures(compile):
    def f(x, w):
        n = 0

        def count(y):
            nonlocal n
            n += 1
            return F.tanh(y) * n
        h = count(x) * w
        broken(h)
        h = count(h) + n
        k = 3
        scaled = [lambda y: y * k]
        h = scaled[0](h) + 1
        k = 5
        broken(h)
        h = scaled[0](F.sin(h)) * n
        return F.sum(h)
    return compile(f), []


def global_names(compile):
    def f(x, w):
        global SCALE
        h = F.tanh(x) * SCALE
        SCALE = SCALE + 1
        broken(h)
        h = F.sin(h) * SCALE + w
        SCALE = 2.0
        return F.sum(h)
    return compile(f), []


def generator(compile):
    def steps(x, w):
        h = F.tanh(x)
        for _ in range(3):
            h = F.sin(h) * w + 1
            yield h
            broken(h)
            h = F.cos(h) * 2

    def f(x, w):
        total = F.sum(x) * 2
        for h in steps(x, w):
            total = total + F.sum(h * h)
            total = F.tanh(total)
        return total
    return compile(f), []


def random_numbers(compile):
    def f(x, w):
        h = F.dropout(x, 0.3) * w
        h = h + np.random.rand(3, 4).astype("f")
        broken(h)
        h = F.dropout(h, 0.5)
        return F.sum(h * np.random.rand())
    return compile(f), []


def gradients_between(compile):
    def f(x, w):
        h = F.tanh(x) * w
        loss = F.sum(h * h)
        loss.backward(loss_scale=2.0)
        g = x.grad * 2 + 1
        h = F.sin(x * g) * w
        x.cleargrad()
        w.cleargrad()
        return F.sum(h)
    return compile(f), []


def assigned_in_expressions(compile):
    def f(x, w):
        if (n := len(x)) > 1:
            h = F.tanh(x) * n
            h = h + (k := F.sum(x))
        broken(h)
        return F.sum(h * k * n) + sum(F.sum(y) for y in (h, w))
    return compile(f), []


def decided_by_values(compile):
    def f(x, w):
        h = F.tanh(x) * 2 + w
        if float(F.sum(h).array) > 0:
            h = F.sin(h) * 2
            broken(h)
            h = F.exp(h) + 1
        else:
            h = F.cos(h) * 3
        while float(F.sum(h).array) > 5:
            h = F.sin(h * 0.5)
            broken(h)
            h = F.tanh(h - 0.3)
        return F.sum(h)
    return compile(f), []


def several_breaks(compile):
    def f(x, w):
        h = F.tanh(x) * w
        h = broken(h) + broken(w)
        h = F.sin(h) * 2
        h = broken(h)
        h = broken(h)
        h = F.cos(h) + x
        return broken(F.sum(h * h))
    return compile(f), []


def left_before_a_name_has_a_value(compile):
    """The part with the `break` is divided later: what stands for no value passes through parts of a part."""
    def cut_later(i, x):
        return broken(x) is None if i else False

    def f(x, w):
        total = F.sum(x) * 2
        for k in range(3):
            broken(total)
            h = F.tanh(x) * 2 + k
            if k == 2 or cut_later(k, x):
                break
            d = F.sin(h) * w
            total = total + F.sum(d)
            del d
        return total
    return compile(f), []


def writes_parameters_before_they_are_used(compile):
    """The lines that write them run as Python: a `backward` after the call reads what they wrote."""
    links = [L.Linear(4, 4, initialW=array(4, 4, seed=k)) for k in range(2)]

    def f(x, w):
        h = F.tanh(x) * w
        links[0].W.array *= np.tri(4, dtype="f")
        h = F.tanh(links[0](h))
        links[1].W.array = np.clip(links[1].W.array, -0.5, 0.5)
        return F.sum(links[1](h) * 2) * F.sum(links[0].W)
    return compile(f), links


def averages_parameters(compile):
    """A slow copy follows the weights, in the two ways of writing that, and a Variable of an earlier part is changed in place."""
    fast, slow, slower = [L.Linear(4, 4, initialW=array(4, 4, seed=k)) for k in range(3)]

    def f(x, w):
        h = F.exp(F.tanh(fast(x)))
        for _, (p, q) in enumerate(zip(slow.params(), fast.params())):
            p.array *= 0.9
            p.array += 0.1 * q.array
        for (_, p), q in zip(sorted(slower.namedparams()), slow.params()):
            p.data = 0.5 * p.data + 0.5 * q.data
        broken(h)
        h.array *= w.array
        return F.sum(F.tanh(h) * slow(h)) * F.sum(F.tanh(slower(h)))
    return compile(f), [fast, slow, slower]


def trains_a_critic_before_it_is_used(compile):
    """Its update runs as Python: the gradients of the generator, which go through a part, read the updated weights."""
    generator, critic = [L.Linear(4, 4, initialW=array(4, 4, seed=k)) for k in range(2)]
    first, second = [chainer.optimizers.Adam(0.1).setup(link) for link in (critic, generator)]

    def f(x, w):
        made = F.tanh(generator(x))
        broken(made)
        of_critic = F.sum(F.square(critic(made.array)) * w.array)
        critic.cleargrads()
        of_critic.backward()
        first.update()
        loss = F.sum(F.square(critic(made) - 1))
        generator.cleargrads()
        loss.backward()
        second.update()
        return loss, of_critic
    return compile(f), [generator, critic]


def of_a_lambda(compile):
    return compile(lambda x, w: F.sum(broken(F.tanh(x) * w)) * in_parts(x, w)), []


def in_parts(x, w):
    """Called by a lambda."""
    h = F.sin(x) * w
    return F.sum(h) + 1


@pytest.mark.parametrize("make", programs(globals()), ids=lambda make: make.__name__)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_everything_is_as_in_eager_mode(make, backend):
    check(make, calls(), strict="parts", backend=backend)


def twice(x):
    h = F.tanh(x) * 2
    broken(h)
    return F.sum(F.sin(h) * 3)


def test_warning_counts_and_source():
    f = to_static(twice)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            f(variable(3))
    line = twice.__code__.co_firstlineno + 2
    message, = [str(w.message) for w in seen if w.category is FallbackWarning]
    assert message.startswith("twice: line ") and "runs as Python, between compiled parts: " in message
    stats = f.stats()
    assert (stats["parts"], stats["cuts"], stats["fallbacks"], stats["captures"]) == (2, 1, 0, 2)
    assert "_dy.part_0(x)" in f.code and "_dy.call(broken)(h)" in f.code and "# part_1: lines" in f.code
    assert [part.stats()["programs"] for part in f.parts] == [1, 1]
    report = f.explain(variable(3))
    assert "this call runs in 2 compiled parts, with Python for 1 line between them; " in report and len(report.cuts) == 1 and report.reason is None
    assert "graph" in str(report.marks(line - 1)) and [mark.kind for mark in report.marks(line)] == ["cut"]


def test_a_gradient_that_ends_at_an_earlier_cut_names_the_line_of_that():
    def step(x):
        h = broken(F.tanh(x))
        loss = F.sum(h * h)
        loss.backward()
        return loss
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        to_static(step)(variable(3))
    first, second = [str(w.message) for w in seen if w.category is FallbackWarning]
    line = step.__code__.co_firstlineno + 1
    assert first.startswith(f"test_a_gradient_that_ends_at_an_earlier_cut_names_the_line_of_that.<locals>.step: line {line} runs as Python")
    assert f"a gradient reaches what was computed before line {line}, which runs as Python" in second
    assert second.endswith(f"; move line {line} after this one, or out of the compiled function")


def test_strict():
    with pytest.raises(CaptureError):
        to_static(twice, strict=True)(variable(3))
    to_static(twice, strict="parts")(variable(3))
    f = to_static(lambda x: broken(x), strict="parts")
    for _ in range(2):
        with pytest.raises(CaptureError):
            f(variable(3))


def test_nothing_left_to_compile_is_a_fall_back():
    f = to_static(lambda x: broken(x))
    with pytest.warns(FallbackWarning, match="runs in eager mode for this signature"):
        f(variable(3))
    f(variable(3))
    assert f.cache_info().fallbacks == 2 and f.stats()["parts"] == 0


def test_other_signatures_may_be_whole():
    @to_static
    def f(x, n):
        h = F.tanh(x) * 2
        if n:
            broken(h)
        return F.sin(h) + 1
    f(variable(3), None)
    with pytest.warns(FallbackWarning):
        f(variable(3), True)
    f(variable(3), None)
    assert f.cache_info().programs == 1 and f.stats()["parts"] == 2


@pytest.mark.skipif(sys.version_info < (3, 11), reason="before Python 3.11, the place of a call in its line is not known")
def test_tracebacks_show_the_users_lines_once():
    def f(x):
        h = F.tanh(x) * 2
        broken(h)
        h = F.sin(h) * 2
        return F.reshape(h, (len(h), 77))
    frames = []
    for function in (f, to_static(f)):
        with pytest.raises(chainer.utils.type_check.InvalidType) as caught, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(variable(3))
        frames.append([(entry.name, entry.lineno) for entry in caught.traceback if entry.path.name == "test_parts.py"][1:])
    assert frames[0] == frames[1]


def test_cleared():
    f = to_static(twice)
    for _ in range(2):
        with pytest.warns(FallbackWarning):
            f(variable(3))
        f.clear_cache()
        assert f.stats()["parts"] == f.stats()["cuts"] == 0


def test_profile_goes_through_parts():
    f = to_static(twice)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f(variable(3))
    with f.profile() as profile:
        f(variable(3))
    assert "tanh" in str(profile) and "sin" in str(profile)


def test_functions_that_each_call_makes_are_compiled_a_few_times_only():
    @to_static
    def f(x):
        def inner(y):
            return F.tanh(y) * 2 + F.sin(y)
        h = F.relu(x) * 2
        h = inner(broken(h)) + inner(h)
        return F.sum(h * h)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4):
            f(variable(3))
        captures = f.stats()["captures"]
        for _ in range(4):
            f(variable(3))
    assert f.stats()["captures"] == captures <= 5


def test_a_replaced_call_of_links_is_called(monkeypatch):
    model = Model()

    def f(x, w):
        h = F.sin(x) * 2
        return F.sum(model(broken(h), w) * w)
    static = to_static(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            static(variable(3, 4), variable(3, 4))
        original = chainer.Link.__call__
        monkeypatch.setattr(chainer.Link, "__call__", lambda self, *args: original(self, *args) * 5)
        found = []
        for function in (f, static):
            model.count = 0
            found.append(function(variable(3, 4), variable(3, 4)).array)
    np.testing.assert_allclose(*found, rtol=1e-5)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_a_view_that_a_decision_chose_is_written_by_a_line_between_parts(backend):
    """The part gives the view itself, also where native code would copy it: the write is seen in the caller's array."""
    def f(x):
        row = x[0] if x.sum() > 1 else x[1]
        y = np.exp(x) + np.exp(-x) * np.sin(x) - np.cos(x) * x + np.tanh(x) * np.sqrt(np.abs(x)) + x * x - np.arctan(x) * 2
        broken(1)
        row += 10
        return y
    static = to_static(f, backend=backend)
    for scale in (1, -1, 1):
        expected, given = np.full((2, 3), scale, np.float32), np.full((2, 3), scale, np.float32)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            np.testing.assert_allclose(static(given), f(expected), rtol=1e-5)
        np.testing.assert_array_equal(given, expected)
    assert static.stats()["programs"] > 0


@pytest.mark.parametrize("name", ["remove", "index", "count"])
def test_a_method_of_a_list_compares_arrays(name):
    """A line of Python between parts calls it, of the list that was made."""
    def f(items):
        made = list(items)
        getattr(made, name)(items[1])
        return F.sum(items[0][0])

    items = [(array(3), 1), (array(3, seed=1), 2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        with pytest.raises(ValueError, match="truth value of an array"):
            to_static(f)(items)


def trained_when_there_is_enough(learn, memory, x):
    memory.append(x)
    drawn = random.sample(memory, min(4, len(memory)))
    if len(memory) < 9:
        return None
    return learn(drawn)


def test_the_work_may_begin_late():
    """The first calls do too little in their parts, which are left to Python, but not for good."""
    def run(wrap):
        random.seed(0)
        net, memory = L.Linear(4, 3, initialW=array(3, 4)), collections.deque(maxlen=20)
        optimizer = chainer.optimizers.Adam().setup(net)

        def learn(drawn):
            loss = F.sum(F.square(F.tanh(net(np.stack(drawn)))))
            net.cleargrads()
            loss.backward()
            optimizer.update()
            return float(loss.array)
        static = wrap(trained_when_there_is_enough)
        return [static(learn, memory, array(4, seed=k)) for k in range(40)], static

    eager, _ = run(lambda function: function)
    with pytest.warns(FallbackWarning, match="random.sample"):
        found, static = run(lambda function: to_static(function, backend="numpy"))
    assert [x is None for x in eager] == [x is None for x in found]
    np.testing.assert_allclose([x or 0 for x in eager], [x or 0 for x in found], rtol=1e-4)
    stats = static.stats()
    assert stats["parts"] >= 1 and stats["segments"] + stats["nodes"] > 50 and stats["captures"] <= 12, static.explain_misses()


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
@pytest.mark.parametrize("compiled, python, parts", [(2.0, 1.0, 0), (1.0, 2.0, 1)])
def test_a_part_that_numpy_computes_in_is_measured_beside_python(monkeypatch, compiled, python, parts):
    """A clock of the test says how long calls of both kinds take; the results are the same."""
    paces.measure(monkeypatch, lambda: compiled, lambda: python)

    def chosen(rows):
        broken(rows)
        for bound in np.linspace(-0.5, 0.5, 24):
            rows = np.where(rows[:, :1] > bound, rows * 0.5, rows + 0.25)
        return rows[np.where(rows[:, 0] > 0)[0]]
    static, x = to_static(chosen, backend="numpy"), np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    for i in range(paying._BEFORE + 2 * pace.MEASURED + 2):
        np.testing.assert_allclose(static(x * (i % 3 - 1)), chosen(x * (i % 3 - 1)))
    assert static.stats()["parts"] == parts
