"""Fetching, parsing, printing and loading functions of every kind."""

import ast
import contextlib
import functools
import linecache
import math
import sys
import textwrap
import types
import warnings

import gast
import pytest
from parsed_text import parse_text

from dy2static import transformers
from dy2static.errors import InternalError, SourceNotFoundError, UnsupportedSyntaxError
from dy2static.pyast import loader, parser, source, templates
from dy2static.pyast.printer import unparse
from dy2static.runtime import dy


def rebuilt(function, **changes):
    """``function`` parsed and loaded again, unchanged."""
    found = loader.load(parser.parse(function), function)
    arguments = {
        "globals": function.__globals__,
        "cells": dict(zip(function.__code__.co_freevars, function.__closure__ or ())),
        "dy": dy,
        "like": function,
        **changes,
    }
    return found.instantiate(**arguments)


def wrapping(function):
    @functools.wraps(function)
    def wrapper(*args):
        return "wrapped", function(*args)

    return wrapper


def plain(x, y=2, *args, k=3, **options):
    """Its doc."""
    return x, y, args, k, options


@wrapping
def wrapped(x):
    return x + 1


def asserting(x):
    """pytest rewrites the assertion, so that this code is not what its source compiles to."""
    assert x > 0, x
    return x


def counter(start):
    def count(step=1):
        nonlocal start
        start += step

        def peek():
            return start

        return peek()

    return count


# fmt: off
first, second = (lambda x: x + 1), (lambda x: x + 2)
same, other = (lambda x: x), (lambda x: x)
outer = lambda x: (lambda y: (x, y)); many = (   # noqa: E702
    lambda: 0)
factory = lambda n: [lambda: n, lambda: n + n]
# fmt: on


class Base:
    def who(self):
        return "base"


class Model(Base):
    __private = 7

    def who(self):
        return "model " + super().who() + __class__.__name__

    def secret(self):
        def inner():
            return self.__private

        return inner(), [self.__private for _ in range(2)]

    def keyword(self, __hidden=1):
        return __hidden

    static = staticmethod(lambda x: x * 2)
    hidden = lambda self: self.__private

    @property
    def prop(self):
        return super().who()

    def own_name(self):
        return Model, Base.who(self)


def local_class(n):
    class Model:
        def f(self):
            return Model, n, __class__, self.__n

        __n = 4

    return Model


@pytest.mark.parametrize(
    "function, arguments",
    [
        (plain, (1,)),
        (wrapped.__wrapped__, (1,)),
        (asserting, (1,)),
    (first, (1,)),
        (second, (1,)),
        (same, (1,)),
        (many, ()),
        (outer(3), (4,)),
        (factory(5)[0], ()),
        (factory(5)[1], ()),
        (Model.who, (Model(),)),
        (Model.secret, (Model(),)),
        (Model.keyword, (Model(), 3)),
        (Model.hidden, (Model(),)),
        (Model.static, (4,)),
        (Model.prop.fget, (Model(),)),
        (Model.own_name, (Model(),)),
    ],
    ids=lambda value: getattr(value, "__qualname__", None),
)
def test_rebuilt_gives_the_same(function, arguments):
    assert rebuilt(function)(*arguments) == function(*arguments)


def test_rebuilt_is_described_as_the_original():
    made = rebuilt(plain)
    for attribute in (
        "__name__",
        "__qualname__",
        "__module__",
        "__doc__",
        "__defaults__",
        "__kwdefaults__",
        "__annotations__",
    ):
        assert getattr(made, attribute) == getattr(plain, attribute)
    assert made.__code__.co_filename == __file__
    inner = rebuilt(local_class)(1).f
    assert inner.__qualname__ == local_class(1).f.__qualname__
    assert rebuilt(first).__code__.co_name == "<lambda>"


def test_local_class_of_the_same_name():
    cls = local_class(2)
    assert rebuilt(cls.f)(cls()) == cls().f()


def test_cells_are_shared():
    count = counter(10)
    made = rebuilt(count)
    assert (count(), made(), made(5), count()) == (11, 12, 17, 18)


def test_given_cells_globals_and_defaults():
    class Recording(dict):
        def __getitem__(self, name):
            seen.append(name)
            return dict.__getitem__(self, name)

    def uses_global():
        return math.pi, here

    seen, here = [], 1
    made = rebuilt(uses_global, globals=Recording(globals()), cells={"here": types.CellType(2)})
    assert made() == (math.pi, 2) and seen == ["math"]
    assert rebuilt(plain, like=wrapped.__wrapped__).__name__ == "wrapped"
    with pytest.raises(InternalError, match="here"):
        rebuilt(uses_global, cells={})


def test_traceback_has_the_users_lines():
    def fails(x):
        y = 1
        return y / x

    with pytest.raises(ZeroDivisionError) as eager:
        fails(0)
    with pytest.raises(ZeroDivisionError) as made:
        rebuilt(fails)(0)
    assert made.traceback[-1].lineno == eager.traceback[-1].lineno


