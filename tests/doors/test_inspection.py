"""What a user can see and switch: code, programs, graphs, counts, logs, and the text of every message."""
import inspect
import logging
import os
import re
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

import dy2static
from dy2static import not_to_static, to_static
from tests.doors.both_ways import same_as_eager, x_

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


pytestmark = pytest.mark.usefixtures("quiet")


# --- what can be looked at ---

def scaled(x, n=2):
    h = F.relu(x)
    if n > 1:
        h = h * n
    return h


SCALED = '''\
def scaled(x, n=2):
    h = _dy.call(F.relu)(x)

    def then_0(h):
        h = h * n
        return h,

    def else_0(h):
        return h,
    h, = _dy.cond(n > 1, then_0, else_0, (h,), names=('h',))
    return h
'''


def test_code_is_the_converted_source():
    assert to_static(scaled).code.strip() == SCALED.strip()


def test_program_code_is_the_function_that_runs():
    f = to_static(scaled)
    program = f.program(x_())
    assert re.match(r"def forward\(arena, \w+\):\n", program.code)
    assert f"# {os.path.basename(__file__)}:{scaled.__code__.co_firstlineno + 1}\n" in program.code
    compile(program.code, "<generated>", "exec")
    assert f.cache_info().captures == 1
    f(x_())
    assert f.cache_info().captures == 1, "asking for the program has compiled it"
    assert f.program(x_()) is program


def test_programs_by_signature():
    f = to_static(scaled)
    programs = {f.program(x_(*shape)) for shape in ((2, 3), (2, 3), (4,), (0, 3))}
    assert len(programs) == 3 == f.cache_info().programs


def test_graph_is_that_of_the_last_program():
    f = to_static(scaled)
    assert f.graph is None
    f(x_())
    assert f.graph is f.program(x_()).graph
    assert [node.op.name for node in f.graph.nodes].count("relu") == 1


def test_explain_marks_the_lines():
    text = to_static(scaled).explain(x_())
    line = scaled.__code__.co_firstlineno
    assert re.search(rf"^ *{line + 1}     h = F\.relu\(x\) +\| graph: ReLU$", text, re.M)
    assert re.search(rf"^ *{line + 2}     if n > 1: +\| Python$", text, re.M), "a decision on a number stays Python"


EXPLAINED = """
import numpy as np

@not_to_static
def look(n):
    return None

def inner(h, n=2):
    'The text.'
    if n > 3:                                   # Python
        h = h * n                               # not run
    else:
        h = h + 1                               # graph: AddConstant
    while float(F.sum(h).array) < 10:           # graph: Sum; graph: float; graph: numpy lt; graph: while
        h = h + 1                               # graph: AddConstant
    return F.tanh(                              # graph: Tanh
        h)

def f(x):
    y = F.relu(x)                               # graph: ReLU
    print("sum", y.array.sum())                 # graph: numpy sum; host, at every call: print (an effect)
    look(3)                                     # host, at every call: look (marked not_to_static)
    noise = np.random.rand()                    # host, at every call: random.rand (draws random numbers)
    for i in range(2):                          # Python
        y = inner(y)                            # Python
    y = F.forget(F.sin, y * 3)                  # graph: MulConstant; graph, kept whole: Forget (it has no lowering)
    if y.shape[0] > 100:                        # Python
        return x                                # not run
    return y, noise                             # Python
"""


def test_explain_says_of_each_line_what_became_of_it(module):
    user = module(EXPLAINED)
    report = to_static(user.f).explain(x_())
    assert [(listing.name, listing.file) for listing in report.listings] == [("f", user.__file__), ("inner", user.__file__)]
    for listing in report.listings:
        for line in listing.lines:
            assert "; ".join(map(str, line.marks)) == line.text.partition("  # ")[2].strip(), line
    assert report.reason is None and report.counts["host_call"] == 3 and report.counts["opaque"] == 1
    assert report.depends == ("argument 0: Variable (2, 3) float32 requires_grad=True",)
    assert re.search(r"^this call is compiled; operations: \d+, decisions and loops on array values among them: 2, "
                     r"calls of NumPy: \d+, functions kept whole: 1, calls on the host: 3$", report, re.M)


FALLS_BACK = {
    "what cannot be captured": ("h = x.array.ctypes.shape[0]", "`.ctypes` of an array is used inside the compiled function"),
    "the user's own exception": ("h = dict()[3]", "compiling it raised KeyError: 3"),
}


