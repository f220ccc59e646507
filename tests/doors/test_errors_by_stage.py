"""Each stage (transform, capture, run, backward, second call): exception type, the user's file and lines, the frames that are
shown and hidden, chained exceptions, and warnings with the right line."""
import importlib.util
import linecache
import os
import textwrap
import traceback
import warnings

import chainer
import numpy as np
import pytest

import dy2static
from dy2static import to_static

HEADER = """\
import logging
import warnings
import chainer
import chainer.functions as F
import numpy as np
from dy2static import not_to_static, to_static
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


def x_(*shape):
    return chainer.Variable(np.random.RandomState(0).uniform(0.1, 1, shape or (2, 3)).astype(np.float32))


class Failure:
    """What a failing call shows: the error, the user's frames (function, text of the line), files of all frames, warnings."""

    def __init__(self, call):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with pytest.raises(Exception) as failed:  # noqa: PT011, B017
                call()
        self.error = failed.value
        self.frames = user_frames(self.error)
        self.files = [frame.filename for frame in traceback.extract_tb(self.error.__traceback__)]
        self.chain = chain_of(self.error)
        self.warnings = [warned(w) for w in caught]

    @property
    def ours(self):
        """Files of ours in the traceback, after the first frame of the user's."""
        seen = [i for i, file in enumerate(self.files) if os.path.basename(file) == "user.py"]
        root = os.path.dirname(dy2static.__file__)
        return [file for file in self.files[seen[0]:] if file.startswith((root, "<dy2static"))]


def user_frames(error):
    return [(frame.name, frame.line) for frame in traceback.extract_tb(error.__traceback__)
            if os.path.basename(frame.filename) == "user.py"]


def chain_of(error):
    """Type and user frames of ``__cause__`` and of the ``__context__`` that would be shown."""
    found = []
    for name, other in (("cause", error.__cause__),
                        ("context", None if error.__suppress_context__ else error.__context__)):
        if other is not None and not (name == "context" and other is error.__cause__):
            found.append((name, type(other).__name__, str(other), user_frames(other)))
    return found


def warned(w):
    """Category, text, base name of the file, and the text of the line of a warning."""
    return w.category.__name__, str(w.message), os.path.basename(w.filename), linecache.getline(w.filename, w.lineno).strip()


# --- what fails as eagerly does: in a first call (capture), a later one (run), and a call that falls back ---

#: text of ``f(x, n)``; which ``n`` works; which fails.
SAME = {
    "raise": ("""
        def check(n):
            if n.sum() > 3:
                raise ValueError("too much", 3)

        def f(x, n):
            y = F.relu(x)
            check(n)
            return y
        """, [1, 1], [3, 3]),
    "raise from": ("""
        def f(x, n):
            y = F.relu(x)
            if n.sum() > 3:
                try:
                    {}["missing"]
                except KeyError as error:
                    raise ValueError("no such thing") from error
            return y
        """, [1, 1], [3, 3]),
    "raise in except": ("""
        def f(x, n):
            if n.sum() > 3:
                try:
                    [][1]
                except IndexError:
                    raise RuntimeError("while handling")
            return F.relu(x)
        """, [1, 1], [3, 3]),
    "raise from None": ("""
        def f(x, n):
            if n.sum() > 3:
                try:
                    [][1]
                except IndexError:
                    raise RuntimeError("alone") from None
            return F.relu(x)
        """, [1, 1], [3, 3]),
    "class of the user's": ("""
        class Refused(Exception):
            def __init__(self, code, text):
                super().__init__(text)
                self.code = code

        def f(x, n):
            if n.sum() > 3:
                raise Refused(7, "no")
            return F.relu(x)
        """, [1, 1], [3, 3]),
    "assert": ("""
        def f(x, n):
            y = F.relu(x)
            assert n.sum() < 4, f"sum {n.sum()}"
            return y
        """, [1, 1], [3, 3]),
    "in Chainer": ("""
        def loss(y, n):
            return F.softmax_cross_entropy(
                y, n)

        def f(x, n):
            return loss(F.relu(x), n)
        """, [1, 1], [3, 3]),
    "in NumPy": ("""
        def f(x, n):
            y = F.relu(x)
            return y * np.arange(3, dtype="f")[n][0]
        """, [1, 1], [5, 5]),
    "in a loop": ("""
        def f(x, n):
            y = F.relu(x)
            k = 0
            while k < n[0]:
                y = y + F.embed_id(n, y)[0]
                k += 1
            return y
        """, [1, 1], [3, 3]),
    "on the host": ("""
        @not_to_static
        def look(total):
            if total > 3:
                raise KeyError(total)

        def f(x, n):
            y = F.relu(x)
            for _ in range(2):
                look(int(n.sum()))
            return y
        """, [1, 1], [3, 3]),
    "unbound name": ("""
        def f(x, n):
            y = F.relu(x)
            if n.sum() > 3:
                z = y
            else:
                y = y * 2
            return z
        """, [3, 3], [1, 1]),
    "in a generator expression": ("""
        def f(x, n):
            y = F.relu(x)
            return sum(F.embed_id(n, y)[i] for i in range(2))
        """, [1, 1], [3, 3]),
}

