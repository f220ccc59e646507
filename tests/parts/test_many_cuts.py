"""Functions with many lines that cannot be compiled, and many that can."""
import linecache
import warnings

import chainer.functions as F
import numpy as np
from against_eager import variable
from breaks import refuse

from dy2static import to_static
from dy2static.conversion import tree_of
from dy2static.parts import divided
from dy2static.pyast import source


def function_with(statements, cuts):
    """A function of so many statements, with calls that cannot be compiled behind some of them."""
    lines = ["def f(x):", "    h = F.tanh(x) * 2"]
    for number in range(statements):
        lines += ["    h = F.sin(h) + x", "    refuse(h)"][:2 if number in cuts else 1]
    text = "\n".join([*lines, "    return F.sum(h)"]) + "\n"
    name = f"/many_cuts/{statements}_{len(cuts)}.py"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    namespace = {"F": F, "refuse": refuse}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"]


def test_long_runs_are_not_converted_again_for_each_cut(monkeypatch):
    sizes = []

    def counted(function):
        tree = tree_of(function)
        sizes.append(len(tree.body))
        return tree
    monkeypatch.setattr(divided, "tree_of", counted)
    function = function_with(60, range(2, 14))
    static = to_static(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            np.testing.assert_allclose(static(variable(3)).array, function(variable(3)).array, rtol=1e-5)
    assert static.stats()["cuts"] == 12 and static.code.count("_dy.part_") <= 12 + 4
    assert sum(sizes) < 1000


def test_lambdas_of_one_line_are_compiled_once(monkeypatch):
    """Which of them one is, only compiling the line shows.  Each call makes them anew."""
    compiled, original = [], source._File._compiled_alone

    def compile_alone(file, line, entry, candidates):
        compiled.append(entry[0].col_offset)
        return original(file, line, entry, candidates)
    monkeypatch.setattr(source._File, "_compiled_alone", compile_alone)

    def f(x, k):
        found = []
        for g in (lambda: x + k, lambda: x.shape[k], lambda: k / 0, lambda: x * 2):
            try:
                found.append(g())
            except ZeroDivisionError as error:
                refuse(error)
        return F.sin(found[0]) + found[2]
    static = to_static(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4):
            np.testing.assert_allclose(static(variable(3), 0).array, f(variable(3), 0).array, rtol=1e-5)
    assert len(compiled) == len(set(compiled)) == 4
