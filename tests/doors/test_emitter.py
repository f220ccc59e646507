"""Rules of ops see the C function that is being written through a protocol, and nothing of it that is not in there."""
import ast
from pathlib import Path

import pytest

import dy2static
from dy2static.backends.c.emitter import Emitter, FlowEmitter
from dy2static.backends.c.function import FunctionEmitter

pytestmark = pytest.mark.any_python

C = Path(dy2static.__file__).parent / "backends" / "c"
FILES = sorted(C.glob("*.py"))
PROTOCOLS = {"Emitter": Emitter, "FlowEmitter": FlowEmitter}
NAMES = ("emitter", "writer", "memory")


def members(protocol):
    """What a protocol has: methods, and attributes that are only annotated."""
    found = set()
    for base in protocol.__mro__:
        found |= {name for name in (*vars(base), *vars(base).get("__annotations__", ())) if not name.startswith("_")}
    return found


def parameters(function):
    """The parameters of a function, each with the text of its annotation."""
    arguments = function.args
    return {a.arg: ast.unparse(a.annotation) if a.annotation else "" for a in
            (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def functions(tree):
    """All functions in a tree, those in classes with what the class has bound: ``self.emitter``."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def uses(tree, name):
    """The attributes that a tree reads of ``name`` or ``self.name``, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in (name, f"self.{name}"):
            yield node.attr, node.lineno


def test_the_function_has_all_that_the_protocols_promise():
    promised = members(FlowEmitter)
    emitter = {*dir(FunctionEmitter), "storages", "generator", "memory", "standalone"}
    assert promised <= emitter, sorted(promised - emitter)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_rules_use_the_protocol_only(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    annotations = {parameters(function).get("emitter") for function in functions(tree)} - {None}
    annotations |= {ast.unparse(node.annotation) for node in ast.walk(tree)           # of classes whose bases bind it
                    if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "emitter"}
    assert annotations <= set(PROTOCOLS), f"{path.name}: parameters called emitter are annotated {annotations}"
    allowed = set().union(*(members(PROTOCOLS[name]) for name in annotations)) if annotations else set()
    wrong = [f"{path.name}:{line}: emitter.{name}" for name, line in uses(tree, "emitter") if name not in allowed]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nobody_takes_anything(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    wrong = [f"{path.name}:{function.lineno}: {name}" for function in functions(tree)
             for name, annotation in parameters(function).items() if name in NAMES and annotation in ("Any", "")]
    assert not wrong, "\n".join(wrong)
