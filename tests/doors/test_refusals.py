"""Refusals say what the user can do: they name the line, the construct in the user's words, and a way out."""
import re
import types
import warnings

import chainer
import numpy as np
import pytest
import refused_programs

from dy2static import CaptureError, FallbackWarning, to_static

PROGRAMS = {name: program for name, program in vars(refused_programs).items()
            if isinstance(program, types.FunctionType) and program.__code__.co_varnames[:1] == ("x",)}

#: What users know nothing of: names of ours, private ones (but not Python's own), and how we call things among us.
OURS = re.compile(r"\b(Symbolic\w*|Shadow\w*|Staged\w*|BoundHost\w*|Capture\w*|dy2static\.\w+|Undefined|Maybe|Builder|host call)\b"
                  r"|(?<![\w.])_(?!_)\w+|numpy _\w+")


def said_by(program, calls=3):
    """The warnings of some calls; programs that eager refuses, too, raise after theirs."""
    function = to_static(program)
    with warnings.catch_warnings(record=True) as seen, chainer.using_config("train", True), np.errstate():
        warnings.simplefilter("always")
        for _ in range(calls):
            try:
                function(chainer.Variable(np.full((2, 3), 0.5, "f")))
            except Exception:
                assert any(w.category is FallbackWarning for w in seen)
    return [str(w.message) for w in seen if w.category is FallbackWarning]


def refused_line(program):
    """The marked line of a program, or None."""
    lines = open(program.__code__.co_filename).read().splitlines()
    first = program.__code__.co_firstlineno
    for number in range(first, len(lines) + 1):
        if lines[number - 1].endswith("# <-"):
            return number
        if number > first and lines[number - 1][:1] not in ("", " "):
            break
    return None


def test_there_is_a_program_for_each_class_of_refusals():
    assert len(PROGRAMS) >= 50


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_refusal_names_line_and_way_out_in_the_users_words(name):
    program = PROGRAMS[name]
    messages = said_by(program)
    assert messages
    lines = set()
    for message in messages:
        found = re.fullmatch(rf"{name}(?: runs in eager mode for this signature|: line \d+ runs as Python, between compiled parts): (.+?) \((\S+):(\d+): (.*)\); (.+)", message)
        assert found, message
        reason, file, line, text, hint = found.groups()
        assert file == program.__code__.co_filename and text
        lines.add(int(line))
        assert int(line) >= program.__code__.co_firstlineno
        assert not OURS.search(f"{reason}; {hint}"), message
        assert len(reason) < 200 and len(hint) < 120, message
    assert refused_line(program) in (None, *lines), messages


GOLDEN = {
    "from_chx": "`.from_chx()` of a Variable is used inside the compiled function; do it outside of the compiled function",
    "listed": "a `range` whose length array values decide is used other than in a `for` statement; write `for i in range(n)` where it "
              "is used, or `np.arange(n)` for an array of its numbers",
    "windows": "`np.add` fails on the placeholder contents of the capture (ValueError: operands could not be "
               "broadcast together with shapes (2,7) (2,5) ); keep it out of the compiled function if it works on your arrays",
    "intersect": "the shape or type of the result depends on the contents of an array: `np.intersect1d`; compute it outside of the "
                 "compiled function, or with a function whose result always has one shape",
    "state_after": "state is read after `changes`, which is not compiled and may have changed it; read what is needed before that call",
    "traceback_logged": "`exception` is called while an exception is handled, and may look at that; call it after the `except` block, "
                        "with `str(error)`",
    "stored_in_loop": "a Variable that is made in a loop or decision on array values is stored or shown there; store it after the loop "
                      "or decision, or show its array (`x.array`)",
    "gradient_of_a_number": "the gradient of an int is asked inside the compiled function; do it outside of the compiled function",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_text_of_a_refusal(name, capsys):
    reason, hint = GOLDEN[name].rsplit("; ", 1)
    message, = said_by(PROGRAMS[name], 1)
    assert f": {reason} (" in message and message.endswith(f"; {hint}")


def test_a_strict_refusal_without_a_line_of_its_own_names_the_function():
    with pytest.raises(CaptureError) as caught:
        to_static(refused_programs.error_leaves, strict=True)(chainer.Variable(np.ones((2, 3), "f")))
    assert caught.value.at.line == refused_programs.error_leaves.__code__.co_firstlineno and caught.value.hint
