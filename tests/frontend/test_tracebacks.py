"""What a user sees when something fails: the same exception as eagerly, from the user's own lines."""
import gc
import importlib.util
import linecache
import os
import sys
import textwrap
import traceback
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import config, to_static
from dy2static.errors import CaptureError, FallbackWarning
from dy2static.runtime import frames

HEADER = "import chainer\nimport chainer.functions as F\nimport numpy as np\nfrom dy2static import not_to_static\n"


@pytest.fixture
def module(tmp_path):
    """``module(text)``: the text as a module with a file of its own."""
    def load(text):
        path = tmp_path / "user.py"
        path.write_text(HEADER + textwrap.dedent(text))
        spec = importlib.util.spec_from_file_location("user", path)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made
    return load


def x_(*shape):
    return chainer.Variable(np.random.RandomState(0).uniform(-1, 1, shape or (2, 3)).astype(np.float32))


def failure(function, *args):
    """The exception of a call, and its user frames as (function, text of the line)."""
    with pytest.raises(Exception) as caught:  # noqa: PT011, B017
        function(*args)
    error = caught.value
    return error, [(frame.name, frame.line) for frame in traceback.extract_tb(error.__traceback__)
                   if os.path.basename(frame.filename) == "user.py"]


#: A program that works for the first arguments and fails for the second: text, first, second, (user frames).
FAILING_RUNS = {
    "index out of range": ("""
        def f(x, i):
            h = F.relu(x)
            h = F.embed_id(i, h)
            return F.sum(h)
        """, np.array([0, 1], np.int32), np.array([0, 7], np.int32), [("f", "h = F.embed_id(i, h)")]),
    "label out of range": ("""
        def loss(y, t):
            return F.softmax_cross_entropy(y, t)

        def f(x, t):
            return loss(F.relu(x), t)
        """, np.array([0, 1], np.int32), np.array([0, 7], np.int32),
        [("f", "return loss(F.relu(x), t)"), ("loss", "return F.softmax_cross_entropy(y, t)")]),
    "in branches, loops and lambdas": ("""
        def loss(y, t):
            if float(F.max(y).array) > 0:
                for _ in range(2):
                    y = y * 2
                return F.softmax_cross_entropy(y, t)
            return F.sum(y)

        def repeated(y, t):
            while float(F.sum(y).array) < 100:
                y = y * 2 + loss(y, t)
            return y

        def f(x, t):
            g = lambda y: repeated(y, t) if float(F.sum(y).array) > 0 else y
            return g(F.relu(x))
        """, np.array([0, 1], np.int32), np.array([0, 7], np.int32),
        [("f", "return g(F.relu(x))"),
         ("<lambda>", "g = lambda y: repeated(y, t) if float(F.sum(y).array) > 0 else y"),
         ("repeated", "y = y * 2 + loss(y, t)"), ("loss", "return F.softmax_cross_entropy(y, t)")]),
    "raise": ("""
        def largest(y):
            return float(F.max(y).array)

        def check(y, i):
            if i.sum() > 5:
                raise ValueError("too much")

        def f(x, i):
            y = F.relu(x)
            check(y,
                  i)
            return y * largest(y)
        """, np.array([1, 2]), np.array([9, 1]), [("f", "check(y,"), ("check", 'raise ValueError("too much")')]),
    "host call": ("""
        @not_to_static
        def check(limit):
            if limit > 5:
                raise KeyError(limit)

        def f(x, limit):
            y = F.relu(x)
            check(limit.max())
            return y
        """, np.array([1, 2]), np.array([9, 1]),
        [("f", "check(limit.max())"), ("check", "raise KeyError(limit)")]),
}


@pytest.mark.parametrize(("case", "backend"), [*((case, "auto") for case in FAILING_RUNS), ("label out of range", "c")])
def test_a_failing_run_shows_the_users_lines(case, backend, module):
    text, good, bad, frames = FAILING_RUNS[case]
    user = module(text)
    f = to_static(user.f, strict=True, backend=backend)
    f(x_(), good)
    eager, eagerly = failure(user.f, x_(), bad)
    error, shown = failure(f, x_(), bad)
    assert f.cache_info().captures == 1, "it was the compiled program that failed"
    assert type(error) is type(eager)
    assert shown == frames == eagerly
    assert error.__cause__ is None and error.__context__ is None
    assert np.isfinite(f(x_(), good).array).all(), "and it goes on working"