STAGES = ["capture", "run", "second failure", "strict run"]


def ints(values):
    return np.array(values, np.int32)


def fail_at(stage, function, good, bad):
    """The failure of a compiled function at a stage."""
    f = to_static(function, strict=stage.startswith("strict"))
    if stage != "capture":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                f(x_(), ints(good))
            except dy2static.CaptureError:
                return None, f            # it falls back: that is what every strict call says
    if stage == "second failure":
        Failure(lambda: f(x_(), ints(bad)))
    return Failure(lambda: f(x_(), ints(bad))), f


@pytest.mark.parametrize("case", SAME)
@pytest.mark.parametrize("stage", STAGES)
def test_what_fails_looks_as_in_eager(stage, case, module):
    text, good, bad = SAME[case]
    user = module(text)
    eager = Failure(lambda: user.f(x_(), ints(bad)))
    found, f = fail_at(stage, user.f, good, bad)
    if found is None:
        refused = Failure(lambda: f(x_(), ints(bad)))
        assert (stage, type(refused.error), refused.chain) == ("strict run", dy2static.CaptureError, [])
        return
    assert type(found.error) is type(eager.error)
    if case not in DIFFERENT_TEXT:
        assert str(found.error) == str(eager.error) and found.error.args == eager.error.args
        assert vars(found.error) == vars(eager.error)
    assert found.frames == eager.frames
    assert found.chain == eager.chain
    assert found.ours == [], "below the user's first line there is nothing of ours"
    assert [w for w in found.warnings if w[0] != "FallbackWarning"] == eager.warnings


#: NumPy names the axis that is out of bounds, which is another one in the reformulated lookup.
DIFFERENT_TEXT = ("in Chainer", "in NumPy", "in a loop", "in a generator expression")


# --- transform ---

UNSUPPORTED = {
    "async": ("""
        async def f(x):
            return x
        """, "async def f(x):", "an async function cannot be compiled"),
    "deep inside": ("""
        def f(x):
            async def later():
                return x
            return F.relu(x)
        """, "async def later():", "async"),
}


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_transform(case, module):
    text, line, message = UNSUPPORTED[case]
    user = module(text)
    found = Failure(lambda: to_static(user.f).code)
    assert isinstance(found.error, dy2static.Dy2StaticError) and isinstance(found.error, SyntaxError)
    lines = str(found.error).splitlines()
    assert message in lines[0] and lines[1] == f"  {user.__file__}:{found.error.at.line}"
    assert lines[2].strip() == line and lines[3].strip() == "^" and lines[3].index("^") == lines[2].index(line)
    assert found.chain == []


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_transform_of_a_strict_call(case, module):
    user = module(UNSUPPORTED[case][0])
    found = Failure(lambda: to_static(user.f, strict=True)(x_()))
    assert type(found.error) is dy2static.CaptureError and found.error.at.file == user.__file__
    assert found.error.at.text().strip() == UNSUPPORTED[case][1] and found.chain == []


# --- capture that is refused ---

REFUSED = """
def inner(h):
    return h * h.array.ctypes.shape[0]

def f(x):
    y = F.relu(x)
    return inner(y)
"""


def test_capture_refused_when_strict(module):
    user = module(REFUSED)
    f = to_static(user.f, strict=True)
    for _ in range(2):
        found = Failure(lambda: f(x_()))
        assert type(found.error) is dy2static.CaptureError and isinstance(found.error, RuntimeError)
        assert found.error.at.file == user.__file__ and found.error.at.text().strip() == "return h * h.array.ctypes.shape[0]"
        assert found.error.at.function == "inner"
        assert [place.text().strip() for place in found.error.at.callers] == ["return inner(y)"]
        assert found.chain == [] and found.frames == [] and found.warnings == []


def test_capture_refused_warns_at_the_users_call(module):
    user = module(REFUSED + """
f = to_static(f)

def call(x):
    return f(x)
""")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        user.call(x_())
        user.call(x_())
    assert [warned(w)[0::2] + warned(w)[3:] for w in caught] == [("FallbackWarning", "user.py", "return f(x)")]
    place = next(i for i, line in enumerate(linecache.getlines(user.__file__), 1) if "ctypes" in line)
    assert f"({user.__file__}:{place}: return h * h.array.ctypes.shape[0])" in str(caught[0].message)


