"""docs/mistakes.md: each mistake gives the message that the page shows; the programs are compiled as its table says."""
import pathlib
import re
import sys
import textwrap
import types
import warnings

import numpy as np
import pytest
import typical_programs

import dy2static

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "mistakes.md"
MISTAKES, PROGRAMS = PAGE.read_text().split("## Sixteen typical programs")
HEAD, *PARTS = re.split(r"^## (.+)$", MISTAKES, flags=re.M)
MISTAKES = dict(zip(PARTS[::2], PARTS[1::2]))
ROWS = {name: (int(captures), lines) for name, captures, lines in re.findall(r"^\| .+ \| `(\w+)` \| (\d+) \| (\w+) \|$", PROGRAMS, re.M)}


def block(text, language):
    found = re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)
    assert len(found) == 1, f"one block of {language} in {text[:80]!r}"
    return found[0]


def happens(code, folder):
    """The warnings of a program, and its error, as Python shows them but for places."""
    path = folder / "train.py"
    path.write_text(code)
    module = types.ModuleType("train")
    exec(block(HEAD, "python"), module.__dict__)
    last = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(compile(code, str(path), "exec"), module.__dict__)
        except Exception as error:
            last = [f"{type(error).__name__}: {error}"]
    shown = [f"{w.category.__name__}: {w.message}" for w in caught if issubclass(w.category, dy2static.FallbackWarning)]
    return "\n".join([*shown, *last]).replace(str(path), "train.py")


def wrapped(text):
    """The message as the page has it."""
    lines = [[line] if line.startswith(" ") else textwrap.wrap(line, 118, break_long_words=False, break_on_hyphens=False)
             for line in text.splitlines()]
    return "".join(f"{line}\n" for part in lines for line in part)


def test_there_are_fifteen_of_each():
    assert len(MISTAKES) >= 15 and len(ROWS) == 16


@pytest.mark.parametrize("title", MISTAKES)
def test_the_message_is_that_of_the_page(title, tmp_path, monkeypatch, update_golden):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "breakpointhook", sys.breakpointhook)
    found, shown = wrapped(happens(block(MISTAKES[title], "python"), tmp_path)), block(MISTAKES[title], "text")
    if update_golden:
        PAGE.write_text(PAGE.read_text().replace(shown, found))
    else:
        assert found == shown


@pytest.mark.parametrize("name", ROWS)
def test_the_programs_are_compiled_as_the_table_says(name, tmp_path, recwarn):
    np.random.seed(0)
    program = getattr(typical_programs, name)
    stats = [function.stats() for function in (program(str(tmp_path)) if program.__code__.co_argcount else program())]
    captures, lines = ROWS[name]
    assert 0 < sum(found["captures"] for found in stats) <= captures
    assert lines == "none" and not [w for w in recwarn if issubclass(w.category, dy2static.FallbackWarning)]
    assert not any(found["fallbacks"] or found.get("cuts") for found in stats)
