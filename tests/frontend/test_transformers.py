"""Every transformer on its case files, its docstring, random programs and Chainer's own code."""

import contextlib
import inspect
import itertools
import linecache
import pathlib
import re
import sys
import textwrap
import traceback

import gast
import pytest
import random_programs
from parsed_text import parse_text

from dy2static import transformers
from dy2static.errors import UnsupportedSyntaxError
from dy2static.pyast import loader, parser
from dy2static.pyast.kinds import bits_of, may_hold
from dy2static.pyast.printer import unparse
from dy2static.runtime import dy

FOLDER = pathlib.Path(__file__).parent.parent / "cases" / "transformers"
BY_FOLDER = {re.sub(r"(?<=.)(?=[A-Z])", "_", each.__name__).lower(): each for each in transformers.PIPELINE}


def pipeline(transformer):
    """The transformer after all it requires."""
    before = [each for required in transformer.requires for each in pipeline(required)]
    return tuple(dict.fromkeys(before)) + (transformer,)


class Case:
    """One case file: a function ``f`` (and what it needs), calls of it, and what a transformer makes of it.

    The folder names the transformer; in ``pipeline`` all run.
    """

    def __init__(self, path):
        self.path = path
        text = path.read_text()
        self.before, _, self.after = text.partition("# after\n")
        self.calls = re.match(r"# run: (.*)", text).group(1).split("; ")
        folder = path.parent.name
        self.pipeline = transformers.PIPELINE if folder == "pipeline" else pipeline(BY_FOLDER[folder])

    def __str__(self):
        return f"{self.path.parent.name}/{self.path.stem}"

    def transform(self, text):
        return unparse(transformers.apply(self.pipeline, parse_text(text, "f")))

    def define(self, text, names):
        exec(compile(text, str(self.path), "exec", dont_inherit=True), names)
        return names

    def namespace(self, text):
        return self.define(text, {"__name__": "case", "_dy": dy, "log": []})

    def outcomes(self, names):
        """What each call gives, appends to ``log``, or raises and from which lines of the case."""
        return [
            outcome(lambda call=call: eval(call, names), names["log"], str(self.path)) for call in self.calls
        ]


def outcome(call, log, file):
    """The result of a call, or its exception with the lines of ``file`` it went through; and the log."""
    log.clear()
    try:
        result = repr(call())
    except Exception as error:
        lines = [
            frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file
        ]
        result = (type(error), str(error), lines[-1:])
    return result, list(log)


def without_lines(outcomes):
    return [(result[:2] if isinstance(result, tuple) else result, log) for result, log in outcomes]


#: Cases in syntax that older Pythons cannot read.
NEWER = {"matches"} if sys.version_info < (3, 10) else set()
CASES = [Case(path) for path in sorted(FOLDER.glob("*/*.py")) if path.parent.name not in NEWER]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_text(case, update_golden):
    after = case.transform(case.before)
    if update_golden:
        case.path.write_text(case.before + "# after\n" + after)
    else:
        assert after == case.after
    assert case.transform(after) == after  # nothing left to do


@pytest.mark.parametrize("case", CASES, ids=str)
def test_meaning(case):
    eager, printed, staged = (case.namespace(case.before) for _ in range(3))
    case.define(case.after, printed)
    staged["f"] = converted(staged["f"], case.pipeline)
    expected = case.outcomes(eager)
    assert case.outcomes(staged) == expected
    assert without_lines(case.outcomes(printed)) == without_lines(expected)


def converted(function, pipeline=transformers.PIPELINE):
    tree = transformers.apply(pipeline, parser.parse(function))
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    return loader.load(tree, function).instantiate(function.__globals__, cells, dy, function)


EXAMPLE = re.compile(r"Before:\s*\n?(.*?)\n\s*After:\s*\n?(.*?)(?:\n\n|\n?$)", re.DOTALL)


@pytest.mark.parametrize("transformer", [t for t in transformers.PIPELINE if t.__name__.lower() not in NEWER])
def test_docstring(transformer):
    """The docstring's Before becomes its After."""
    before, after = (
        f"def f(self, x, h, a, b, c, n, F, rest, options):\n{textwrap.indent(textwrap.dedent(' ' * 4 + part), '    ')}"
        for part in EXAMPLE.search(textwrap.dedent(" " * 4 + transformer.__doc__)).groups()
    )
    tree = transformers.apply(pipeline(transformer), parse_text(before))
    assert unparse(tree) == unparse(parse_text(after))


