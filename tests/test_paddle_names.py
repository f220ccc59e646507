"""Paddle's names for what a compiled function is and for the switches: `ignore_module`, `ProgramTranslator`, …"""
import sys

import chainer
import chainer.functions as F
import numpy as np
import pytest

import dy2static
from dy2static import ignore_module, to_static
from dy2static.runtime.staticness import IGNORED


def x_(*shape):
    return np.arange(1, 1 + np.prod(shape or (2, 3)), dtype=np.float32).reshape(shape or (2, 3))


# --- ignore_module ---

OTHERS = {
    "others": "",
    "others.inner": """
        seen = []

        def look(h):
            seen.append(float(h.array.sum()))
            if seen[-1] > 1e9:
                seen.clear()

        def total(h):
            seen.append("total")
            return float(h.array.sum())

        def double(h):
            seen.append("double")
            return h * 2

        class Keeper:
            def __init__(self):
                self.kept = []
                seen.append("made")

            def keep(self, h):
                self.kept.append(float(h.array.sum()))

            @property
            def length(self):
                seen.append("length")
                return len(self.kept)
        """,
    "others_too": """
        def look(h):
            return None
        """,
}


@pytest.fixture
def others(tmp_path, monkeypatch):
    """The module ``others.inner``; afterwards no module is ignored."""
    import importlib
    import textwrap
    (tmp_path / "others").mkdir()
    for name, text in OTHERS.items():
        path = tmp_path / "others" / ("__init__.py" if name == "others" else "inner.py")
        path = tmp_path / "others_too.py" if name == "others_too" else path
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("others.inner")
    for name in OTHERS:
        sys.modules.pop(name, None)
    IGNORED.clear()


def of_others(function, x):
    """What the explanation says of the lines."""
    return str(function.explain(x))


@pytest.mark.parametrize("given", [
    "others", "others.inner", ["others"], ("others", "others_too"), lambda inner: inner, lambda inner: [sys.modules["others"]]],
    ids=str)
def test_ignored_functions_run_on_the_host(others, given):
    @to_static(strict=True)
    def f(x):
        others.look(x)
        return F.sum(x * 2)

    x = chainer.Variable(x_())
    f(x)
    assert "host, at every call: look" not in of_others(f, x)
    del others.seen[:]
    ignore_module(given(others) if callable(given) else given)
    assert f.cache_info().programs == 0
    for _ in range(3):
        y = f(x)
        x.cleargrad()
        y.backward()
        assert float(y.array) == 42 and (x.grad == 2).all()
    assert others.seen == [21.0] * 3 and f.cache_info().programs == 1
    assert "host, at every call: look (ignore_module has others.inner)" in of_others(f, x)


def test_only_whole_names_are_meant(others):
    import others_too

    @to_static(strict=True)
    def f(x):
        return others_too.look(x), x * 2

    ignore_module("others")
    f(chainer.Variable(x_()))
    assert f.stats()["host_call"] == 0


def uses_total(inner, x):
    return F.sum(x) * inner.total(x)


def uses_double(inner, x):
    return F.sum(inner.double(x))


def makes_an_object(inner, x):
    keeper = inner.Keeper()
    keeper.keep(x)
    return F.sum(x)


def uses_an_object(inner, x):
    inner.keeper.keep(x)
    return F.sum(x * 2) * len(inner.keeper.kept)


def uses_a_property(inner, x):
    inner.keeper.keep(x)
    return F.sum(x) * inner.keeper.length


@pytest.mark.parametrize("user", [uses_total, uses_double, makes_an_object, uses_an_object, uses_a_property])
@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
def test_ignored_code_does_what_it_does(others, user):
    """Compiled or not: values, gradients and effects are those of eager."""
    ignore_module([others])
    compiled, found = to_static(user), []
    for function in (user, compiled):
        others.seen.clear()
        others.keeper = others.Keeper()
        results = []
        for k in range(4):
            x = chainer.Variable(x_() + k)
            y = function(others, x)
            y.backward()
            results += [float(y.array), x.grad.tolist()]
        found.append((results, list(others.seen), others.keeper.kept))
    assert found[0] == found[1]


def test_what_libraries_have_is_treated_as_ever():
    ignored = [np, chainer.functions, "math"]
    try:
        ignore_module(ignored)
        f = to_static(lambda x: F.relu(x) + np.ones((2, 3), np.float32), strict=True)
        f(chainer.Variable(x_()))
        assert f.stats()["host_call"] == 0
    finally:
        IGNORED.clear()
    with pytest.raises(dy2static.Dy2StaticError, match="takes modules"):
        ignore_module(3)