@pytest.mark.parametrize("case", FALLS_BACK)
def test_explain_of_a_call_that_falls_back(case, module):
    line, reason = FALLS_BACK[case]
    user = module(f"""
    def inner(x):
        h = F.relu(x)
        {line}
        return h

    def f(x):
        y = F.tanh(x)
        return inner(y)
    """)
    report = to_static(user.f).explain(x_())
    with open(user.__file__) as file:
        place = next(i for i, text in enumerate(file, 1) if text.strip() == line)
    assert report.reason == reason and report.at.line == place and report.counts == {}
    assert [mark.kind for mark in report.marks(place)] == ["eager"]
    assert [mark.kind for mark in report.marks(place + 1)] == ["not run"]
    assert f"this call runs eagerly: {reason}" in report


def test_explain_before_the_first_call_of_a_model(module):
    f, link = to_static(module("def f(link, x):\n    return F.relu(link(x))\n").f), L.Linear(None, 2)
    assert "parameter W is not initialized yet (call the function once: " in str(f.explain(link, x_()))
    f(link, x_())
    assert "this call is compiled" in str(f.explain(link, x_()))


def test_explain_lists_each_function_once(module):
    user = module("""
    import functools

    def marked(function):
        return function

    def wrapping(function):
        @functools.wraps(function)
        def wrapper(x):
            return function(x)
        return wrapper

    @marked
    @marked
    def inner(x):
        return F.relu(x)

    @marked
    def f(x):
        def nested(y):
            return inner(y)
        return nested(inner(x))

    @wrapping
    def g(x):
        return inner(x)
    """)
    report = to_static(user.f).explain(x_())
    assert [(listing.name, listing.lines[0].text) for listing in report.listings] == [("f", "@marked"), ("inner", "def inner(x):")]
    report = to_static(user.g).explain(x_())
    assert [(listing.name, listing.lines[-1].text.strip()) for listing in report.listings] == [
        ("g", "return function(x)"), ("g", "return inner(x)"), ("inner", "return F.relu(x)")]


def test_explain_without_source(module):
    report = to_static(without_source()).explain(x_())
    assert report.splitlines() == ["g (<made>, which cannot be read)",
                                   "this call runs eagerly: the source of g cannot be read: no file '<made>'"]
    assert report.marks(1) == () and report.reason.startswith("the source of g")


def test_explain_changes_nothing(module):
    user = module(EXPLAINED)
    f = to_static(user.f)
    f.explain(x_())
    assert f.stats()["captures"] == 0 and f.stats()["fallbacks"] == 0


def test_explain_says_why_a_call_is_eager():
    def f(x):
        h = F.relu(x)
        h = h * len("a".center(int(h.array[0, 0])))
        return h
    text = to_static(f).explain(x_())
    assert f"this call runs eagerly: {REASON}" in text
    line = f.__code__.co_firstlineno + 2
    assert re.search(rf"^ *{line}     {re.escape(LINE)} +\| .*EAGER: {re.escape(f'{REASON} ({HINT})')}$", text, re.M)


def test_stats_count_what_programs_hold():
    def f(x):
        print(end="")
        y = F.relu(x)
        if float(F.sum(y).array) > 0:
            while float(F.sum(y).array) < 100:
                y = F.forget(F.exp, y) * 2
        return y
    static = to_static(f)
    static(x_())
    stats = static.stats()
    names = "captures", "programs", "fallbacks", "regions", "host_call", "opaque"
    assert [stats[name] for name in names] == [1, 1, 0, 2, 1, 1]


def test_cache_info_counts_and_limits():
    f = to_static(scaled, cache_limit=2, dynamic=False)
    for size in (1, 2, 3, 1):
        f(x_(size))
    info = f.cache_info()._asdict()
    assert info.pop("bytes") > 0
    assert info == {"programs": 2, "limit": 2, "captures": 4, "fallbacks": 0, "misses": 4, "evicted": 2, "limit_bytes": None,
                    "paused": 0}


def test_clear_cache_forgets_programs():
    f = to_static(scaled)
    f(x_())
    f.clear_cache()
    assert (f.cache_info().programs, f.graph) == (0, None)
    f(x_())
    assert (f.cache_info().programs, f.cache_info().captures) == (1, 2)


