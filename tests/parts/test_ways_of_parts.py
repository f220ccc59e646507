"""What functions in parts report, when they are divided, and when a part is not worth it."""
import collections
import random
import sys
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import paces
import pytest
from against_eager import array, variable
from breaks import refuse as broken
from test_parts import Model

from dy2static import CaptureError, FallbackWarning, to_static
from dy2static.dispatch import pace, paying


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
        frames.append([(entry.name, entry.lineno) for entry in caught.traceback if entry.path.name == "test_ways_of_parts.py"][1:])
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
