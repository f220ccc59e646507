"""What a user can see and switch: code, programs, graphs, counts, logs, and the text of every message."""
import functools
import importlib.util
import inspect
import logging
import os
import pathlib
import re
import subprocess
import sys
import textwrap
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

import dy2static
from dy2static import config, not_to_static, to_static, transformers
from dy2static.errors import SignatureError
from dy2static.options import Options

NAMES = [transformer.__name__ for transformer in transformers.PIPELINE]
HEADER = "import chainer\nimport chainer.functions as F\nfrom dy2static import *\n"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.fixture
def module(tmp_path):
    """``module(text)``: the text as a module with a file of its own, so that its functions are new to us."""
    count = iter(range(100))

    def load(text):
        path = tmp_path / f"user_{next(count)}.py"
        path.write_text(HEADER + textwrap.dedent(text))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made
    return load


@pytest.fixture(autouse=True)
def quiet():
    """Logging is off before and after every test."""
    with config.CODE_LEVEL.set(""), config.PASS_LEVEL.set(""), config.VERBOSITY.set(0), config.ENABLED.set(1):
        yield


def x_(*shape):
    return chainer.Variable(np.random.RandomState(0).uniform(-1, 1, shape or (2, 3)).astype(np.float32))


def same_as_eager(static, function, *args):
    """Whether both give the same array and gradients."""
    arrays = []
    for f in (static, function):
        variables = [chainer.Variable(np.array(a.array)) for a in args]
        y = f(*variables)
        F.sum(y * y).backward()
        arrays.append([y.array] + [v.grad for v in variables])
    return all(np.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(*arrays))


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


# --- logs ---

TEXT = """
def f(x, n=1):
    if n > 0 and n < 3:
        x = F.relu(x)
    return x
"""


@pytest.mark.parametrize("level, expected", [
    ("", []),
    ("all", NAMES),
    ("last", NAMES[-1:]),
    ("IfElse", ["IfElse"]),
    ("ifelse", ["IfElse"]),
    (NAMES.index("IfElse") + 1, ["IfElse"]),
    (["IfElse", "Calls"], ["IfElse", "Calls"]),
    ((1, "last"), [NAMES[0], NAMES[-1]]),
])
def test_set_code_level(level, expected, module, caplog):
    dy2static.set_code_level(level)
    to_static(module(TEXT).f)(x_())
    messages = [record.getMessage() for record in caplog.records if record.name == "dy2static"]
    assert [re.match(r"After transformer \d+ '(\w+)' of f:\n", message).group(1) for message in messages] == expected
    numbers = [int(re.search(r"\d+", message).group()) for message in messages]
    assert numbers == [NAMES.index(name) + 1 for name in expected]
    if "IfElse" in expected:
        assert "def then_0(x):" in messages[expected.index("IfElse")]


CHANGED = """\
--- before
+++ IfElse
@@ -1,4 +1,10 @@
 def f(x, n=1):
-    if n > 0 and n < 3:
+
+    def then_0(x):
         x = F.relu(x)
+        return x,
+
+    def else_0(x):
+        return x,
+    x, = _dy.cond(n > 0 and n < 3, then_0, else_0, (x,), names=('x',))
     return x"""


def test_set_code_level_as_a_diff(module, caplog):
    dy2static.set_code_level(["IfElse", "SuperCalls"], diff=True)
    to_static(module(TEXT).f)(x_())
    messages = [record.getMessage() for record in caplog.records if record.name == "dy2static"]
    number = NAMES.index("IfElse") + 1
    assert messages == [f"After transformer {NAMES.index('SuperCalls') + 1} 'SuperCalls' of f:\n(no change)",
                        f"After transformer {number} 'IfElse' of f:\n{CHANGED}"]


def test_stages_of_a_function_that_is_converted_already(module):
    f = to_static(module(TEXT).f)
    f(x_())
    whole = f.stages()
    assert re.findall(r"^# (\d+) (\w+)$", whole, re.M) == [(str(i), name) for i, name in enumerate(NAMES, 1)]
    assert whole.endswith(f.code.strip() + "\n")
    assert f.stages("last") == f"# {len(NAMES)} {NAMES[-1]}\n{f.code.strip()}\n"
    assert f.stages("IfElse", diff=True) == f"# {NAMES.index('IfElse') + 1} IfElse\n{CHANGED}\n"