def test_order():
    """What a transformer requires runs before it."""
    for number, transformer in enumerate(transformers.PIPELINE):
        assert set(transformer.requires) <= set(transformers.PIPELINE[:number])


def test_after_each():
    seen = []
    transformers.apply(
        transformers.PIPELINE,
        parse_text("def f(x):\n    return x"),
        after_each=lambda transformer, tree: seen.append((transformer, unparse(tree))),
    )
    assert seen == [(transformer, "def f(x):\n    return x\n") for transformer in transformers.PIPELINE]


CHANGED = tuple({kind for each in transformers.PIPELINE for kind in each.changes} - {gast.AST, gast.Call})


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_nodes_hold(case):
    """No transformer is kept from a node by what was noted of the nodes around it."""

    def check(transformer, tree):
        later = transformers.PIPELINE[transformers.PIPELINE.index(transformer) + 1:]
        changed = tuple(kind for each in later for kind in each.changes if kind in CHANGED)
        for node in gast.walk(tree):
            for inner in gast.walk(node):
                if isinstance(inner, changed):
                    assert may_hold(node, bits_of((type(inner),)))
                    assert node is not tree or isinstance(inner, gast.Assign) or tree.holds & bits_of((type(inner),))

    transformers.apply(transformers.PIPELINE, parse_text(case.before, "f"), check)


ASYNC = """
def f(x):
    async def g():
        await x
    async def h():
        pass
"""


def test_unsupported():
    """All problems are in one error, each with its line, a caret and a hint."""
    with pytest.raises(UnsupportedSyntaxError) as caught:
        transformers.apply(transformers.PIPELINE, parse_text(ASYNC, file="model.py"))
    assert str(caught.value).splitlines()[0].endswith("2 constructs cannot be compiled")
    assert "model.py:3" in str(caught.value) and "model.py:5" in str(caught.value)
    assert str(caught.value).count("hint: ") == 2


def test_every_dy_name_exists():
    """Whatever converted code may call is in the runtime."""
    text = "".join(path.read_text() for path in pathlib.Path(transformers.__file__).parent.glob("*.py"))
    emitted = set(re.findall(r"_dy\.(\w+)", text))
    assert emitted and all(hasattr(dy, name) for name in emitted)


def outcomes_of(function, log):
    """What a random program does on a few arguments."""

    def logged(value):
        log.append(repr(value))
        return value

    def call(*arguments):
        result = function(*arguments, logged)
        return list(itertools.islice(result, 5)) if inspect.isgenerator(result) else result

    return [
        outcome(lambda args=args: call(*args), log, function.__code__.co_filename)
        for args in ((0, 1), (1, 0), (2, 3), (-1, -1))
    ]


def check_random_program(seed):
    text, file = random_programs.Program(seed).text, f"<random program {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    try:
        code = compile(text, file, "exec")
    except SyntaxError:  # nonlocal of what is a parameter, or bound nowhere
        return
    names = {"suppress": contextlib.suppress}
    exec(code, names)
    hide = re.compile(r"at 0x\w+").sub
    log = []
    assert hide("", repr(outcomes_of(converted(names["f"]), log))) == hide(
        "", repr(outcomes_of(names["f"], log))
    ), text


@pytest.mark.parametrize("part", range(4))
def test_random_programs(part):
    """Converted and eager do the same: results, effects, exceptions and their lines."""
    for seed in range(part * 100, part * 100 + 100):
        check_random_program(seed)


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    if x == -1:\n        y = 0\n"
        + "".join(f"    elif x == {n}:\n        y = {n}\n" for n in range(900)),
        "def f(x):\n    return " + " + ".join(["x"] * 2000),
    ],
    ids=["elif", "sum"],
)
def test_too_deep(text):
    """What Python compiles, but is nested too deeply for us, is reported as such."""
    file = "<deep>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = {}
    exec(compile(text, file, "exec"), names)
    with pytest.raises(UnsupportedSyntaxError, match="nested too deeply"):
        converted(names["f"])