def test_a_static_function_looks_like_the_function():
    f = to_static(scaled)
    assert (f.__name__, f.__doc__, f.__wrapped__, f.rollback()) == ("scaled", None, scaled, scaled)
    assert to_static(f) is f
    assert repr(f) == "<static scaled>"


def test_a_static_function_has_the_attributes_of_functions():
    def f(x, factor=2.0, *, bias=1.0):
        """Scale."""
        return x * factor + bias

    class Net(chainer.Chain):
        forward = to_static(f)

    static = Net.forward
    assert static(x_()).array.tolist() == f(x_()).array.tolist()
    for owner in (static, Net().forward):
        assert owner.__code__ is f.__code__ and owner.__globals__ is globals() and owner.__closure__ is None
        assert (owner.__defaults__, owner.__kwdefaults__) == ((2.0,), {"bias": 1.0})
    method = Net().forward
    assert str(inspect.signature(method)) == "(factor=2.0, *, bias=1.0)" and inspect.getsource(method) == inspect.getsource(f)
    assert (method.__name__, method.__qualname__, method.__doc__) == ("f", f.__qualname__, "Scale.")
    assert method.__annotations__ is f.__annotations__ and inspect.getdoc(dy2static.BoundStaticFunction).startswith("A `Static")
    pytest.raises(AttributeError, setattr, method, "own", 1)
    static.__defaults__, static.__kwdefaults__ = (3.0,), {"bias": 5.0}
    assert f.__defaults__ == (3.0,)
    assert static(x_()).array.tolist() == (x_() * 3.0 + 5.0).array.tolist()
    with pytest.raises(AttributeError):
        static.__globals__ = {}


# --- falling back ---

REFUSED = """
def f(x):
    h = F.relu(x)
    h = h * len("a".center(int(h.array[0, 0])))
    return h
"""
REASON = "Python needs the contents of an array here (a condition, a conversion or a string)"
LINE = 'h = h * len("a".center(int(h.array[0, 0])))'
HINT = "compute with it, index arrays by it, decide by it in `if` and `while`, or return it"


def test_a_cut_warns_once_with_line_and_reason(module):
    function = module(REFUSED).f
    f = to_static(function)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            assert same_as_eager(f, function, x_())
    place = f"{function.__code__.co_filename}:7: {LINE}"
    assert [str(w.message) for w in caught if w.category is dy2static.FallbackWarning] == [
        f"f: line 7 runs as Python, between compiled parts: {REASON} ({place}); {HINT}"]
    assert (f.cache_info().captures, f.cache_info().fallbacks, f.stats()["cuts"]) == (0, 0, 1)


def test_text_in_place_of_an_array(module):
    """The reason is said, and then the error is that of eager mode."""
    f = to_static(module("def f(x):\n    return F.tanh(x)\n").f)
    with pytest.warns(dy2static.FallbackWarning, match="a Chainer function gets a str, which is no array .*return F.tanh.*give an array"):
        with pytest.raises(TypeError, match="incompatible array types"):
            f("a")


@pytest.mark.parametrize("ask", ["call", "program"])
def test_strict_raises(ask, module):
    function = module(REFUSED).f
    f = to_static(function, strict=True)
    with pytest.raises(dy2static.CaptureError) as caught:
        f(x_()) if ask == "call" else f.program(x_())
    lines = str(caught.value).splitlines()
    what = {"call": "cannot be compiled", "program": "runs eagerly for these arguments"}[ask]
    assert lines[0] == f"D2S201: f {what}: {REASON}"
    assert lines[1] == f"  {function.__code__.co_filename}:7"
    assert lines[2].strip() == LINE
    assert lines[-1] == f"  hint: {HINT}"


def test_not_to_static_runs_on_the_host_every_time(module):
    user = module("""
    seen = []

    @not_to_static
    def look(h):
        seen.append(float(h.array.sum()))
        if seen[-1] > 0:
            seen.append("positive")

    def f(x):
        h = F.relu(x)
        y = h * 2
        look(h)
        return y
    """)
    f = to_static(user.f, strict=True)
    for _ in range(3):
        f(x_())
    assert user.seen == [float(F.relu(x_()).array.sum()), "positive"] * 3
    assert f.stats()["host_call"] >= 1 and f.cache_info().captures == 1
    assert "host, at every call: look" in f.explain(x_())
    assert to_static(user.look) is user.look is not_to_static(user.look)


# --- messages ---