@pytest.mark.parametrize("level, expected", [
    ("", []),
    ("simplify", [("simplify", "optimize")]),
    ("optimize", [("simplify", "optimize"), ("eliminate_common", "optimize"), ("eliminate_dead", "optimize")]),
    (["batch_products", "eliminate_dead"], [("eliminate_dead", "optimize"), ("batch_products", "numpy")]),
    ("last", [("eliminate_dead", "optimize"), ("weight_gradients", "numpy"), ("eliminate_dead_in_regions", "numpy text")]),
])
def test_set_pass_level(level, expected, module, caplog):
    dy2static.set_pass_level(level)
    to_static(module(TEXT).f)(x_())
    messages = [record.getMessage() for record in caplog.records if record.name == "dy2static"]
    told = [re.match(r"After pass '(\w+)' of '([\w ]+)', graph f:\n(?s:.+)", message).groups() for message in messages]
    assert told == expected
    assert all(message.endswith("\n(no change)") for message in messages if "simplify" not in message)


def test_pipelines():
    """Every pass has a name and says what it does; printed, a line each."""
    found = dy2static.pipelines()
    assert [pipeline.name for pipeline in found][:3] == ["clean", "optimize", "backward"]
    text = str(found)
    for pipeline in found:
        assert f"{pipeline.name}: {pipeline.purpose}" in text
        for step in pipeline.passes:
            assert re.search(rf"\n  {step.name} +{re.escape(step.summary)}", text) and step.summary.endswith((".", ":"))
    assert re.search(r"\n  fast_random .*\[rng=\"fast\"\]", text)


LOGS = ["captured f(", "graph of f:\n", "code of f:\n"]


@pytest.mark.parametrize("level, expected", [(0, []), (1, LOGS[:1]), (2, LOGS[:1]), (3, LOGS[:2]), (4, LOGS)])
def test_set_verbosity(level, expected, module, caplog):
    dy2static.set_verbosity(level)
    to_static(module(TEXT).f)(x_())
    assert [text for text in LOGS if text in caplog.text] == expected


def test_verbosity_says_why_it_was_captured_again(module, caplog):
    dy2static.set_verbosity(1)
    f = to_static(module(TEXT).f)
    f(x_(2, 3))
    f(x_(4, 3))
    assert "f: a program does not fit: argument 0: Variable (2, 3) float32 requires_grad=True" in caplog.text


#: Settings of one process (each takes two seconds), what each of them logs, and what the process prints.
ENVIRONMENT = {
    "DY2STATIC_CODE_LEVEL=all": ([f"After transformer {i} '{name}' of f:" for i, name in enumerate(NAMES, 1)], "1 1 False"),
    "DY2STATIC_CODE_LEVEL=2,Calls": ([f"After transformer 2 '{NAMES[1]}' of f:", "'Calls' of f:"], "1 1 False"),
    "DY2STATIC_CODE_LEVEL=IfElse,diff": (["'IfElse' of f:\n--- before\n+++ IfElse\n", "\n+    def then_0(x):\n"], "1 1 False"),
    "DY2STATIC_PASS_LEVEL=simplify DY2STATIC_VERBOSITY=1": (["After pass 'simplify' of 'optimize', graph f:\n", "captured f("], "1 1 False"),
    "DY2STATIC_ENABLED=0": ([], "0 0 False"),
    "DY2STATIC_BACKEND=c": ([], "1 1 True"),
    "DY2STATIC_NATIVE_AFTER=1 DY2STATIC_VERIFY=1": ([], "1 1 True"),
}

#: Those of native code and of memory, and the files of tests that set them.
ELSEWHERE = {"BACKGROUND": "backends/test_native_background.py", "RECOMPUTE": "passes/test_memory_recompute.py",
             "CC": "backends/test_native_programs.py", "CC_SECONDS": "backends/test_native_background.py", "MARCH": "backends/test_native_cpus.py",
             "FULL_TRACEBACK": "frontend/test_tracebacks.py", "PROGRESS": "runtime/test_progress.py",
             "STRICT_BUILD": "backends/test_native_cpus.py", "CACHE_DIR": "backends/test_native_store.py",
             "CACHE_MB": "backends/test_native_store.py", "THREADS": "backends/test_native_team.py",
             "TUNE": "backends/test_tuning.py", "GPU_GRAPHS": "gpu/test_gpu_graphs.py", "KEEP": "runtime/test_kept_programs.py",
             "PACE": "runtime/test_pacing.py"}