#: Text of ``f(x)``, which raises for the second argument, and what ``g`` raises for both, is raised again.
RAISED_AGAIN = {
    "in the function that caught it": """
        def f(x):
            h = x * 2
            try:
                g(h)
            except KeyError:
                if float(F.sum(x).array) < 0:
                    if float(F.max(x).array) < 5:
                        raise
            return h
        """,
    "in a function that it calls": """
        def again(x):
            if float(F.sum(x).array) < 0:
                raise

        def f(x):
            h = x * 2
            try:
                g(h)
            except KeyError:
                again(x)
            return h
        """,
    "by its name": """
        def f(x):
            h = x * 2
            try:
                g(h)
            except KeyError as error:
                if float(F.sum(x).array) < 0:
                    raise error
            return h
        """,
    "in a handler under a decision": """
        def f(x):
            h = x * 2
            if float(F.max(x).array) < 5:
                try:
                    g(h)
                except KeyError:
                    if float(F.sum(x).array) < 0:
                        raise
            return h
        """,
}


@pytest.mark.parametrize("case", RAISED_AGAIN)
def test_what_is_raised_again_shows_the_lines_that_it_shows_eagerly(case, module):
    user = module("def g(h):\n    raise KeyError(len(h))\n" + textwrap.dedent(RAISED_AGAIN[case]))
    f = to_static(user.f, strict=True)
    f(abs(x_()))
    assert failure(f, -abs(x_()))[1] == failure(user.f, -abs(x_()))[1]


def test_a_decorated_function_has_its_own_name_in_tracebacks(module):
    user = module("""
    import functools

    def twice(function):
        @functools.wraps(function)
        def wrapper(x):
            return function(x) * 2
        return wrapper

    @twice
    def g(x):
        if float(F.sum(x).array) < 0:
            raise ValueError("negative")
        return x

    def f(x):
        return g(x)
    """)
    f = to_static(user.f, strict=True)
    f(abs(x_()))
    assert failure(f, -abs(x_()))[1] == failure(user.f, -abs(x_()))[1]


def files_of(error):
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a bare `raise` restores the traceback before Python 3.11")
def test_the_lines_of_the_compiler_are_hidden(module):
    user = module("""
    class Model(chainer.Chain):
        def forward(self, x, i):
            h = F.relu(x)
            if i > 5:
                raise ValueError("too much")
            return F.embed_id(np.array([0, i], np.int32), h)
    """)
    eager, compiled = user.Model(), to_static(user.Model())
    compiled(x_(), 1), compiled(x_(), 0)
    for i in (3, 3, 9, 9):
        expected, error = failure(eager, x_(), i)[0], failure(compiled, x_(), i)[0]
        assert type(error) is type(expected)
        ours = [file for file in files_of(error) if "dy2static" in os.path.relpath(file, os.path.dirname(__file__)) or file[0] == "<"]
        assert not [file for file in ours if "site-packages" not in file], files_of(error)
    with config.FULL_TRACEBACK.set(1):
        assert any(file.startswith("<dy2static entry") for file in files_of(failure(compiled, x_(), 3)[0]))
    strict = to_static(lambda x: x.array.ctypes.shape[0] and F.relu(x), strict=True)
    error = failure(strict, x_())[0]
    assert isinstance(error, CaptureError) and files_of(error) == [__file__], "it stands at the call"


def test_entries_of_lines_have_no_arguments_of_ours(module):
    f = to_static(module("def f(x):\n    assert float(F.sum(x).array) > 0\n    return x * 2").f)
    f(abs(x_()))
    error, lines = failure(f, -abs(x_()))
    last = list(traceback.walk_tb(error.__traceback__))[-1][0].f_code
    assert lines == [("f", "assert float(F.sum(x).array) > 0")] and (last.co_name, last.co_argcount) == ("f", 0)


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch):
    f = to_static(lambda x: F.relu(x))
    monkeypatch.setattr(f.dispatcher, "miss", lambda args, kwargs: {}["ours"])
    monkeypatch.setattr(frames, "_OURS", os.path.dirname(__file__))
    assert any(os.path.basename(file) == "entry.py" for file in files_of(failure(f, x_())[0]))


