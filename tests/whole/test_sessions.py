"""Sessions: programs that are called again and again while classes, modules, numbers and libraries change, against eager."""
import functools

import pytest
import session_process
import session_programs
import session_worlds

from dy2static import config, to_static

STALE = """\
class Scale:
    factor = 2
def f(x, n=1):
    return x * Scale.factor
"""
CALL = session_programs.Step("call", "V((2, 3), 'f', 0), 1")


def difference(seed, backend, broken=0):
    """Where a session differs, and how to see it; an empty text if nowhere."""
    session = session_programs.Session(seed, broken=broken)
    found = session_worlds.run(session, backend)
    return "" if found is None else f"{found}\n{session_programs.script(session, session.steps[:found.number + 1], backend)}"


@pytest.mark.parametrize("seed", range(24))
def test_sessions(seed):
    assert not difference(seed, "numpy")


@pytest.mark.parametrize("seed", range(300, 306))
def test_sessions_with_breaks(seed):
    assert not difference(seed, "numpy", broken=0.1)


@pytest.mark.parametrize("seed", range(100, 104))
def test_sessions_in_native_code(seed):
    assert not difference(seed, "c")


@pytest.mark.parametrize("seed", range(200, 204))
def test_sessions_that_become_native_code(seed):
    assert not difference(seed, "auto")


def test_sessions_are_the_same_for_equal_seeds():
    first, again, other = (session_programs.Session(seed) for seed in (5, 5, 6))
    assert (first.main, first.lib, first.steps) == (again.main, again.lib, again.steps)
    assert first.main != other.main


def test_all_pieces_can_be_used():
    """A piece whose calls all raise, or whose every change fails, would test nothing."""
    for name, piece in session_programs.PIECES.items():
        counts = {"calls": 0, "raising": 0, "changed": 0}
        for seed in range(4):
            session = session_programs.Session(seed, [name])
            steps = [step._replace(order=0) for step in session.steps]
            assert session_worlds.run(session, "eager", steps, counts) is None
            if counts["raising"] < counts["calls"] and (counts["changed"] or not piece.changes):
                break
        else:
            raise AssertionError(f"{name}: {counts}")


def run_stale(change, compile=None):
    """The difference of a session that calls, changes something, and calls again."""
    steps = CALL, session_programs.Step("change", change), CALL
    session = session_programs.Shown(STALE, "", "function", steps)
    return session_worlds.run(session, "numpy", compile=compile)


def test_what_stays_as_it_was_is_found():
    """A compiler that never looks again is caught, whether the value, its type or an exception changes."""
    def stale(function):
        seen = []

        @functools.wraps(function)
        def call(*args):
            seen[:] = seen or [function(*args)]
            return seen[0]
        return call

    for change in ("main.Scale.factor = 3", "main.Scale.factor = 2.5", "del main.Scale.factor", "main.Scale = None"):
        assert run_stale(change, stale).number == 2, change
        assert run_stale(change, to_static) is None, change


def test_settings_are_put_back():
    process = session_process.Process()
    before = process.settings()[:2]
    session_worlds.run(session_programs.Session(3, ["patched_numpy", "config_read"]), "eager")
    assert process.settings()[:2] == before and config.NATIVE_AFTER.value == 10