@pytest.mark.parametrize("settings", ENVIRONMENT)
def test_environment_variables(settings, tmp_path):
    """Each variable does at the start what its function does later; logs go to stderr."""
    path = tmp_path / "user.py"
    path.write_text("from dy2static import *\nimport chainer.functions as F, numpy as np\n" + TEXT +
                    "\nf = to_static(f)\nfor _ in range(2): f(np.ones((2, 3), 'f'))\n"
                    "print(f.cache_info().captures, f.cache_info().programs, f.stats().get('native', 0) > 0)\n")
    clean = {k: v for k, v in os.environ.items() if not k.startswith("DY2STATIC_")}
    clean["DY2STATIC_BACKGROUND"] = "0"
    ran = subprocess.run([sys.executable, str(path)], env={**clean, "PYTHONPATH": ROOT, **dict(setting.split("=") for setting in settings.split())},
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=True)
    expected, counts = ENVIRONMENT[settings]
    assert ran.stdout.strip() == counts
    assert [text for text in expected if text not in ran.stderr] == []
    assert bool(ran.stderr) == bool(expected)


WRONG = {
    "DY2STATIC_BACKEND=zzz": "DY2STATIC_BACKEND=zzz is ignored, since it is to be one of auto, c, numpy; 'auto' holds",
    "DY2STATIC_CACHE_MB=much": "DY2STATIC_CACHE_MB=much is ignored, since it is to be a whole number from 0 on; 256 holds",
    "DY2STATIC_THREADS=-1": "DY2STATIC_THREADS=-1 is ignored, since it is to be a whole number from 0 on; 0 holds",
    "DY2STATIC_ENABLED=yes": "DY2STATIC_ENABLED=yes is ignored, since it is to be a whole number from 0 to 1; 1 holds",
    "DY2STATIC_CC_SECONDS=0": "DY2STATIC_CC_SECONDS=0 is ignored, since it is to be a number of seconds; 120 holds",
    "DY2STATIC_RECOMPUTE=some": "DY2STATIC_RECOMPUTE=some is ignored, since it is to be auto, none, cheap, sublinear or a number of bytes",
    "DY2STATIC_CODE_LEVEL=IfEls": "DY2STATIC_CODE_LEVEL is ignored: IfEls is not a transformer",
    "DY2STATIC_PASS_LEVEL=cs": "DY2STATIC_PASS_LEVEL is ignored: cs is no pass and no pipeline",
    "DY2STATIC_CODELEVEL=all": "there is no setting DY2STATIC_CODELEVEL; is it DY2STATIC_CODE_LEVEL?",
    "DY2STATIC_QQQQ=1": "there is no setting DY2STATIC_QQQQ\n",
}


def test_wrong_variables(tmp_path):
    """Each is named in one warning at the import, which goes on with the default; an empty one is none."""
    path = tmp_path / "user.py"
    path.write_text("import os\nimport dy2static\nfrom dy2static import config\n"
                    "print(all(flag.value == flag.default for flag in config.Flag.table.values()))\n")
    clean = {k: v for k, v in os.environ.items() if not k.startswith("DY2STATIC_")}
    ran = subprocess.run([sys.executable, str(path)], env={
        **clean, "PYTHONPATH": ROOT, **dict(setting.split("=") for setting in WRONG), "DY2STATIC_VERBOSITY": ""},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=True)
    assert ran.stdout == "True\n"
    assert [text for text in WRONG.values() if f"user.py:2: SettingWarning: {text}" not in ran.stderr] == []
    assert ran.stderr.count("SettingWarning") == len(WRONG)


