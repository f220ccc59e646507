"""Debuggers, coverage and profilers see the user's file, lines and real values."""
import bdb
import importlib.util
import linecache
import os
import sys
import textwrap
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest

import dy2static
from dy2static import to_static

HEADER = "import chainer.functions as F\nimport pdb\nfrom dy2static import to_static\n"

TEXT = """
def inner(h):
    if h.shape[0] > 1:
        h = h * 2
    return F.tanh(h)

def f(x):
    y = F.relu(x)
    for _ in range(2):
        y = inner(y)
    return F.sum(y)
"""


@pytest.fixture
def module(tmp_path):
    """``module(text)``: the text as a module with a file of its own."""
    def load(text):
        path = tmp_path / "user.py"
        path.write_text(HEADER + textwrap.dedent(text))
        linecache.checkcache(str(path))
        spec = importlib.util.spec_from_file_location("user", path)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made
    return load


def x_():
    return chainer.Variable(np.random.RandomState(0).uniform(-1, 1, (2, 3)).astype(np.float32))


class Debugger(bdb.Bdb):
    """Goes on after every stop, and remembers where it was: the line's text, and the types of the local names."""

    def __init__(self):
        super().__init__()
        self.stops = []

    def user_line(self, frame):
        if frame.f_code.co_filename.endswith("user.py"):
            kinds = {name: type(value) for name, value in frame.f_locals.items()}
            self.stops.append((linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip(), kinds))
        self.set_continue() if self.breaks else self.set_step()


def line_of(user, text):
    return next(i for i, line in enumerate(linecache.getlines(user.__file__), 1) if line.strip() == text)


def test_breakpoints_stop_at_every_call_with_real_values(module):
    user = module(TEXT)
    f = to_static(user.f, strict=True)
    debugger = Debugger()
    assert debugger.set_break(user.__file__, line_of(user, "h = h * 2")) is None
    debugger.runcall(f, x_())
    debugger.runcall(f, x_())
    assert [text for text, _ in debugger.stops] == ["h = h * 2"] * 4
    assert all(kinds == {"h": chainer.Variable} for _, kinds in debugger.stops)
    assert f.cache_info()[:5] == (0, 32, 0, 0, 0)
    debugger.clear_all_breaks()
    f(x_())
    assert f.cache_info().captures == 1, "without the debugger it is compiled"


def test_stepping_goes_through_the_users_lines(module):
    user = module(TEXT)
    found = []
    for function in (user.f, to_static(user.f)):
        debugger = Debugger()
        debugger.runcall(function, x_())
        found.append([text for text, _ in debugger.stops])
    assert found[0] == found[1] and found[0][0] == "y = F.relu(x)"


@pytest.mark.parametrize("statement", ["breakpoint()", "pdb.set_trace()"])
def test_a_breakpoint_in_the_text_stops_there_at_every_call(statement, module, monkeypatch):
    user = module(f"""
    def inner(h):
        if float(F.sum(h).array) > 0:
            {statement}
        return h * 2

    def f(x):
        return inner(F.relu(x))
    """)
    seen = []

    def stop():
        frame = sys._getframe(1)
        seen.append((os.path.basename(frame.f_code.co_filename), frame.f_lineno, type(frame.f_locals["h"])))
    monkeypatch.setattr(sys, "breakpointhook", stop)
    monkeypatch.setattr(user.pdb, "set_trace", stop)
    f = to_static(user.f)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f(x_())
        f(x_())
    assert seen == [("user.py", line_of(user, statement), chainer.Variable)] * 2
    said, = [str(w.message).partition(" (")[0] for w in caught if w.category is dy2static.FallbackWarning]
    assert said.endswith(": a debugger is called here")


def lines_seen(function, *args):
    """The lines of the user's file that a trace function sees, as coverage does."""
    seen = set()

    def trace(frame, event, argument):
        if not frame.f_code.co_filename.endswith("user.py"):
            return None
        if event == "line":
            seen.add(frame.f_lineno)
        return trace
    saved = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*args)
    finally:
        sys.settrace(saved)
    return seen


ARRAY_TEXT = """
def f(x):
    y = F.relu(x)
    if float(F.sum(y).array) > 100:
        y = y * 2
    else:
        y = y + 1
    while float(F.sum(y).array) < 10:
        y = y + 1
    return y
"""
FALLBACK_TEXT = """
def f(x):
    y = F.relu(x)
    n = x.array.ctypes.shape[0]
    return y * n
"""


def test_coverage_sees_the_users_lines(module):
    user = module(TEXT)
    f = to_static(user.f, strict=True)
    eager = lines_seen(user.f, x_())
    assert lines_seen(f, x_()) == eager, "the capture runs the user's lines"
    assert f.cache_info().captures == 1
    seen = lines_seen(f, x_())
    assert seen <= eager and (seen or sys.version_info < (3, 11)), "NumPy's calls have the lines that they come from"
    native = to_static(user.f, strict=True, backend="c")
    native(x_())
    assert lines_seen(native, x_()) < eager, "a call of native code has one line"


def test_coverage_sees_both_sides_of_a_decision_on_array_values(module):
    user = module(ARRAY_TEXT)
    f = to_static(user.f, strict=True)
    eager = lines_seen(user.f, x_())
    assert lines_seen(f, x_()) == eager | {line_of(user, "y = y * 2")}


def test_coverage_sees_the_lines_of_calls_that_fall_back(module):
    user = module(FALLBACK_TEXT)
    f = to_static(user.f)
    eager = lines_seen(user.f, x_())
    with pytest.warns(dy2static.FallbackWarning):
        assert lines_seen(f, x_()) == eager
    assert lines_seen(f, x_()) == eager


def test_profilers_see_the_users_functions(module):
    user = module(TEXT)
    f = to_static(user.f, strict=True)
    seen = []

    def profile(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.endswith("user.py"):
            seen.append((frame.f_code.co_name, frame.f_code.co_firstlineno))
    sys.setprofile(profile)
    try:
        f(x_())
    finally:
        sys.setprofile(None)
    first = {function.__name__: function.__code__.co_firstlineno for function in (user.f, user.inner)}
    assert [seen.count(pair) for pair in first.items()] == [1, 2]


def test_values_are_those_of_eager_under_a_debugger(module):
    user = module(TEXT)
    debugger = Debugger()
    y = debugger.runcall(to_static(user.f), x_())
    assert y.array == user.f(x_()).array and type(y.creator) is type(F.sum(x_()).creator)