# --- backward ---

BACKWARD = {
    "function of the user's": ("""
        class Bad(chainer.FunctionNode):
            def forward(self, xs):
                return xs[0] * 2,

            def backward(self, indexes, gys):
                raise ValueError("no gradient today")

        def inner(x):
            return Bad().apply((x,))[0]

        def f(x):
            h = inner(x)
            return F.sum(h)
        """, [("f", "h = inner(x)"), ("inner", "return Bad().apply((x,))[0]"),
              ("backward", 'raise ValueError("no gradient today")')], []),
    "chained": ("""
        class Bad(chainer.FunctionNode):
            def forward(self, xs):
                return xs[0] * 2,

            def backward(self, indexes, gys):
                try:
                    [][1]
                except IndexError as error:
                    raise ValueError("no gradient") from error

        def f(x):
            return F.sum(Bad().apply((x,))[0])
        """, [("f", "return F.sum(Bad().apply((x,))[0])"), ("backward", 'raise ValueError("no gradient") from error')],
        [("cause", "IndexError", "list index out of range", [("backward", "[][1]")])]),
}


@pytest.mark.parametrize("case", BACKWARD)
def test_backward(case, module):
    text, frames, chain = BACKWARD[case]
    user = module(text)
    eager = Failure(user.f(x_()).backward)
    f = to_static(user.f)
    f(x_())
    for _ in range(2):
        loss = f(x_())
        found = Failure(loss.backward)
        assert f.cache_info().captures == 1
        assert type(found.error) is type(eager.error) and found.error.args == eager.error.args
        assert found.frames == frames and found.chain == eager.chain == chain
        assert found.ours == []


# --- warnings and logs ---

WARNS = """
log = logging.getLogger("user")

def old(x):
    warnings.warn("old", DeprecationWarning, stacklevel=2)
    return x

def f(x):
    y = F.relu(x)
    warnings.warn("careful")
    warnings.warn("you", UserWarning, stacklevel=2)
    if float(F.sum(y).array) > 0:
        warnings.warn(f"sum {float(F.sum(y).array):.2f}", RuntimeWarning)
    log.warning("here")
    logging.getLogger("user").error("and %s", "there")
    return old(
        y)

def call(function, x):
    return function(x)
"""


def test_warnings_name_the_users_lines(module, caplog):
    user = module(WARNS)
    f = to_static(user.f, strict=True)
    seen = []
    for function in (user.f, f, f):
        caplog.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            user.call(function, x_())
        records = [(r.getMessage(), os.path.basename(r.pathname), r.lineno, r.funcName) for r in caplog.records]
        seen.append(([(*warned(w), w.lineno) for w in caught], records))
    assert f.cache_info().captures == 1
    assert [(kind, line) for kind, _, _, line, _ in seen[0][0]] == [
        ("UserWarning", 'warnings.warn("careful")'), ("UserWarning", "return function(x)"),
        ("RuntimeWarning", 'warnings.warn(f"sum {float(F.sum(y).array):.2f}", RuntimeWarning)'),
        ("DeprecationWarning", "return old(")]
    assert seen[0] == seen[1] == seen[2]


def test_warnings_are_shown_once_per_line_as_eagerly(module):
    for compile in (lambda f: f, lambda f: to_static(f, strict=True)):
        user = module(WARNS)
        f = compile(user.f)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for _ in range(3):
                user.call(f, x_())
        assert [str(w.message)[:3] for w in caught] == ["car", "you", "sum", "old"]


def test_warnings_as_errors_come_from_the_users_line(module):
    user = module(WARNS)
    f = to_static(user.f, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f(x_())

    def call(function):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            function(x_())
    eager, found = Failure(lambda: call(user.f)), Failure(lambda: call(f))
    assert type(found.error) is type(eager.error) is UserWarning
    assert found.frames == eager.frames == [("f", 'warnings.warn("careful")')]


# --- the second call after each kind of failure ---

def test_a_function_works_after_it_failed(module):
    user = module(SAME["in Chainer"][0])
    f = to_static(user.f, strict=True)
    good, bad = ints([1, 1]), ints([3, 3])
    for _ in range(3):
        assert np.allclose(f(x_(), good).array, user.f(x_(), good).array)
        assert type(Failure(lambda: f(x_(), bad)).error) is IndexError
    assert f.cache_info().captures == 1