REFUSED_OPTIONS = {
    "check is a whole number, at least 0, not 'yes'": lambda: to_static(scaled, check="yes"),
    "cache_limit is a whole number, at least 1, not -1": lambda: to_static(scaled, cache_limit=-1),
    "cache_bytes is a whole number, at least 0, not '1G'": lambda: to_static(scaled, cache_bytes="1G"),
    'strict is True, False or "parts", not \'no\'': lambda: to_static(scaled, strict="no"),
    "full_graph is True or False, not 2": lambda: to_static(scaled, full_graph=2),
    "dynamic is True or False, not None": lambda: to_static(scaled, dynamic=None),
    'backend is "auto", "c" or "numpy", not \'numpi\'\n  hint: "numpy"?': lambda: to_static(scaled, backend="numpi"),
    'rng is "eager" or "fast", not \'Fast\'\n  hint: "fast"?': lambda: to_static(scaled, rng="Fast"),
    "not 'chaep'\n  hint: \"cheap\"?": lambda: to_static(scaled, recompute="chaep"),
    "input_spec has 3 specs, and scaled takes x, n": lambda: to_static(scaled, input_spec=[dy2static.InputSpec([3])] * 3),
    "input_spec has none for y of <lambda>": lambda: to_static(lambda x, y: x, input_spec=[dy2static.InputSpec([3])])(x_(), x_()),
    'strict is True, False or "parts", not \'part\'': lambda: to_static(scaled, strict="part"),
    "input_spec is a list of InputSpecs": lambda: to_static(scaled, input_spec=dy2static.InputSpec([3])),
    "the dtype of an InputSpec is one of NumPy's": lambda: dy2static.InputSpec([3], "flot"),
    "Bogus is not a transformer: there are Unsupported, ": lambda: dy2static.set_code_level("Bogus"),
    'hint: "IfElse"?': lambda: dy2static.set_code_level(["Calls", "ifels"]),
    'hint: "last" is the source that is compiled': lambda: dy2static.set_code_level(100),
    "simplified is no pass and no pipeline: there are all, last, clean, ": lambda: dy2static.set_pass_level("simplified"),
    'hint: "simplify"?': lambda: dy2static.set_pass_level(["optimize", "simplifi"]),
    "Loop is not a transformer": lambda: to_static(scaled).stages("Loop"),
    "level is a whole number, at least 0, not 'loud'": lambda: dy2static.set_verbosity("loud"),
    "enabled is True or False, not 'no'": lambda: dy2static.enable_to_static("no"),
    "not_to_static marks functions of Python": lambda: dy2static.not_to_static(len),
    "native is True or False, not 'yes'": lambda: dy2static.load("nowhere", native="yes"),
    "native is True or False, not 3": lambda: dy2static.save(scaled, "nowhere", native=3),
    "minimize_cache_size is True or False, not 'a'": lambda: dy2static.static_graph(minimize_cache_size="a"),
    "verbosity is a whole number, at least 0, not -1": lambda: dy2static.static_graph(verbosity_level=-1),
}


@pytest.mark.parametrize("said", REFUSED_OPTIONS)
def test_options_that_there_are_not(said):
    level = config.CODE_LEVEL.value
    with pytest.raises(SignatureError) as caught:
        REFUSED_OPTIONS[said]()
    assert said in str(caught.value)
    assert config.CODE_LEVEL.value == level


def test_options_that_come_from_numpy():
    f = to_static(scaled, strict=np.bool_(True), cache_limit=np.int64(2), check=np.int32(0), recompute="4096")
    assert f.dispatcher.options == Options(strict=True, cache_limit=2, recompute=4096)


def test_every_variable_is_tested():
    here = {setting.partition("=")[0] for settings in ENVIRONMENT for setting in settings.split()}
    assert here | {f"DY2STATIC_{name}" for name in ELSEWHERE} == set(config.Flag.table)
    for name, file in ELSEWHERE.items():
        text = (pathlib.Path(__file__).parent.parent / file).read_text()
        assert f"config.{name}" in text or f"DY2STATIC_{name}" in text or f'"{name}"' in text, (name, file)


