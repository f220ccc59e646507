"""What all threads of a process share (filters of warnings, locks, streams) is left as it was, however threads overlap."""
import contextlib
import gc
import io
import logging
import os
import random
import signal
import sys
import threading
import types
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import array

from dy2static import conversion, to_static
from dy2static.diagnostics.check.streams import recorded
from dy2static.heap import global_state_guard
from dy2static.lazy import nodes
from dy2static.program import hotpath
from dy2static.runtime import collection
from dy2static.runtime.segment import ArenaLease, ArenaPool
from dy2static.symbolic import patches
from dy2static.threads import locks
from dy2static.threads.quiet import quiet


class Beside:
    """A thread that runs ``work`` up to each call of ``pause`` and then waits for ``go_on``."""

    def __init__(self, work):
        self._turns, self._paused, self.error = threading.Semaphore(0), threading.Semaphore(0), None
        self.thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self.thread.start()
        assert self._paused.acquire(timeout=60)

    def _run(self, work):
        try:
            work(self.pause)
        except BaseException as error:
            self.error = error
        self._paused.release()

    def pause(self):
        self._paused.release()
        assert self._turns.acquire(timeout=60)

    def go_on(self):
        self._turns.release()
        assert self._paused.acquire(timeout=60)
        if self.error is not None:
            raise self.error


# Filters of warnings ------------------------------------------------------------------------------------------------------

@pytest.fixture
def filters():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield warnings.filters


def in_quiet(pause):
    with quiet():
        pause()
        warnings.warn("not heard")


def test_quiet_blocks_that_overlap(filters):
    """The one that began first ends first."""
    before = list(filters)
    other = Beside(in_quiet)
    with quiet():
        other.go_on()
        warnings.warn("not heard either")
    assert warnings.filters is filters and filters == before
    with pytest.raises(UserWarning):
        warnings.warn("heard")


def test_other_threads_warn(filters):
    other = Beside(in_quiet)
    with pytest.raises(UserWarning):
        warnings.warn("heard")
    other.go_on()


def test_filters_of_the_user_that_overlap(filters):
    """The user's own block begins while a thread is quiet, and ends after it; a filter is added for good meanwhile."""
    before = list(filters)
    other = Beside(in_quiet)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "for good")
        inside = list(warnings.filters)
        other.go_on()
        assert [item for item in inside if item in warnings.filters] == warnings.filters
        warnings.warn("for good")
        with pytest.raises(UserWarning):
            warnings.warn("heard")
    assert warnings.filters is filters and filters == before


def test_quiet_nests(filters):
    with quiet():
        with quiet():
            warnings.warn("not heard")
        warnings.simplefilter("error", RuntimeWarning)
        with quiet():
            warnings.warn("not heard", RuntimeWarning)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            warnings.warn("heard")
        assert len(heard) == 1
    with pytest.raises(RuntimeWarning):
        warnings.warn("heard", RuntimeWarning)


def test_a_warning_that_was_shown_once_is_not_shown_again():
    """``catch_warnings`` makes Python forget what it has shown."""
    def work(x):
        return F.sum(F.exp(x) * np.add(1.0, 2.0))

    with warnings.catch_warnings(record=True) as heard:
        warnings.resetwarnings()
        warnings.simplefilter("default")
        for _ in range(3):
            warnings.warn("once")
            to_static(work)(array(2, 3))
    assert [str(one.message) for one in heard] == ["once"]


# Streams, logs, what is shown of warnings ---------------------------------------------------------------------------------

def test_recordings_that_overlap(capsys, monkeypatch):
    """Each takes down what its thread says; when all are over, everything is as it was."""
    shown, places = [], ((sys, "stdout"), (sys, "stderr"), (logging.Logger, "handle"), (warnings, "showwarning"))
    monkeypatch.setattr(warnings, "showwarning", lambda message, *rest: shown.append(str(message)))
    before, taken = [getattr(*place) for place in places], []

    def say(who):
        print(who)
        logging.getLogger("test").warning(who)
        warnings.warn(who)

    def record(pause):
        with recorded(silent=True) as said:
            say("first")
            pause()
            say("third")
        taken.extend(each.text for each in said)
        pause()
        say("after it")
        pause()

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", before[3])
        other = Beside(record)
        say("heard")
        with recorded(silent=True) as said:
            say("second")
            other.go_on()                               # its block ends
            other.go_on()                               # it says something
            say("fourth")
        assert [getattr(*place) for place in places] == before
        say("heard, too")
    other.go_on()
    assert taken == ["first", "\n", "first", "third", "\n", "third"]
    assert [each.text for each in said] == ["second", "\n", "second", "fourth", "\n", "fourth"]
    assert capsys.readouterr().out == "heard\nafter it\nheard, too\n"
    assert shown == ["heard", "after it", "heard, too"]


def test_a_stream_that_the_user_replaces_meanwhile_stays(monkeypatch):
    mine = io.StringIO()
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    with recorded(silent=True):
        sys.stdout = mine
    assert sys.stdout is mine


# Garbage collection -------------------------------------------------------------------------------------------------------

def test_collection_goes_on_after_an_interrupt(monkeypatch):
    """Giving memory back takes a while, in which the user may press Ctrl-C."""
    def interrupted():
        raise KeyboardInterrupt
    monkeypatch.setattr(collection, "_was_long", [True])
    monkeypatch.setattr(collection, "give_back", interrupted)
    with pytest.raises(KeyboardInterrupt), collection.uncollected():
        pass
    assert gc.isenabled()


