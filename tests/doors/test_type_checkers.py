"""What type checkers see: a sample of user code (tests/cases/typing_sample.py), whose comments say types and errors."""
import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dy2static
from dy2static import config
from dy2static.options import Options

ROOT = Path(dy2static.__file__).resolve().parent.parent
SAMPLE = ROOT / "tests" / "cases" / "typing_sample.py"
STUB = ROOT / "dy2static" / "typed.pyi"


def expected():
    """(line, "is" or "error", type or code) of each comment in the sample."""
    lines = SAMPLE.read_text(encoding="utf-8").split("\n")
    found = {(number, *match) for number, line in enumerate(lines, 1) for match in re.findall(r"# (is|error): (\S+)$", line)}
    assert {number for number, _, _ in found} >= {number for number, line in enumerate(lines, 1) if "reveal_type(" in line}
    return found


def reported(output):
    """The same of what mypy printed; versions differ in whether they write ``builtins.``."""
    shown = re.findall(r":(\d+): note: Revealed type is \"(.*)\"$", output, re.M)
    errors = re.findall(r":(\d+): error: .*\[([\w-]+)\]$", output, re.M)
    return ({(int(line), "is", text.replace("builtins.", "")) for line, text in shown}
            | {(int(line), "error", code) for line, code in errors})


def test_mypy_sees_signatures(tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", f"--cache-dir={tmp_path}", "--follow-imports=silent", "--no-pretty",
         "--ignore-missing-imports", "--hide-error-context", str(SAMPLE)],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT)}, capture_output=True, text=True, timeout=300)
    assert run.returncode == 1, run.stdout + run.stderr
    assert reported(run.stdout) == expected(), run.stdout


def settings():
    """Name and annotation of each option in the stub."""
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Settings")
    return {node.target.id: ast.unparse(node.annotation) for node in body if isinstance(node, ast.AnnAssign)}


def test_the_options_are_those_of_to_static():
    assert list(settings()) == list(inspect.signature(dy2static.to_static).parameters)[1:]


@pytest.mark.parametrize("name", ["strict", "rng", "backend", "recompute", "grads"])
def test_words_of_options_are_taken(name):
    """`Options` takes each word; of the backends, the stub has all, and Paddle's word for one."""
    words = set(re.findall(r"'([^']+)'", settings()[name])) - {"CINN"}
    assert words
    for word in words:
        assert getattr(Options(**{name: word}), name) == word
    if name == "backend":
        assert words == set(config.BACKENDS)
