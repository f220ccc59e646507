"""Modules that a function imports, whose names change between two calls."""
import sys
import types

import pytest
from changed_states import X, plain, same_in_each_state

from dy2static import to_static


@pytest.fixture
def user_module(monkeypatch):
    """A package of the user's with a module in it."""
    package, module = types.ModuleType("settings_of_mine"), types.ModuleType("settings_of_mine.inner")
    module.K, module.fn, module.Item = 2, lambda x: x * 2, type("Item", (), {"k": 3})
    package.inner, package.V, package.__path__ = module, 1, []
    monkeypatch.setitem(sys.modules, package.__name__, package)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def imports(x):
    import settings_of_mine.inner as q
    return q.fn(x) * q.K * q.Item.k


def imports_names(x):
    from settings_of_mine import V
    from settings_of_mine.inner import K as times
    from settings_of_mine.inner import fn
    return fn(x) * times + V


def asks_for_names(x):
    import settings_of_mine.inner as q
    return x * 2, getattr(q, "late", None), hasattr(q, "later")


def imports_in_a_branch(x):
    if x.array.sum() > 0:
        import settings_of_mine
        return x * settings_of_mine.inner.K
    return x


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("function", [imports, imports_names, imports_in_a_branch, asks_for_names])
def test_modules_that_are_imported_inside(user_module, function, backend):
    package, other = sys.modules["settings_of_mine"], types.ModuleType("settings_of_mine.inner")
    other.K, other.fn, other.Item = 13, lambda x: x, type("Item", (), {"k": 1})

    def exchange():
        package.inner = sys.modules["settings_of_mine.inner"] = other
    same_in_each_state(function, [
        lambda: setattr(user_module, "K", 5), lambda: setattr(user_module, "K", 2.5), lambda: setattr(user_module, "K", 7),
        lambda: setattr(user_module, "fn", lambda x: x * 7), lambda: setattr(user_module.Item, "k", 4),
        lambda: setattr(package, "V", 6), lambda: setattr(user_module, "__getattr__", lambda name: name + "?"), exchange], backend)


def test_a_first_import_runs_eagerly(tmp_path, monkeypatch):
    (tmp_path / "first_time_here.py").write_text("print('imported')\nK = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def function(x):
        import first_time_here
        return x * first_time_here.K
    compiled = to_static(function)
    assert "first_time_here" not in sys.modules
    results = [plain(compiled(X)) for _ in range(3)]
    monkeypatch.delitem(sys.modules, "first_time_here")
    assert results == [plain(X * 3)] * 3 and compiled.stats()["captures"] == 1


def test_a_failing_import():
    def function(x):
        try:
            import there_is_no_such_module
        except ImportError as error:
            return x * 2, str(error)
        return x * there_is_no_such_module.K
    compiled = to_static(function)
    with pytest.warns(match="there_is_no_such_module"):
        assert [plain(compiled(X)) for _ in range(6)] == [plain(function(X))] * 6