def test_text_is_that_of_the_definition():
    assert source.fetch(wrapped.__wrapped__).text == "@wrapping\ndef wrapped(x):\n    return x + 1\n"
    assert source.fetch(wrapped).name == "wrapper"  # wrappers are not looked through
    assert source.fetch(second).text == "lambda x: x + 2"
    assert source.fetch(outer).text == "lambda x: (lambda y: (x, y))"
    assert source.fetch(outer(1)).text == "lambda y: (x, y)"
    assert source.fetch(factory(1)[1]).text == "lambda: n + n"
    assert source.fetch(Model.hidden).class_name == "Model"
    assert source.fetch(counter(1)).first_line == counter(1).__code__.co_firstlineno


NAMESPACE = {"__name__": "made"}
exec(compile("def made(x):\n    return x", "<made>", "exec"), NAMESPACE)     # Python 3.13 may have a text for "<string>"


@pytest.mark.parametrize(
    "function, message",
    [
        (len, "len has no Python source: it is a function written in C"),
        (Base, "Base has no Python source: it is a class"),
        (functools.partial(plain), "has no Python source: it is an object of type partial"),
        (NAMESPACE["made"], "the source of made cannot be read"),
    ],
    ids=["built-in", "class", "partial", "exec"],
)
def test_no_source(function, message):
    with pytest.raises(SourceNotFoundError, match=message) as caught:
        source.fetch(function)
    assert caught.value.hint


@pytest.mark.parametrize(
    "edit",
    [
        ("x - 1", "x + 1"),
        ("'a'", "'b'"),
        ("def f", "def g"),
        ("(x", "(y, x"),
        ("def f", "\ndef f"),
        ("== 2", "== 3"),
        ("def f", "f = 1 #"),
        ("[i", "[x + i"),
        ("y=1", "z=1"),
    ],
    ids=str,
)
def test_changed_file(tmp_path, edit):
    """Whatever was edited: never other code than what runs."""
    text = "def f(x, *, y=1):\n    def inner():\n        return 'a'\n    return x - 1 == 2, [i for i in inner()]\n"
    file = tmp_path / "model.py"
    file.write_text(text)
    names = {}
    exec(compile(text, str(file), "exec"), names)
    assert parser.parse(names["f"]).name == "f"
    file.write_text(text.replace(*edit) + "# edited\n")
    with pytest.raises(SourceNotFoundError, match="not the code that runs") as caught:
        parser.parse(names["f"])
    assert "restart" in caught.value.hint


def test_source_of_a_loader(tmp_path):
    """A loader that edits the text of a file says so by ``get_source``."""
    file = tmp_path / "edited.py"
    file.write_text("def f():\n    return 1\n")

    class Loader:
        def get_source(self, name):
            return file.read_text().replace("1", "2")

    names = {"__name__": "edited", "__file__": str(file), "__loader__": Loader()}
    exec(compile(Loader().get_source("edited"), str(file), "exec"), names)
    assert rebuilt(names["f"])() == 2


@contextlib.contextmanager
def cell_of_notebook(text, file="<cell 1>"):
    """What ``linecache`` knows, as in a notebook or a doctest."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = {}
    exec(compile(text, file, "exec"), names)
    yield names
    del linecache.cache[file]


def test_notebook():
    with cell_of_notebook("x = 1\ndef f():\n    return x\n") as names:
        assert rebuilt(names["f"])() == 1


def test_future_imports():
    with cell_of_notebook(
        "from __future__ import annotations\ndef f():\n    def g(x: No): pass\n    return g\n"
    ) as names:
        assert rebuilt(names["f"])().__annotations__ == {"x": "No"}


def test_origins():
    tree = parser.parse(Model.secret)
    for node in gast.walk(tree):
        assert node.origin.file == __file__ and node.origin.function == "Model.secret"
        if getattr(node, "lineno", None):
            assert node.origin.line == node.lineno
    assert tree.origin.line == Model.secret.__code__.co_firstlineno


def test_origin_counts_characters():
    tree = parse_text("def f(x):\n    return 'é', x\n")
    (read,) = [node for node in gast.walk(tree.body[0]) if getattr(node, "id", None) == "x"]
    assert read.origin.col == 16 and read.col_offset == 17


def test_reserved_name():
    def f(_dy):
        return _dy

    with pytest.raises(UnsupportedSyntaxError, match="_dy") as caught:
        parser.parse(f)
    assert caught.value.at.line == f.__code__.co_firstlineno


def test_lambda_becomes_a_definition():
    tree = parser.parse(first)
    assert tree.is_lambda and not parser.parse(plain).is_lambda
    assert unparse(tree) == "def lambda_(x):\n    return x + 1\n"


PRINTED = [
    "def f(x, /, *a, k=1, **o):\n    return x if k else [*a]",
    "def f(xs):\n    return f\"{chr(10).join(xs)!r:>{len(xs)}} {{}} {'a' if xs else 'b'}\"",
    "def f(xs):\n    return f'{xs}\\n\"\\'\\\\'",
    "def f(x):\n    with a as b, c:\n        assert x, 'no'\n    yield (yield x)",
    "def f():\n    return u'a', b'\\x00', 1e300 * 10, -1 ** 2, (-1) ** 2, 1j, ..., 1e999",
    "def f():\n    return lambda *a, **k: (a, k), {**x, 'a': 1}, not (a and b) or c, (a, b)[0:1, ::2]",
    "def f():\n    try:\n        g()\n    except (A, B) as e:\n        raise C from e\n    finally:\n        del e, f",
    "def f():\n    global g\n    x: int = (y := 3)\n    x.y: int",
]


@pytest.mark.parametrize("text", PRINTED)
def test_printed_text_parses_to_the_tree(text):
    tree = parse_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        printed = unparse(tree)
    assert gast.dump(gast.parse(printed).body[0]) == gast.dump(gast.parse(text).body[0])


MATCH = """
def f(x):
    match x:
        case [1, *_] | {'a': 2}:
            pass
        case A(b=3) as c if c:
            pass
        case {'b': _, **r}:
            pass