def test_enable_to_static():
    f = to_static(scaled)
    dy2static.enable_to_static(False)
    assert type(f(x_()).creator).__name__ == "MulConstant"
    dy2static.enable_to_static(True)
    f(x_())
    assert f.cache_info().captures == 1
    dy2static.enable_to_static(False)
    assert type(f(x_()).creator).__name__ == "MulConstant", "also what is compiled already"
    dy2static.enable_to_static(True)
    assert type(f(x_()).creator).__name__ == "CompiledFunction" and f.cache_info().captures == 1


# --- what to_static takes ---

class Affine(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(3, 2)
        self.l.W.array[...] = np.arange(6).reshape(2, 3)

    def forward(self, x):
        return F.relu(self.l(x))

    def twice(self, x):
        return self.l(x) * 2

    @classmethod
    def of_class(cls, x):
        return F.relu(x)


class Decorated(Affine):
    @to_static(strict=True)
    def forward(self, x):
        return F.relu(self.l(x))

    @staticmethod
    @to_static
    def of_static(x):
        return F.relu(x)

    of_class = classmethod(to_static(lambda cls, x: F.relu(x)))


class Scale:
    def __init__(self):
        self.factor = 3.0

    def __call__(self, x):
        return x * self.factor


def compiled_class():
    return to_static(type("Compiled", (Affine,), {"__module__": __name__}))()


FORMS = {
    "function": lambda: (to_static(scaled), scaled),
    "function, with options": lambda: (to_static(strict=True, cache_limit=3)(scaled), scaled),
    "lambda": lambda: (to_static(lambda x: F.relu(x) * 3), lambda x: F.relu(x) * 3),
    "partial": lambda: (to_static(functools.partial(scaled, n=3)), functools.partial(scaled, n=3)),
    "bound method": lambda: (to_static(Affine().twice), Affine().twice),
    "Chain": lambda: (to_static(Affine()), Affine()),
    "class": lambda: (compiled_class(), Affine()),
    "Sequential": lambda: (to_static(chainer.Sequential(Affine(), F.tanh)), chainer.Sequential(Affine(), F.tanh)),
    "decorated method": lambda: (Decorated(), Affine()),
    "static method": lambda: (Decorated.of_static, F.relu),
    "static method of an object": lambda: (Decorated().of_static, F.relu),
    "class method": lambda: (Decorated.of_class, F.relu),
    "callable object": lambda: (to_static(Scale()), Scale()),
    "link of Chainer": lambda: (to_static(Affine().l), Affine().l),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form):
    static, function = FORMS[form]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same_as_eager(static, function, x_())
        assert same_as_eager(static, function, x_())


def test_to_static_of_a_chain_gives_the_same_chain():
    model = Affine()
    assert to_static(model) is model
    assert isinstance(model, Affine) and type(model).__name__ == "Affine"
    model(x_())
    assert "_dy.call(F.relu)(_dy.call(self.l)(x))" in model.forward.code
    assert model.forward.cache_info().captures == 1
    assert to_static(model) is model, "a second time changes nothing"
    assert model.forward.cache_info().captures == 1


_NO_SOURCE = "C functions and builtins have no source to compile"
NOT_TAKEN = {
    "a number": (3, "int", _NO_SOURCE),
    "a builtin": (print, "builtin_function_or_method", _NO_SOURCE),
    "a class that is no Link": (dict, "type", "classes other than Links have no function to compile: decorate their methods"),
    "a property": (property(scaled), "property", "put `@to_static` below `@property`"),
    "a cache": (functools.lru_cache(scaled), "_lru_cache_wrapper", "put `@to_static` below the decorator that keeps results"),
}


@pytest.mark.parametrize("what", NOT_TAKEN)
def test_what_to_static_refuses(what):
    target, name, hint = NOT_TAKEN[what]
    with pytest.raises(TypeError) as caught:
        to_static(target)
    assert str(caught.value) == (
        f"D2S202: to_static takes a function, a method, a Chain class, a Link or an updater, not {name}\n  hint: {hint}")


# --- falling back ---

REFUSED = """
def f(x):
    h = F.relu(x)
    h = h * len("a".center(int(h.array[0, 0])))
    return h
"""
REASON = "Python needs the contents of an array here (a condition, a conversion or a string)"
LINE = 'h = h * len("a".center(int(h.array[0, 0])))'
HINT = "use it in computations, conditions and bounds of loops; it cannot become a size or a key"


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
