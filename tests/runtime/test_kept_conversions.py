"""Converted functions, kept on disk: later processes get the same code, and never that of another function or text."""
import importlib.util
import linecache
import os

import numpy as np
import pytest

from dy2static import config, conversion, to_static
from dy2static.errors import SourceNotFoundError
from dy2static.native import kept, store

TEXT = """
import numpy as np


class Scaled:
    factor = 2

    def __call__(self, x):
        def doubled(value):
            return value * self.factor
        total = x
        for k in range(3):
            if k == 1:
                continue
            total = doubled(total) if k else total + self.__class__.factor
        return total
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty cache in which conversions are kept."""
    monkeypatch.setattr(store, "_checked", {})
    with config.CACHE_DIR.set(str(tmp_path)), config.VERIFY.set(0):
        yield tmp_path / "native"


@pytest.fixture
def parsed(monkeypatch):
    """The functions that are parsed: none, where their code is found on disk."""
    names, tree_of = [], conversion.tree_of
    monkeypatch.setattr(conversion, "tree_of", lambda function: (names.append(function.__name__), tree_of(function))[1])
    return names


def imported(path, text=TEXT):
    """The function in a module of this text, with code of its own, as another process would have it."""
    path.write_text(text)
    os.utime(path, (1, len(text)))
    linecache.checkcache(str(path))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module.Scaled.__call__


def test_a_kept_conversion_has_the_same_code_and_source(tmp_path, parsed):
    first, second = imported(tmp_path / "a.py"), imported(tmp_path / "a.py")
    made = conversion.convert(first).code
    found = conversion.convert(second).code
    assert parsed == ["__call__"] and found is not made
    assert (found, found.co_filename, list(found.co_positions() if hasattr(found, "co_positions") else found.co_lines())) == \
        (made, made.co_filename, list(made.co_positions() if hasattr(made, "co_positions") else made.co_lines()))
    assert conversion.source_of(second) == conversion.source_of(first)
    x = np.ones(3, np.float32)
    for function in (first, second):
        scaled = function.__globals__["Scaled"]()
        np.testing.assert_array_equal(to_static(function, backend="numpy", strict=True)(scaled, x), function(scaled, x))


@pytest.mark.parametrize("text", (TEXT.replace("k == 1", "k == 2"), "\n" + TEXT, TEXT.replace("total + self", "total  + self"),
                                  TEXT + "# a comment\n", TEXT.replace("class Scaled", "class Scaled(object)")))
def test_another_text_is_converted_anew(tmp_path, parsed, text):
    conversion.convert(imported(tmp_path / "a.py"))
    conversion.convert(imported(tmp_path / "a.py", text))
    assert len(parsed) == 2


def test_another_file_name_or_version_is_converted_anew(tmp_path, parsed, monkeypatch):
    conversion.convert(imported(tmp_path / "a.py"))
    conversion.convert(imported(tmp_path / "b.py"))
    renamed = imported(tmp_path / "a.py")
    renamed.__qualname__ = "Other.__call__"
    conversion.convert(renamed)
    monkeypatch.setattr(kept, "_sources", lambda: (0, "another version"))
    conversion.convert(imported(tmp_path / "a.py"))
    assert len(parsed) == 4


def test_a_file_that_was_edited_since_its_import_is_refused_as_before(tmp_path):
    conversion.convert(imported(tmp_path / "a.py"))
    function = imported(tmp_path / "a.py")
    (tmp_path / "a.py").write_text(TEXT.replace("k == 1", "k == 2"))
    with pytest.raises(SourceNotFoundError, match="not the code that runs"):
        conversion.convert(function)


def test_nothing_is_kept_where_it_is_not_wanted(tmp_path, folder, parsed, monkeypatch):
    for setting, value in ((config.KEEP, 0), (config.VERIFY, 1), (config.CODE_LEVEL, "nothing_but_last")):
        with setting.set(value), monkeypatch.context() as patch:
            patch.setattr(conversion, "levels_of", lambda given: ())
            conversion.convert(imported(tmp_path / "a.py"))
    monkeypatch.setattr(kept, "_sources", lambda: (kept._STARTED + 1, "changed"))
    conversion.convert(imported(tmp_path / "a.py"))
    assert len(parsed) == 4 and not list(folder.glob("*.code"))


@pytest.mark.parametrize("content", (b"no code", b"", b"N"))
def test_files_with_something_else_are_made_again(tmp_path, folder, parsed, content):
    made = conversion.convert(imported(tmp_path / "a.py")).code
    (path,) = folder.glob("*.code")
    store.keep_text(path.stem, content, store.CODE)
    assert conversion.convert(imported(tmp_path / "a.py")).code == made
    path.write_bytes(path.read_bytes()[:-3])
    assert conversion.convert(imported(tmp_path / "a.py")).code == made and len(parsed) == 3
    assert conversion.convert(imported(tmp_path / "a.py")).code == made and len(parsed) == 3
