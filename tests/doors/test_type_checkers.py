"""What type checkers see: a sample of user code (tests/cases/typing_sample.py), whose comments say types and errors."""
import ast
import inspect
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import dy2static
from dy2static import config
from dy2static.lazy import LazyArray
from dy2static.options import Options

ROOT = Path(dy2static.__file__).resolve().parent.parent
SAMPLE = ROOT / "tests" / "cases" / "typing_sample.py"
STRICT_SAMPLE = ROOT / "tests" / "cases" / "typing_strict.py"
STUB = ROOT / "dy2static" / "typed.pyi"


#: What users import, or get from what they call.
PUBLIC = ("__init__.py api.py typed.pyi static_function.py training.py extensions.py static_graph.py input_spec.py errors.py "
          "saved/loading.py saved/saving.py saved/layer.py export/__init__.py export/to_onnx/door.py export/to_c/folder.py "
          "lazy/__init__.py lazy/typed.pyi lowering/registration.py backends/pipelines.py").split()

#: What is typed strictly besides.
INNER = ["backends/cuda"]

#: Chainer, which these import from, has few types, and does not say which names it exports.  The first sample is checked as most
#: users check their code: without what `strict` adds.
STRICT = """[mypy]
strict = True
ignore_missing_imports = True
follow_imports = silent
warn_unused_ignores = False
[mypy-dy2static.*]
disallow_untyped_calls = False
[mypy-chainer.*]
implicit_reexport = True
[mypy-typing_sample]
check_untyped_defs = False
disallow_any_generics = False
disallow_incomplete_defs = False
disallow_subclassing_any = False
disallow_untyped_calls = False
disallow_untyped_decorators = False
disallow_untyped_defs = False
strict_equality = False
warn_return_any = False
"""


def expected(sample=SAMPLE):
    """(line, "is" or "error", type or code) of each comment in the sample."""
    lines = sample.read_text(encoding="utf-8").split("\n")
    found = {(number, *match) for number, line in enumerate(lines, 1) for match in re.findall(r"# (is|error): (\S+)$", line)}
    assert {number for number, _, _ in found} >= {number for number, line in enumerate(lines, 1) if "reveal_type(" in line}
    return found


def reported(output):
    """The same of what mypy printed; versions differ in whether they write ``builtins.``."""
    shown = re.findall(r":(\d+): note: Revealed type is \"(.*)\"$", output, re.M)
    errors = re.findall(r":(\d+): error: .*\[([\w-]+)\]$", output, re.M)
    return ({(int(line), "is", text.replace("builtins.", "")) for line, text in shown}
            | {(int(line), "error", code) for line, code in errors})


@pytest.fixture(scope="module")
def said_by_mypy(tmp_path_factory):
    """What mypy says of the samples and of the public surface: one run, which reads the whole package."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    folder = tmp_path_factory.mktemp("mypy")
    (folder / "mypy.ini").write_text(STRICT)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=mypy.ini", f"--cache-dir={folder}", "--no-pretty", "--hide-error-context",
         str(SAMPLE), str(STRICT_SAMPLE), *[str(ROOT / "dy2static" / name) for name in PUBLIC + INNER]],
        cwd=folder, env={**os.environ, "MYPYPATH": str(ROOT)}, capture_output=True, text=True, timeout=300)
    assert run.returncode == 1, run.stdout + run.stderr
    return run.stdout


@pytest.mark.any_python
@pytest.mark.parametrize("sample", [SAMPLE, STRICT_SAMPLE], ids=lambda path: path.stem)
def test_mypy_sees_signatures(said_by_mypy, sample):
    own = "".join(line for line in said_by_mypy.splitlines(True) if sample.name in line)
    assert reported(own) == expected(sample), said_by_mypy


@pytest.mark.any_python
def test_what_is_typed_strictly(said_by_mypy):
    """The files that users import from, and `INNER`."""
    assert not re.findall(r"^(?!.*typing_(?:sample|strict)\.py).*: error: .*$", said_by_mypy, re.M), said_by_mypy


@pytest.mark.any_python
@pytest.mark.parametrize("sample", [SAMPLE, STRICT_SAMPLE], ids=lambda path: path.stem)
def test_pyright_sees_the_same(tmp_path, sample):
    """The same types, and errors in the same lines: codes have other names.  It names a type without its module."""
    pytest.importorskip("basedpyright", reason="basedpyright is not installed")
    (tmp_path / sample.name).write_text(sample.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(
        {"typeCheckingMode": "basic", "extraPaths": [str(ROOT)], "reportMissingImports": "none", "reportPrivateImportUsage": "none"}))
    run = subprocess.run([sys.executable, "-m", "basedpyright", "--outputjson", f"--pythonpath={sys.executable}", sample.name],
                         cwd=tmp_path, capture_output=True, text=True, timeout=300)
    found = json.loads(run.stdout)["generalDiagnostics"]
    types_seen = {(one["range"]["start"]["line"] + 1, re.sub(r".* is \"(.*)\"$", r"\1", one["message"], flags=re.S))
                  for one in found if one["severity"] == "information"}
    errors = {one["range"]["start"]["line"] + 1 for one in found if one["severity"] == "error"}
    assert types_seen == {(line, text.rpartition(".")[2]) for line, what, text in expected(sample) if what == "is"}, run.stdout
    assert errors == {line for line, what, _ in expected(sample) if what == "error"}, run.stdout


def test_lazy_arrays_have_what_type_checkers_see():
    tree = ast.parse((ROOT / "dy2static" / "lazy" / "typed.pyi").read_text(encoding="utf-8"))
    seen = {node.name for body in tree.body if isinstance(body, ast.ClassDef) for node in body.body if isinstance(node, ast.FunctionDef)}
    ours = {name for name in dir(LazyArray) if not name.startswith("_") and not isinstance(vars(LazyArray).get(name), types.MemberDescriptorType)}
    own = set(re.findall(r"^    def (\w+)", (ROOT / "dy2static" / "lazy" / "arrays.py").read_text(encoding="utf-8"), re.M))
    assert seen <= set(dir(LazyArray)) and ours <= seen | own


def settings():
    """Name and annotation of each option in the stub."""
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Settings")
    return {node.target.id: ast.unparse(node.annotation) for node in body if isinstance(node, ast.AnnAssign)}


def test_the_options_are_those_of_to_static():
    _, *options = inspect.signature(dy2static.to_static).parameters.values()
    assert list(settings()) == [option.name for option in options if option.kind is not option.VAR_KEYWORD]     # which takes unknown ones


@pytest.mark.parametrize("name", ["strict", "rng", "backend", "recompute", "grads"])
def test_words_of_options_are_taken(name):
    """`Options` takes each word; of the backends, the stub has all, and Paddle's word for one."""
    words = set(re.findall(r"'([^']+)'", settings()[name])) - {"CINN"}
    assert words
    for word in words:
        assert getattr(Options(**{name: word}), name) == word
    if name == "backend":
        assert words == set(config.BACKENDS)