"""
EXCEPT_STAR = """
def f():
    try:
        pass
    except* A:
        pass
"""
GENERICS = """
def f(xs):
    def g[T](x: T):
        type A = T
    return f"{'\\n'.join(xs)} {f'{"a"}'}"
"""
NEWER = {(3, 10): MATCH, (3, 11): EXCEPT_STAR, (3, 12): GENERICS}


@pytest.mark.parametrize("version", NEWER, ids=str)
def test_newer_syntax_is_printed_and_converted(version):
    if sys.version_info < version:
        pytest.skip(f"syntax of Python {version}")
    tree = parse_text(NEWER[version])
    assert gast.dump(gast.parse(unparse(tree)).body[0]) == gast.dump(gast.parse(NEWER[version]).body[0])
    transformers.apply(transformers.PIPELINE, tree)
    compile(unparse(tree), "<text>", "exec")


def test_templates():
    at = parse_text("def f():\n    return 1").body[0]
    names = [gast.Name(name, gast.Load(), None, None) for name in "ab"]
    made = templates.statements(
        """
        def function(params):
            body
            return (values,)
        (values,) = call(params, k=value)
    """,
        at,
        function="g",
        params=names,
        body=[at],
        values=names,
        value=names[0],
        call="h",
    )
    assert "".join(map(unparse, made)) == textwrap.dedent("""\
        def g(a, b):
            return 1
            return a, b
        a, b = h(a, b, k=a)
        """)
    assert all(node.origin.line == 2 for tree in made for node in gast.walk(tree) if hasattr(node, "origin"))
    assert isinstance(templates.expression("x + y", at, x="z", y=names[0]), gast.BinOp)


def later_lines(x, text="""
a string with a line that ends no function
""", *, scale=(
    1,
)):
    # the comment ends nothing either
    y = [
x]
    return y, text, scale


@pytest.mark.parametrize("function", [later_lines, Model.who, Model.own_name, plain, local_class], ids=lambda f: f.__name__)
def test_only_its_own_lines_are_parsed(function, monkeypatch):
    """A function outside of functions is found without parsing its file, with the same lines and columns."""
    source._file.cache_clear()
    whole = source._file(function.__code__.co_filename, open(function.__code__.co_filename).read(), 0).find(function.__code__)
    monkeypatch.setattr(source, "_file", None)
    found = source.fetch(function)
    assert ast.dump(found.node, include_attributes=True) == ast.dump(whole[0], include_attributes=True)
    assert found.class_name == whole[1]


def test_no_warnings_of_the_compiler(tmp_path):
    """Python warns of doubtful code when it compiles a file, and not again when that is converted."""
    path = tmp_path / "doubtful_code.py"
    path.write_text("def f(x):\n    return 0.5[0] if x is 1 else '\\d'\n")
    namespace = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(path.read_text(), str(path), "exec"), namespace)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rebuilt(namespace["f"])(2) == "\\d"


def test_attributes_that_libraries_hang_on_nodes():
    """`executing`, by which IPython shows tracebacks, gives each node a parent: also contexts, which all trees share."""
    tree = ast.parse("def g(x, y):\n    x[0] = y.z + -y if x and not y else y < x\n    del x[0]")
    shared = []
    try:
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                child.parent = node
                shared += [] if child._attributes else [child]
        text = "def f(a, b):\n    a[0] = b.c + -b if a and not b else b < a\n    del a[0]"
        assert "parent" in vars(ast.parse("a[0] + 1").body[0].value.op)     # shared indeed
        read = parse_text(text)
        assert not any(hasattr(node, "parent") for node in gast.walk(read))
        assert "+" in unparse(templates.expression("left + right", read, left=read.args.args[0], right=read.args.args[1]))

        def fresh(x):
            return [-x * 2 if x and not x == 3 else x]

        tree = transformers.apply(transformers.PIPELINE, parser.parse(fresh))
        assert loader.load(tree, fresh).instantiate(globals(), {}, dy, fresh)(2) == [-4]
        assert "x == 3" in unparse(tree)
    finally:
        for node in shared:
            vars(node).pop("parent", None)
