"""Where functions come from: what is compiled is what runs, or the call runs eagerly and says so."""
import codecs
import doctest
import importlib.util
import linecache
import os
import sys
import textwrap
import types
import warnings
import zipfile

import chainer.functions as F
import numpy as np
import pytest
from against_eager import variable

from dy2static import FallbackWarning, to_static

HEAD = "import chainer.functions as F\n"


def load(path, name="tests_source_module"):
    """The module in a file, imported anew."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def agree(function, compiled=True):
    """Whether the function does compiled what it does eagerly; and that it is compiled."""
    static = to_static(function)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for seed, (low, high) in enumerate(((0.1, 1), (-1, -0.1))):
            x = variable(3, seed=seed, low=low, high=high)
            expected, found = function(x), static(x)
            np.testing.assert_allclose(found.array, expected.array, rtol=1e-6)
    said = [str(w.message) for w in warned if issubclass(w.category, FallbackWarning)]
    assert bool(static.stats()["captures"]) == compiled and bool(said) != compiled, (static.stats(), said)
    return said


BODY = "    if x.array.sum() > 0:\n        return F.relu(x) * 2\n    return x * 3\n"

TEXTS = {
    "plain": "def f(x):\n" + BODY,
    "tabs": "def f(x):\n\tif x.array.sum() > 0:\n\t\treturn F.relu(x) * 2\n\treturn x * 3\n",
    "crlf": ("def f(x):\n" + BODY).replace("\n", "\r\n"),
    "no newline at the end": ("def f(x):\n" + BODY).rstrip(),
    "form feed": "\f\ndef f(x):\n" + BODY,
    "semicolons": "def f(x):\n    a = 2; b = 3\n    if x.array.sum() > 0: y = F.relu(x) * a; return y\n    return x * b\n",
    "one line": "def f(x): return F.relu(x) * 2 if x.array.sum() > 0 else x * 3\n",
    "continued lines": "def f(x):\n    if x.array.sum() \\\n            > 0:\n        return F.relu(\n            x\n        ) \\\n"
                       "            * 2\n    return (x\n# a comment at the margin\n        * 3)\n",
    "names": "def f(größe):\n    ñ, µ = 2, 3\n    return F.relu(größe) * ñ if größe.array.sum() > 0 else größe * μ\n",
    "strings": "def f(x):\n    '''text\nat the margin'''\n    s = '''\n  two\n'''\n"
               "    return F.relu(x) * len(s.split()) if x.array.sum() > 0 else x * (len('''a\nb'''))\n",
    "in if": "if True:\n    def f(x):\n" + textwrap.indent(BODY, "    "),
    "in try and with": "try:\n    with open(__file__):\n        def f(x):\n" + textwrap.indent(BODY, "        ") + "finally:\n    pass\n",
    "in class in function": "def make():\n    class A:\n        class B:\n            @staticmethod\n            def f(x):\n"
                            + textwrap.indent(BODY, "            ") + "    return A.B.f\nf = make()\n",
    "in else, same name": "if F is None:\n    def f(x):\n        return x\nelse:\n    def f(x):\n" + textwrap.indent(BODY, "    "),
    "defined twice": "def f(x):\n    return x * 7\n\n\ndef f(x):\n" + BODY,
    "lambdas of a line": "g, f, h = lambda x: x, lambda x: F.relu(x) * 2 if x.array.sum() > 0 else x * 3, lambda x: -x\n",
    "equal lambdas of a line": "f, g = lambda x: x * 2, lambda x: x * 2\n",
    "lambda in a call": "def same(f):\n    return f\nf = same(\n    lambda x: F.relu(x) * 2\n    if x.array.sum() > 0 else x * 3)\n",
    "lambda in a default": "def make(f=lambda x: F.relu(x) * 2 if x.array.sum() > 0 else x * 3): return f\nf = make()\n",
    "decorated lambda": "import functools\ndef twice(f):\n    return functools.wraps(f)(lambda x: f(x) * 2)\n"
                        "f = twice(lambda x: F.relu(x) if x.array.sum() > 0 else x * 3)\n",
    "decorators of many lines": "def deco(*a):\n    return lambda f: f\n@deco(1,\n      2)\n@deco(\n)\ndef f(x):\n" + BODY,
    "annotations": "from typing import Optional\ndef f(x: 'Variable', n: Optional[int] = None, *a: int) -> 'list[int]':\n"
                   "    k: int = 2\n    m: float\n    return F.relu(x) * k if x.array.sum() > 0 else x * 3\n",
    "annotations of the future": "from __future__ import annotations\nimport chainer.functions as F\n"
                                 "def f(x: Nowhere[int]) -> Never | None:\n    k: Nothing = 2\n"
                                 "    return F.relu(x) * k if x.array.sum() > 0 else x * 3\n",
    "type comments": "def f(x):\n    # type: (Variable) -> Variable\n    k = 2  # type: int\n    for n in range(2):  # type: int\n"
                     "        k += n\n    return F.relu(x) * k if x.array.sum() > 0 else x * 3  # type: ignore\n",
    "private names": "class A:\n    __k = 2\n    def __f(self, x):\n        return F.relu(x) * self.__k if x.array.sum() > 0 else x * A.__k\n"
                     "    def g(self):\n        return self.__f\nf = A().g()\n",
    "globals of the same names": "_dy = 3\ncond = 2\ndef f(x):\n    then_0 = 2\n    return F.relu(x) * then_0 if x.array.sum() > 0 else x * cond\n",
    "generic functions": "def f[T](x: T, n: int = 2) -> T:\n    return F.relu(x) * n if x.array.sum() > 0 else x * 3\n",
    "type statement": "type Numbers = list[int]\ndef f(x):\n    type Local = int\n    return F.relu(x) * 2 if x.array.sum() > 0 else x * 3\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name, tmp_path):
    if name in ("generic functions", "type statement") and sys.version_info < (3, 12):
        pytest.skip("syntax of Python 3.12")
    path = tmp_path / "module.py"
    text = TEXTS[name] if "__future__" in TEXTS[name] else HEAD + TEXTS[name]
    path.write_bytes(text.encode("utf-8"))
    agree(load(path).f)


@pytest.mark.parametrize("head, encoding", [(b"# -*- coding: latin-1 -*-\n", "latin-1"), (b"# vim: set fileencoding=cp1252 :\n", "cp1252"),
                                            (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF8 + b"# coding: utf-8\n", "utf-8")])
def test_encodings(head, encoding, tmp_path):
    path = tmp_path / "module.py"
    text = HEAD + "def f(x):\n    k = len('äöü')\n    return F.relu(x) * k if x.array.sum() > 0 else x * len('ß')\n"
    path.write_bytes(head + text.encode(encoding))
    agree(load(path).f)


def test_equal_text_in_two_files(tmp_path):
    made = []
    for k in (2, 5):
        path = tmp_path / f"module{k}.py"
        path.write_text(HEAD + f"K = {k}\n".replace("5", "5") + "def f(x):\n    return F.relu(x) * K if x.array.sum() > 0 else x\n")
        made.append(load(path, f"tests_source_{k}").f)
    for function in made:
        agree(function)


def test_redefined(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(HEAD + "def g(x):\n    return x * 2\ndef f(x):\n    return g(x)\n")
    module = load(path)
    static, x = to_static(module.f), variable(3)
    assert np.array_equal(static(x).array, x.array * 2)
    module.g = lambda x: x * 5
    assert np.array_equal(static(x).array, x.array * 5)
    module.g.__code__ = (lambda x: x * 7).__code__
    assert np.array_equal(static(x).array, x.array * 7)
    assert static.stats()["fallbacks"] == 0


EDITS = {"another constant": ("* 2", "* 9"), "a line above": ("def f", "# new\ndef f"), "two lines above": ("def f", "A = 1\nB = 2\ndef f"),
         "another name": ("def f", "def g"), "not Python": ("def f", "def f f"), "empty": (None, ""),
         "another body, same lines": ("F.relu(x)", "F.tanh(x)")}


@pytest.mark.parametrize("edit", EDITS)
def test_edited_after_import(edit, tmp_path):
    path = tmp_path / "module.py"
    text = HEAD + "def f(x):\n" + BODY
    path.write_text(text)
    module = load(path)
    old, new = EDITS[edit]
    path.write_text(new if old is None else text.replace(old, new))
    os.utime(path, (1, 1))
    said = agree(module.f, compiled=False)
    assert "source" in said[0]


def test_deleted_after_import(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(HEAD + "def f(x):\n" + BODY)
    module = load(path)
    path.unlink()
    assert "cannot be read" in agree(module.f, compiled=False)[0]


def test_edited_and_imported_again(tmp_path):
    path = tmp_path / "module.py"
    for k in (2, 4):
        path.write_text(HEAD + f"def f(x):\n    return F.relu(x) * {k} if x.array.sum() > 0 else x\n")
        os.utime(path, (k, k))
        agree(load(path).f)


def test_in_a_zip(tmp_path, monkeypatch):
    path = tmp_path / "modules.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tests_source_zipped.py", HEAD + "def f(x):\n" + BODY)
    monkeypatch.syspath_prepend(str(path))
    import tests_source_zipped
    agree(tests_source_zipped.f)


def test_without_source():
    namespace = {"F": F, "__name__": "tests_source_exec"}
    exec("def f(x):\n" + BODY, namespace)                   # as at a prompt
    assert "cannot be read" in agree(namespace["f"], compiled=False)[0]
    typed = compile("def f(x):\n" + BODY, "<stdin>", "single")
    exec(typed, namespace)
    assert "cannot be read" in agree(namespace["f"], compiled=False)[0]


def test_a_helper_without_source():
    namespace = {"F": F, "__name__": "tests_source_exec"}
    exec("def g(x):\n" + BODY, namespace)
    g = namespace["g"]
    agree(lambda x: g(x), compiled=False)


def test_wrong_file_name():
    """Code that says it is from this file, and is not."""
    namespace = {"F": F, "__name__": __name__, "__file__": __file__}
    exec(compile("\n" * 40 + "def load(x):\n    return F.relu(x) * 2\n", __file__, "exec"), namespace)
    assert "source" in agree(namespace["load"], compiled=False)[0]


def test_cells_of_a_notebook():
    """Two cells of one name: IPython gives each a file name of its own, and its text to `linecache`."""
    namespace = {"F": F, "__name__": "__main__"}
    for k in (2, 5):
        text, name = f"def f(x):\n    return F.relu(x) * {k} if x.array.sum() > 0 else x\n", f"<ipython-input-{k}-abc>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        exec(compile(text, name, "exec"), namespace)
        agree(namespace["f"])


def test_doctest():
    """
    >>> from dy2static import to_static
    >>> @to_static
    ... def f(x):
    ...     return x * 2 if x.array.sum() > 0 else x
    >>> f(variable(2, seed=1, low=1, high=2)).shape
    (2,)
    >>> f.stats()["captures"]
    1
    """
    finder = doctest.DocTestFinder(recurse=False)
    test, = finder.find(test_doctest, globs={"variable": variable})
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test)
    assert runner.failures == 0


def test_made_with_types():
    """A function with the code of another, and globals of its own."""
    def f(x):
        return F.relu(x) * K if x.array.sum() > 0 else x * 3  # noqa: F821
    made = types.FunctionType(f.__code__, {"F": F, "K": 4, "__name__": "elsewhere"}, "made")
    agree(made)
