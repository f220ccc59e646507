"""NumPy's warnings about values that are not finite or at the ends of the range: those that eager gives, forward and backward."""
import importlib
import re
import sys
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import variable

from dy2static import FallbackWarning, config, to_static

NAN, INF = np.nan, np.inf

#: What stands among ordinary numbers; huge and tiny ones are those of float32.
VALUES = {"NaN": [NAN], "infinity": [INF], "minus infinity": [-INF], "both": [INF, -INF], "all": [NAN, INF, -INF],
          "apart": [INF, NAN, 1, 2, -INF, 3], "zero": [0.0, -0.0], "huge": [3e38, -3e38], "huge and alike": [3e38, 3e38],
          "tiny": [1e-38, 1e-42, -1e-42],
          "one": [1.0, -1.0], "large": [200.0, -200.0, 89.0], "negative": [-3.0, -0.5]}

ELEMENTWISE = ("absolute exp log sqrt rsqrt square tanh sigmoid sin cos tan arcsin arccos arctan sinh cosh log10 log2 log1p expm1 "
               "erf erfc softplus relu relu6 leaky_relu elu selu hard_sigmoid floor ceil sign crelu").split()

REDUCTIONS = {
    "sum": F.sum, "mean": F.mean, "sum of rows": lambda x: F.sum(x, axis=1), "mean of columns": lambda x: F.mean(x, axis=0),
    "max": lambda x: F.max(x, axis=1), "prod": lambda x: F.prod(x, axis=0), "softmax": F.softmax, "log_softmax": F.log_softmax,
    "logsumexp": lambda x: F.logsumexp(x, axis=1), "cumsum": lambda x: F.cumsum(x, axis=1), "normalize": F.normalize}

ARITHMETIC = {
    "quotient": lambda x: x / (x * 0.5), "difference": lambda x: x - x * 2, "second power": lambda x: x ** 2, "cube": lambda x: x ** 3,
    "root": lambda x: x ** 0.5, "power": lambda x: 2 ** x, "maximum": lambda x: F.maximum(x, x * 2), "clip": lambda x: F.clip(x, -1.0, 1.0),
    "where": lambda x: F.where(x.array > 0, x, x * 2), "arctan2": lambda x: F.arctan2(x, x * 2)}

FUNCTIONS = {**{name: getattr(F, name) for name in ELEMENTWISE}, **REDUCTIONS, **ARITHMETIC}


