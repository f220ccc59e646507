"""The rules for errors and warnings are checked in every run of the tests, and ``--messages`` writes them to a page."""
import json
from collections import Counter

import messages
import pytest

from dy2static.errors import CaptureError, FallbackWarning, InternalError

BAD = {
    "SymbolicObject": "a SymbolicObject has no shape",
    "Dim(": "axis 0 has Dim('n') elements",
    "a name of the compiler for a size": "axis 0 has length_n0 elements",
    "the repr of an object of ours": "not <dy2static.ir.graph.Graph>",
    "the address of an object": "not <Model object at 0x7f12>",
    "the code is written twice": "the body: D2S101: an async function cannot be compiled",
    "a text is empty": " ",
}


@pytest.mark.parametrize("reason", BAD)
def test_a_message_that_breaks_a_rule_is_noticed(reason):
    CaptureError(BAD[reason])
    fault, = messages.faults()
    assert fault.startswith("CaptureError: ") and reason in fault
    FallbackWarning(BAD[reason] * 2)
    assert len(messages.faults()) == 1


def test_a_message_that_keeps_the_rules():
    CaptureError("f cannot be compiled: a debugger is called here", hint="keep it out of the compiled function")
    InternalError("a SymbolicObject is left")           # for a report to us
    assert not messages.faults()
    CaptureError("f cannot be compiled", hint=" ")
    assert len(messages.faults()) == 1


def test_the_page_has_the_messages_of_all_workers(tmp_path, monkeypatch):
    page = tmp_path / "page.txt"
    for worker, count in (("gw0", 1), ("gw1", 2)):
        monkeypatch.setattr(messages, "seen", Counter())
        for number in range(count):
            CaptureError(f"argument {number} of /home/me/model.py:{number} is not an array", hint="give it an array")
        messages.write(page, worker)
    assert json.loads((tmp_path / "page.txt.gw1").read_text())
    monkeypatch.setattr(messages, "seen", Counter())
    messages.write(page, None)
    assert page.read_text() == "CaptureError: argument N of model.py:N is not an array\n    hint: give it an array\n    (3 times)\n\n"
    assert [path.name for path in tmp_path.iterdir()] == ["page.txt"]
