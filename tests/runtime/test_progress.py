"""The line on a terminal while a compilation takes long: there only on terminals, and gone afterwards."""
import contextlib
import io
import os
import re
import subprocess
import sys
import threading
import time

import chainer.functions as F
import pytest
from against_eager import variable

from dy2static import config, pipeline, to_static
from dy2static.runtime import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def soon(monkeypatch):
    """The line is shown at once."""
    monkeypatch.setattr(progress, "AFTER", 0.01)
    monkeypatch.setattr(progress, "EVERY", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    return monkeypatch


def what_is_left(text):
    """What a terminal shows in the end of what was written to it."""
    return text.rpartition("\x1b[2K")[2]


def wait_for_more(stream):
    """Until something is written; on a busy machine that may take a while."""
    begin, end = len(stream.getvalue()), time.monotonic() + 60
    while len(stream.getvalue()) == begin and time.monotonic() < end:
        time.sleep(0.005)


def showing():
    return sum(thread.name == "dy2static progress" for thread in threading.enumerate())


def during(stream, monkeypatch, wait=lambda stream: None):
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.shown("compiling f"), progress.shown("something inside"):
        wait(stream)
        running = showing()
    assert not showing()
    return stream.getvalue(), running


def test_a_line_is_shown_and_erased(soon):
    text, _ = during(Terminal(), soon, wait_for_more)
    assert re.search(r"dy2static: compiling f \(\d+ s\)", text) and "inside" not in text and what_is_left(text) == ""


def test_nothing_is_shown_of_what_is_short(soon):
    soon.setattr(progress, "AFTER", 600.0)
    assert during(Terminal(), soon) == ("", 1)


def test_nothing_is_shown_elsewhere(soon):
    """No thread is there that would."""
    assert during(io.StringIO(), soon) == ("", 0), "no terminal"
    with config.PROGRESS.set(0):
        assert during(Terminal(), soon) == ("", 0), "not wanted"
    soon.setenv("TERM", "dumb")
    assert during(Terminal(), soon) == ("", 0), "a terminal that cannot erase"
    soon.setattr(sys, "stderr", None)
    with progress.shown("compiling f"):
        pass


def test_errors_pass(soon):
    soon.setattr(sys, "stderr", Terminal())
    with pytest.raises(KeyError), progress.shown("compiling f"):
        raise KeyError
    text, _ = during(Terminal(), soon, wait_for_more)
    assert "compiling f" in text, "the next one is shown again"


def test_a_capture_that_takes_long(soon):
    soon.setattr(sys, "stderr", Terminal())

    def slow(function):
        def called(*args, **kwargs):
            wait_for_more(sys.stderr)
            return function(*args, **kwargs)
        return called

    def scaled(x):
        return F.exp(x) * 2
    static = to_static(scaled)
    soon.setattr(pipeline, "trace", slow(pipeline.trace))
    static(variable(3))
    text = sys.stderr.getvalue()
    assert "compiling" in text and "scaled" in text and what_is_left(text) == ""


def all_of(terminal):
    """What was written to a terminal that no process has open any more.  A busy machine hands it over piece by piece."""
    found = b""
    with contextlib.suppress(OSError):                  # the end, on Linux
        while True:
            part = os.read(terminal, 4096)
            if not part:
                break
            found += part
    return found.decode()


def test_a_real_terminal(tmp_path):
    """In a process of its own, whose standard error is a terminal of ours."""
    path = tmp_path / "program.py"
    path.write_text("import dy2static, time\nfrom dy2static.runtime import progress\nprogress.AFTER = progress.EVERY = 0.05\n"
                    "width, asked = progress._width, []\nprogress._width = lambda stream: asked.append(0) or width(stream)\n"
                    "with progress.shown('compiling a function with a very long name ' * 9):\n"
                    "    while len(asked) < 4:\n        time.sleep(0.01)\n")
    ours, theirs = os.openpty()
    run = subprocess.run([sys.executable, str(path)], stderr=theirs, stdout=subprocess.PIPE, env={**os.environ, "TERM": "xterm"}, timeout=300)
    os.close(theirs)
    text = all_of(ours)
    os.close(ours)
    assert run.returncode == 0 and not run.stdout
    assert "dy2static: compiling a function" in text and "\n" not in text and what_is_left(text) == ""
    assert max(map(len, text.split("\x1b[2K"))) <= 80, "one line"