def filled(values, shape=(3, 40)):
    """Ordinary numbers, and these at the start of a row and spread over another."""
    x = np.full(shape, 0.5, "f")
    x[1, :len(values)] = values
    x[2, ::shape[1] // len(values)][:len(values)] = values
    return x


def said(function, x):
    """The kinds and texts of the warnings of a call, and of its backward."""
    x, found = chainer.Variable(x), []
    for step in ("forward", "backward"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if step == "forward":
                results = function(x)
            elif results[0].creator is not None:
                for y in results:
                    y.grad = np.ones_like(y.array)
                F.sum(sum([F.sum(y * 1) for y in results])).backward()
        found.append({(w.category, _alike(str(w.message))) for w in caught if not issubclass(w.category, FallbackWarning)})
    return found


def _alike(text):
    """NumPy 2 computes `x ** np.float32(2)` with `power`, where NumPy 1 takes the function that is meant."""
    return re.sub("square|sqrt|reciprocal", "power", text) if np.__version__ >= "2" else text


#: Where the order of a sum decides whether it overflows (docs/limitations.md).
CANCELLING = {"huge"}


def compare(function, backend, values=VALUES):
    static = to_static(function, backend=backend)
    for _ in range(2):
        said(static, filled([0.5]))
    for name in values:
        assert said(static, filled(VALUES[name])) == said(function, filled(VALUES[name])), name


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numpy(name):
    function = FUNCTIONS[name]
    compare(lambda x: [function(x)], "numpy")


@pytest.mark.parametrize("names", [("sum",), ("mean",), ("sum of rows", "mean of columns"), ("arcsin", "arccos"), ("softplus", "log"),
                                   ("softmax", "sqrt", "sigmoid"), ("quotient", "exp")])
def test_native(names):
    """Where native code meets such values, NumPy computes, and says so."""
    functions = [FUNCTIONS[name] for name in names]
    values = VALUES.keys() - CANCELLING if set(names) & set(REDUCTIONS) else VALUES
    compare(lambda x: [function(x) for function in functions], "c", values)


def test_sums_in_another_order():
    """Native code adds in another order than NumPy, and meets NaN before the second infinity, or after it."""
    static, random = to_static(lambda x: (F.sum(x), F.mean(x * 1.5)), backend="c"), np.random.RandomState(0)
    static(variable(3, 40)), static(variable(3, 40))
    seen = set()
    for _ in range(60):
        x = random.uniform(-1, 1, (3, 40)).astype("f")
        x[random.randint(3, size=3), random.randint(40, size=3)] = NAN, INF, -INF
        with warnings.catch_warnings(record=True) as expected:
            warnings.simplefilter("always")
            F.sum(chainer.Variable(x)), F.mean(chainer.Variable(x) * 1.5)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            static(chainer.Variable(x))
        assert {str(w.message) for w in found} == {str(w.message) for w in expected}
        seen.add(bool(expected))
    assert seen == {True, False}


# Where they come from ------------------------------------------------------------------------------------------------

needs_columns = pytest.mark.skipif(sys.version_info < (3, 11), reason="before Python 3.11, generated code keeps its own lines")


def quotients(x, y):
    a = np.log(x)
    b = a / y
    return np.exp(b * 1000)


def logarithm(x):
    raise NotImplementedError("of another file")


def of_another_file(x, y):
    z = logarithm(x)
    return z / y


def places(function, *args):
    """Text, file and line of each warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*args)
    return [(str(w.message), w.filename, w.lineno) for w in caught]


BAD = np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.0, 1e-3])


@needs_columns
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_warnings_name_the_line_of_the_user(backend):
    static = to_static(quotients, backend=backend)
    expected = places(quotients, *BAD)
    assert len(expected) == 3 and {file for _, file, _ in expected} == {__file__}
    for _ in range(2):
        assert places(static, *BAD) == expected


@needs_columns
def test_filters_by_module_and_errors():
    static = to_static(quotients, backend="numpy")
    static(*map(np.ones_like, BAD))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module=re.escape(__name__) + "$")
        static(*BAD)
    assert not caught
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function in (quotients, static):
            with pytest.raises(RuntimeWarning, match="divide by zero encountered in log") as raised:
                function(*BAD)
            entries = [(entry.path, entry.lineno) for entry in raised.traceback]
            assert [str(path) for path, _ in entries] == [__file__, __file__]
            assert entries[-1][1] == quotients.__code__.co_firstlineno


class Counted:
    """What a call does before and behind a computation that may raise."""

    def __init__(self):
        self.norm, self.calls, self.seen = chainer.links.BatchNormalization(3), 0, []

    def __call__(self, x, a):
        self.calls += 1
        self.seen.append(a[0])
        h = self.norm(x)
        found = np.log(a - 1)
        self.calls += 10
        return h, found


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_what_a_call_did_before_an_error(backend):
    states = []
    for compiled in (False, True):
        counted, state = Counted(), []
        call = to_static(counted.__call__, backend=backend) if compiled else counted
        for i in range(5):
            x = chainer.Variable(np.arange(6, dtype="f").reshape(2, 3) + i)
            with np.errstate(divide="raise" if i != 2 else "ignore"):
                try:
                    call(x, np.array([1 + i % 2, 3.0]))
                except FloatingPointError as error:
                    state.append((str(error), error.__context__, vars(error)))
            state.append((counted.calls, list(counted.seen), counted.norm.avg_mean.tolist()))
        states.append(state)
    assert states[0] == states[1]


@needs_columns
def test_a_warning_is_shown_once_for_each_line():
    """With Python's own filter."""
    for function in (quotients, to_static(quotients, backend="numpy")):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            function(*BAD), function(*BAD), function(*BAD)
        assert len(caught) == 3


@needs_columns
def test_lines_of_several_files(tmp_path, monkeypatch):
    """The line of the file from which all others are called, where the lines are in several."""
    (tmp_path / "logarithms_of_ux.py").write_text("import numpy as np\n\n\ndef logarithm(x):\n    return np.log(x)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(globals(), "logarithm", importlib.import_module("logarithms_of_ux").logarithm)
    first = of_another_file.__code__.co_firstlineno
    assert places(to_static(of_another_file, backend="numpy"), *BAD) == [
        ("divide by zero encountered in log", __file__, first + 1), ("invalid value encountered in divide", __file__, first + 2)]


@needs_columns
def test_backwards():
    def run(x):
        return F.log(x)
    static = to_static(run, backend="numpy")
    y = static(chainer.Variable(np.array([1e-40, 1.0], "f")))
    y.grad = np.full(2, 1e30, "f")
    line = run.__code__.co_firstlineno + 1
    assert places(y.backward) == [("overflow encountered in divide", __file__, line)]


@needs_columns
def test_generated_code_is_shown_where_that_is_asked_for():
    with config.FULL_TRACEBACK.set(1):
        found = places(to_static(quotients, backend="numpy"), *BAD)
    assert all(file.startswith("<dy2static forward") for _, file, _ in found) and len(found) == 3