NO_SOURCE = """\
{name} cannot be compiled: the source of {name} cannot be read: no file '<made>'
  hint: put the function in a file (or a notebook cell); functions typed at a prompt, made by exec, or written in C \
run eagerly"""


def without_source():
    namespace = {"F": F}
    # under another name than '<string>', which Python 3.13 knows the text of where it was started with -c
    exec(compile("def g(x):\n    return F.relu(x)\n", "<made>", "exec"), namespace)
    return namespace["g"]


def test_a_function_without_source_runs_eagerly():
    g = to_static(without_source())
    with pytest.warns(dy2static.FallbackWarning) as caught:
        y = g(x_())
    assert np.array_equal(y.array, F.relu(x_()).array)
    assert len(caught) == 1
    assert str(caught[0].message).startswith(
        "g runs in eager mode for this signature: the source of g cannot be read: no file '<made>'; put the function in ")


def test_a_function_without_source_is_refused_when_strict():
    with pytest.raises(dy2static.CaptureError) as caught:
        to_static(without_source(), strict=True)(x_())
    assert str(caught.value) == "D2S201: " + NO_SOURCE.format(name="g")


def test_code_of_a_function_without_source():
    with pytest.raises(OSError) as caught:
        to_static(without_source()).code  # noqa: B018
    assert str(caught.value).startswith("D2S102: the source of g cannot be read: no file '<made>'\n  hint: put ")


def test_unsupported_syntax_is_reported_at_once(module):
    user = module("""
    async def f(x):
        async with x:
            await x
    """)
    with pytest.raises(SyntaxError) as caught:
        to_static(user.f).code  # noqa: B018
    assert str(caught.value) == (
        f"D2S101: an async function cannot be compiled\n  {user.f.__code__.co_filename}:5\n    async def f(x):\n    ^\n"
        "  hint: decorate the synchronous function that it calls, or use not_to_static")


def raised(function, *args):
    """The exception of a call, as (type, text, the user's frames: function and line of text)."""
    import traceback
    with pytest.raises(Exception) as caught:  # noqa: PT011, B017
        function(*args)
    frames = [(frame.name, frame.line) for frame in traceback.extract_tb(caught.value.__traceback__)
              if os.path.basename(frame.filename).startswith("user_")]
    return type(caught.value), str(caught.value), frames


FAILING = {
    "shape error": ("""
        def inner(h):
            return F.matmul(h, h)

        def f(x):
            h = F.relu(x)
            return inner(h)
        """, chainer.utils.type_check.InvalidType, "Expect: a.shape[-1] == b.shape[-2]\nActual: 3 != 2",
        [("f", "return inner(h)"), ("inner", "return F.matmul(h, h)")]),
    "truth of a Variable": ("""
        def f(x):
            if x > 0:
                x = -x
            return x
        """, TypeError, "Variables do not support > operator. You could use `array` attribute instead.",
        [("f", "if x > 0:")]),
    "unbound local": ("""
        def f(x):
            if x.shape[0] > 5:
                y = x
            return y
        """, UnboundLocalError, "y", [("f", "return y")]),
    "the user's own": ("""
        class Refused(Exception):
            pass

        def f(x):
            raise Refused(F.relu(x).shape)
        """, None, "(2, 3)", [("f", "raise Refused(F.relu(x).shape)")]),
}


@pytest.mark.parametrize("case", FAILING)
@pytest.mark.parametrize("strict", [False, True])
def test_a_mistake_of_the_user_looks_as_in_eager(case, strict, module):
    text, kind, message, frames = FAILING[case]
    user = module(text)
    eager = raised(user.f, x_())
    compiled = raised(to_static(user.f, strict=strict), x_())
    assert compiled[:2] == eager[:2]
    assert compiled[0] is (kind or user.Refused) and message in compiled[1]
    assert [frame for frame in compiled[2] if frame in frames] == frames == eager[2]


def test_warnings_are_of_one_kind():
    assert issubclass(dy2static.FallbackWarning, UserWarning)
    assert issubclass(dy2static.CaptureError, dy2static.Dy2StaticError)
    assert logging.getLogger("dy2static").level == logging.NOTSET


def test_paths_of_globals_are_written_as_in_the_source():
    f = to_static(of_globals)
    f(np.ones(2, "f"))
    assert "global SETTINGS['scale'] == 2" in str(f.explain(np.ones(2, "f")))


SETTINGS = {"scale": 2}


def of_globals(x):
    return x * SETTINGS["scale"]