def test_a_fall_back_is_told_at_the_users_line():
    class Model(chainer.Chain):
        def forward(self, x):
            x.array.ctypes.shape[0]
            return x

    compiled = to_static(Model())
    with pytest.warns(FallbackWarning) as caught:
        compiled(x_())
    assert {found.filename for found in caught} == {__file__}


def test_a_failing_backward_shows_the_users_lines(module):
    user = module("""
    class Bad(chainer.FunctionNode):
        def forward(self, xs):
            return xs[0] * 2,

        def backward(self, indexes, gys):
            raise ValueError("no gradient today")

    def f(x):
        h = Bad().apply((x,))[0]
        return F.sum(h)
    """)
    f = to_static(user.f)
    f(x_())
    loss = f(x_())
    assert f.cache_info()[:4] == (1, 32, 1, 0)
    error, frames = failure(loss.backward)
    assert type(error) is ValueError and str(error) == "no gradient today"
    assert frames == [("f", "h = Bad().apply((x,))[0]"), ("backward", 'raise ValueError("no gradient today")')]


def test_a_mistake_met_at_capture_has_no_context(module):
    user = module("""
    def f(x):
        h = F.relu(x)
        return F.matmul(h, h)
    """)
    error, frames = failure(to_static(user.f), x_())
    assert type(error) is chainer.utils.type_check.InvalidType
    assert frames == [("f", "return F.matmul(h, h)")]
    assert error.__cause__ is None and error.__context__ is None


def test_the_caret_stands_under_the_code(module):
    user = module("""
    def f(x):
        h = F.relu(x)
        if len(h) > 1:
            h.array[0] = 0
        return h
    """)
    error, _ = failure(to_static(user.f, strict=True), x_())
    assert str(error).splitlines()[1:4] == [
        f"  {user.f.__code__.co_filename}:9", "    h.array[0] = 0", "    ^"]
    assert error.__cause__ is None and error.__context__ is None


def test_calls_over_several_lines_are_at_their_first(module):
    user = module("""
    def f(x):
        h = F.relu(
            x)
        return F.matmul(
            h,
            h,
        )
    """)
    eager, compiled = failure(user.f, x_()), failure(to_static(user.f), x_())
    assert compiled[1] == eager[1] == [("f", "return F.matmul(")]
    text = to_static(user.f).explain(x_(3, 3))
    assert [line.split("|")[1] for line in text.splitlines() if "| graph" in line] == [" graph: ReLU", " graph: MatMul"]
    assert "F.relu(" in [line for line in text.splitlines() if "ReLU" in line][0]


def test_numbers_printed_in_labels_stay_inputs():
    f = to_static(lambda x, a: x * a + a)
    for a in (1.0, 2.0, 3.0, -4.0, 5.5):
        assert np.allclose(f(x_(), a).array, (x_() * a + a).array)
    assert f.cache_info().captures == 2


def test_a_program_prints_short():
    program = to_static(lambda x: F.relu(x)).program(x_())
    counts = f"{len(program.graph.nodes)} nodes, {len(program.guards)} guards"
    assert repr(program) == f"<program for ({program.signature}): {counts}>"


def test_generated_text_goes_with_its_program():
    f = to_static(lambda x: F.relu(x) * 2, cache_limit=1)
    for size in range(1, 6):
        f(x_(size))
    gc.collect()
    before = len(linecache.cache)
    for size in range(6, 26):
        f(x_(size))
    gc.collect()
    assert len(linecache.cache) <= before


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a bare `raise` restores the traceback before Python 3.11")
def test_arguments_that_a_function_does_not_take():
    """The mistake is in the line that calls: no line of dy2static is shown, also where calls run eagerly."""
    def f(x, t):
        return x * t
    static, refused = to_static(f), to_static(lambda x: x.ctypes.shape[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refused(x_().array)
    for function, args in ((static, ()), (static, (1, 2, 3)), (refused, ())):
        for _ in range(2):
            with pytest.raises(TypeError, match="argument") as failed:
                function(*args)
            assert [str(entry.path) for entry in failed.traceback] == [__file__]
