"""Logs, environment variables and options: what each does, and what is said of wrong ones."""
import os
import pathlib
import re
import subprocess
import sys

import chainer
import chainer.functions as F
import numpy as np
import pytest

import dy2static
from dy2static import config, to_static, transformers
from dy2static.errors import SignatureError
from dy2static.options import Options

NAMES = [transformer.__name__ for transformer in transformers.PIPELINE]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

pytestmark = pytest.mark.usefixtures("quiet")


def x_(*shape):
    return chainer.Variable(np.random.RandomState(0).uniform(-1, 1, shape or (2, 3)).astype(np.float32))


def scaled(x, n=2):
    h = F.relu(x)
    if n > 1:
        h = h * n
    return h


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
    ("optimize", [("inline_returning_sides", "optimize"), ("simplify", "optimize"), ("eliminate_common", "optimize"), ("eliminate_dead", "optimize")]),
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


#: Settings of one process (each takes two seconds; those that go together share one), what they log, and what the process prints.
ENVIRONMENT = {
    "DY2STATIC_CODE_LEVEL=all DY2STATIC_PASS_LEVEL=simplify DY2STATIC_VERBOSITY=1": (
        [*(f"After transformer {i} '{name}' of f:" for i, name in enumerate(NAMES, 1)),
         "After pass 'simplify' of 'optimize', graph f:\n", "captured f("], "1 1 False"),
    "DY2STATIC_CODE_LEVEL=2,Calls DY2STATIC_BACKEND=c": ([f"After transformer 2 '{NAMES[1]}' of f:", "'Calls' of f:"], "1 1 True"),
    "DY2STATIC_CODE_LEVEL=IfElse,diff DY2STATIC_NATIVE_AFTER=1 DY2STATIC_VERIFY=1": (
        ["'IfElse' of f:\n--- before\n+++ IfElse\n", "\n+    def then_0(x):\n"], "1 1 True"),
    "DY2STATIC_ENABLED=0": ([], "0 0 False"),
}

#: Those of native code and of memory, and the files of tests that set them.
ELSEWHERE = {"BACKGROUND": "backends/test_native_background.py", "RECOMPUTE": "passes/test_memory_recompute.py",
             "CC": "backends/test_native_programs.py", "CC_SECONDS": "backends/test_native_background.py", "MARCH": "backends/test_native_cpus.py",
             "FULL_TRACEBACK": "frontend/test_tracebacks.py", "PROGRESS": "runtime/test_progress.py",
             "STRICT_BUILD": "backends/test_native_cpus.py", "CACHE_DIR": "backends/test_native_store.py",
             "CACHE_MB": "backends/test_native_store.py", "THREADS": "backends/test_native_team.py",
             "TUNE": "backends/test_tuning.py", "GPU_GRAPHS": "gpu/test_gpu_graphs.py", "KEEP": "runtime/test_kept_programs.py",
             "PACE": "runtime/test_pacing.py"}


@pytest.mark.any_python
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
    "DY2STATIC_ENABLED=yes": "DY2STATIC_ENABLED=yes is ignored, since it is to be 0 or 1; 1 holds",
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
    "to_static has no argument 'device'\n  hint: it has backend, build_strategy, ": lambda: to_static(scaled, device=0),
    "hint: did you mean InputSpec((None, 3))?": lambda: to_static(scaled, input_spec=[(None, 3)])(x_()),
    "neither forward nor __call__\n  hint: write `forward`": lambda: to_static(chainer.Chain),
    "input_spec has 3 specs, and scaled takes 2 arguments: x, n": lambda: to_static(scaled, input_spec=[dy2static.InputSpec([3])] * 3),
    "input_spec has none for y of <lambda>": lambda: to_static(lambda x, y: x, input_spec=[dy2static.InputSpec([3])])(x_(), x_()),
    'strict is True, False or "parts", not \'part\'': lambda: to_static(scaled, strict="part"),
    "input_spec is a list of InputSpecs, one for each argument, not InputSpec": lambda: to_static(scaled, input_spec=dy2static.InputSpec([3])),
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