@pytest.mark.parametrize("frozen, called", [(0, ["freeze", "unfreeze"]), (7, [])])
def test_what_is_imported_becomes_old_but_what_the_user_froze_stays_frozen(frozen, called, monkeypatch):
    done = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: frozen)
    for name in ("freeze", "unfreeze"):
        monkeypatch.setattr(gc, name, lambda name=name: done.append(name))
    collection.settle()
    assert done == called


def test_an_arena_that_cannot_be_made_is_not_given_back(monkeypatch):
    def fail():
        raise MemoryError
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    with contextlib.suppress(MemoryError):
        ArenaLease(ArenaPool(fail))
    assert ignored == []


# Fork -------------------------------------------------------------------------------------------------------------------

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")


def in_child(work):
    """The exit status of a forked process that runs ``work``; it is ended after a minute."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        signal.alarm(60)
        work()
        os._exit(0)
    except BaseException as error:
        print(f"in the forked process: {error!r}", file=sys.stderr)
    finally:
        os._exit(1)


@forks
def test_fork_while_another_thread_holds_every_lock():
    static = to_static(lambda x: F.sum(F.tanh(x)))
    x = array(2, 3)
    static(x)

    def hold(pause):
        held = locks._made.all()
        assert conversion._lock in held and nodes.lock in held
        for made in held:
            made.acquire()
        pause()
        for made in held:
            made.release()
    other = Beside(hold)

    def work():
        np.testing.assert_allclose(static(array(4, 3)).array, np.tanh(array(4, 3)).sum(), rtol=1e-5)
        np.testing.assert_allclose(to_static(lambda x: F.sum(F.exp(x)))(x).array, np.exp(x).sum(), rtol=1e-5)
    status = in_child(work)
    other.go_on()
    assert status == 0


@forks
def test_a_lock_that_the_forking_thread_holds_stays_held():
    lock = locks.lock()

    def work():
        lock.release()
        assert not lock._is_owned()
    with lock:
        status = in_child(work)
    assert status == 0


@forks
def test_collection_goes_on_in_a_forked_process():
    def compile_something(pause):
        with collection.uncollected():
            pause()
    other = Beside(compile_something)

    def work():
        assert gc.isenabled()
    status = in_child(work)
    assert not gc.isenabled()
    other.go_on()
    assert status == 0 and gc.isenabled()


@forks
def test_native_functions_that_another_thread_was_to_start(monkeypatch):
    """The child does not have that thread: it starts them itself."""
    monkeypatch.setattr(hotpath, "_found", {})
    monkeypatch.setattr(hotpath, "_replaced", [])
    monkeypatch.setattr(hotpath, "_waiting", [threading.Timer(1000, hotpath.start)])
    monkeypatch.setattr(hotpath, "_unused", [])

    def work():
        assert not hotpath._waiting and hotpath._unused
    assert in_child(work) == 0


@forks
def test_patches_of_another_thread_are_taken_off_in_a_forked_process():
    apply = chainer.FunctionNode.apply

    def capture(pause):
        with patches.patched():
            pause()
    other = Beside(capture)

    def work():
        assert chainer.FunctionNode.apply is apply
    status = in_child(work)
    assert chainer.FunctionNode.apply is not apply
    other.go_on()
    assert status == 0 and chainer.FunctionNode.apply is apply


# Patches of Chainer, random generators ------------------------------------------------------------------------------------

def test_an_interrupt_while_patches_are_put_on(monkeypatch):
    """Ctrl-C may come at any moment."""
    before = [vars(owner).get(name) for owner, name in patches._PATCHES]

    class Interrupting(dict):
        def items(self):
            for number, item in enumerate(super().items()):
                if number == 3:
                    monkeypatch.setattr(patches, "_PATCHES", all_of_them)
                    raise KeyboardInterrupt
                yield item
    all_of_them = patches._PATCHES
    monkeypatch.setattr(patches, "_PATCHES", Interrupting(all_of_them))
    with pytest.raises(KeyboardInterrupt), patches.patched():
        pass
    assert [vars(owner).get(name) for owner, name in patches._PATCHES] == before and not patches._blocks
    with patches.patched():
        assert vars(chainer.FunctionNode)["apply"] is not before[0]
    assert [vars(owner).get(name) for owner, name in patches._PATCHES] == before


def draw():
    return np.random.random_sample(), random.random()


def in_thread(work):
    results = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join(60)
    return results[0]


@pytest.mark.skipif(not isinstance(np.random.random_sample, types.BuiltinMethodType), reason="calls of Cython functions are not seen")
@pytest.mark.parametrize("watched", (False, True))
def test_draws_of_other_threads_do_not_come_twice(watched):
    """They draw while a capture tries a function out, also in a capture that is watched, because a draw disturbed it before."""
    other = Beside(lambda pause: pause())               # or there would be one thread alone between the draws
    with global_state_guard._watched_draws() if watched else contextlib.nullcontext([]) as drawn:
        np.random.seed(0), random.seed(0)
        expected = [draw(), draw(), draw()]
        np.random.seed(0), random.seed(0)
        drawn.clear()
        with global_state_guard.undrawn():
            found = [in_thread(draw)]
        with global_state_guard.undrawn():
            draw()
        assert not drawn
        found += [in_thread(draw), in_thread(draw)]
    other.go_on()
    assert found == expected
