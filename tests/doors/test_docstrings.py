"""Every public name of the package says what it does, and what a user reaches says which errors of ours it raises."""
import ast
import collections
import importlib
import inspect
import operator
import pkgutil
import re
import textwrap
import types

import chainer
import numpy
import pytest

import dy2static
from dy2static import errors

# a sentence, or a first line that introduces the lines that follow
SENTENCE = re.compile(r"[A-Z`\"'(\d].*[.:?]$")

# a lowering is documented by its decorator, which names the function of Chainer's
REGISTERED = re.compile(r"^@lowers\(", re.MULTILINE)

# what shadows and symbolic values stand for: methods of these names do what theirs do
STOOD_FOR = (list, dict, set, str, collections.deque, collections.OrderedDict, numpy.ndarray, chainer.Parameter)

ERRORS = {name for name, value in vars(errors).items()
          if isinstance(value, type) and issubclass(value, errors.Dy2StaticError) and not issubclass(value, errors.InternalError)}

# what cannot happen: levels from the environment are checked when they are read
NEVER_RAISED = {("StaticFunction.code", "SignatureError")}


def public_modules():
    """Every module of the package that can be imported without running it."""
    for info in pkgutil.walk_packages(dy2static.__path__, "dy2static."):
        if not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def documented(module):
    """(name, object) of each public function, class, method and property that the module defines."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if isinstance(value, types.FunctionType):
            yield name, value
        elif isinstance(value, type):
            yield name, value
            if getattr(value, "_is_protocol", False):
                continue                                # the docstring of a protocol has a word for each of its methods
            yield from ((f"{name}.{key}", getattr(value, key)) for key, member in vars(value).items()
                        if not key.startswith("_") and isinstance(member, (types.FunctionType, staticmethod, classmethod)))
            yield from ((f"{name}.{key}", member) for key, member in vars(value).items()
                        if not key.startswith("_") and isinstance(member, property))


def source_of(function):
    """The source of a function; empty for what `dataclasses` and `NamedTuple` write."""
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return ""


def is_documented_elsewhere(module, name, value):
    """Whether something else says what a function does: a protocol that it is part of, or a decorator that registers it."""
    last = name.split(".")[-1]
    stands_in = module.startswith(("dy2static.heap.", "dy2static.symbolic.")) and "." in name
    return (last.startswith("visit_") or stands_in and any(hasattr(cls, last) for cls in STOOD_FOR)
            or bool(REGISTERED.search(source_of(value))))


def test_every_public_name_has_a_docstring():
    """Methods may inherit theirs."""
    problems = []
    for module in public_modules():
        for name, value in documented(module):
            first = (inspect.getdoc(value) or "").split("\n")[0]
            if not first and not is_documented_elsewhere(module.__name__, name, value):
                problems.append(f"{module.__name__}.{name}: no docstring")
            elif value.__doc__ and not SENTENCE.match(first):
                problems.append(f"{module.__name__}.{name}: its first line is no sentence: {first}")
    report(problems)


def reached():
    """Yield (name, function) for all that a user reaches: public functions, and methods and properties of public classes."""
    public = {name: getattr(dy2static, name) for name in dy2static.__all__}
    for module in [value for value in public.values() if isinstance(value, types.ModuleType)]:
        public.update({f"{module.__name__.partition('.')[2]}.{name}": value for name, value in vars(module).items()
                       if getattr(value, "__module__", "") == module.__name__ and not name.startswith("_")})
    for name, value in public.items():
        if isinstance(value, types.ModuleType):
            continue
        if not isinstance(value, type):
            yield name, value
            continue
        for key in dir(value):
            member = inspect.getattr_static(value, key)
            member = getattr(member, "fget", None) or getattr(member, "__func__", member)
            ours = isinstance(member, types.FunctionType) and member.__module__.startswith("dy2static.")
            if ours and (not key.startswith("_") or key in ("__init__", "__call__")):
                yield f"{name}.{key}", member


def raised(function, seen):
    """Names of the errors of ours that a function raises itself, or through functions of ours that it calls by name."""
    if function in seen:
        return set()
    seen.add(function)
    found = set()
    for node in ast.walk(ast.parse(source_of(function) or "pass")):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            found |= {ast.unparse(node.exc.func).split(".")[-1]} & ERRORS
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = function.__globals__.get(node.func.id)
            if isinstance(called, types.FunctionType) and called.__module__.startswith("dy2static."):
                found |= raised(called, seen)
    return found


def test_public_functions_say_what_they_raise():
    problems = []
    for name, function in reached():
        text = inspect.getdoc(function) or ""
        if name.endswith(("__init__", "__call__")):
            text += inspect.getdoc(operator.attrgetter(name.rpartition(".")[0])(dy2static)) or ""
        problems += [f"{name}: raises {error}, which its docstring does not say"
                     for error in raised(function, set()) if (name, error) not in NEVER_RAISED and not ("aises" in text and error in text)]
        problems += [f"{name}: no docstring"] * (not text)
    report(problems)


def report(problems):
    """Fail with one problem a line."""
    if problems:
        pytest.fail("\n" + "\n".join(sorted(problems)), pytrace=False)
