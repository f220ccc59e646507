"""Programs that become native code while calls go on: what the user waits for, and what becomes of the compiler."""
import glob
import os
import signal
import subprocess
import sys
import textwrap
import time

import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import config, to_static
from dy2static.errors import FallbackWarning
from dy2static.native import announce, compiler, store
from dy2static.program import hotpath

pytestmark = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")


@pytest.fixture(autouse=True)
def background(tmp_path, monkeypatch):
    """Nothing is compiled yet, and programs become native with their third call."""
    monkeypatch.setattr(compiler, "_built", {})
    monkeypatch.setattr(store, "_checked", {})
    monkeypatch.setattr(hotpath, "prepare", lambda: None)       # it has a compiler run as well
    announce.forget()
    with config.BACKGROUND.set(1), config.NATIVE_AFTER.set(2), config.CACHE_DIR.set(str(tmp_path / "cache")):
        yield tmp_path
    announce.forget()


@pytest.fixture
def gate(tmp_path):
    """A compiler that goes on when ``gate.open()`` is called."""
    opened, script = tmp_path / "open", tmp_path / "slow-cc"
    script.write_text(f"#!/bin/sh\nwhile [ ! -e {opened} ]; do sleep 0.02; done\nexec {compiler.compiler().command[0]} \"$@\"\n")
    script.chmod(0o755)
    with config.CC.set(str(script)):
        yield opened
    opened.touch()


def loss_of(x, w):
    return F.sum(F.tanh(x * w) ** 2)


def step(function, seed=0):
    """The loss and its gradients."""
    r = np.random.RandomState(seed)
    x, w = (chainer.Variable(r.uniform(-1, 1, shape).astype("f")) for shape in ((4, 5), (4, 5)))
    loss = function(x, w)
    loss.backward()
    return loss.array, x.grad, w.grad


def check(found, seed=0):
    for a, b in zip(found, step(loss_of, seed)):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def is_native(compiled):
    return compiled.stats().get("native", 0) > 0


def is_warming(compiled):
    return compiled.dispatcher.tiers.is_warming(compiled.dispatcher.programs[0])


def until(condition):
    """Wait; not for ever, but longer than a busy machine needs.  What must not come by itself does not come in that time."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_calls_go_on(gate):
    compiled = to_static(loss_of, strict=True, backend="auto")
    for k in range(12):
        check(step(compiled, k), k)
    assert not is_native(compiled) and 1 <= len(compiler._running) <= compiler._MOST
    gate.touch()
    until(lambda: [check(step(compiled)), is_native(compiled)][-1])
    made = len(compiler._built)
    program, = compiled.dispatcher.programs
    assert program.segments[0].backward                 # was made at the same time
    check(step(compiled, 7), 7)
    assert len(compiler._built) == made and compiled.stats()["captures"] == 1
    assert not compiler._running and not [path for path in os.listdir(store.directory()) if path.startswith(".new")]


def test_gradients_of_gradients(gate):
    """What was differentiated again is made again, too."""
    def second(function):
        x, w = (chainer.Variable(np.ones(shape, "f") / 4) for shape in ((4, 5), (4, 5)))
        gradient, = chainer.grad([function(x, w)], [w], enable_double_backprop=True)
        F.sum(gradient * gradient).backward()
        return x.grad, w.grad

    compiled = to_static(loss_of, strict=True, backend="auto")
    for _ in range(4):
        second(compiled)
    gate.touch()
    until(lambda: [second(compiled), is_native(compiled)][-1])
    made = len(compiler._built)
    for a, b in zip(second(compiled), second(loss_of)):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    assert len(compiler._built) == made


def test_what_is_on_disk_is_there_at_once():
    with config.BACKGROUND.set(0):
        for _ in range(3):
            compiled = to_static(loss_of, strict=True, backend="auto")
            for k in range(4):
                step(compiled)
                assert is_native(compiled) == (k >= 2)
    compiler._built.clear()
    compiled = to_static(loss_of, strict=True, backend="auto")
    for k in range(5):                                  # in the third call the forward, in the next one the backward
        step(compiled)
        assert is_native(compiled) == (k >= 3)


@pytest.mark.parametrize("value", ["false", "/bin/sh -c exit"])
def test_a_compiler_that_fails(value):
    """The same as when it is waited for: said once, and NumPy goes on."""
    compiled = to_static(loss_of, strict=True, backend="auto")
    with config.CC.set(value), config.STRICT_BUILD.set(0), pytest.warns(FallbackWarning, match="programs run on NumPy") as caught:
        until(lambda: [check(step(compiled)), not is_warming(compiled)][-1])
    assert len(caught) == 1 and not is_native(compiled) and not compiler._running
    check(step(compiled))


@pytest.mark.parametrize("backend", ["auto", "c"])
def test_a_compiler_that_hangs(gate, backend, monkeypatch):
    """It is ended, waited for once, and that is said once."""
    compiled, other = (to_static(function, strict=True, backend=backend) for function in (loss_of, lambda x, w: loss_of(x, w) * 1))
    with config.CC_SECONDS.set(0.3), pytest.warns(FallbackWarning, match="takes more than 0.3 seconds") as caught:
        until(lambda: [check(step(compiled)), not is_warming(compiled)][-1])
        assert not compiler._running
        monkeypatch.setattr(compiler.Compiler, "start", None)       # no other is
        until(lambda: [check(step(other)), not is_warming(other)][-1])
    assert len(caught) == 1


def test_one_text_that_takes_long(gate):
    """The compiler has made others: it is asked again."""
    gate.touch()
    assert compiler.build("int answer(void) { return 1; }").handle.answer() == 1
    gate.unlink()
    with config.CC_SECONDS.set(0.1), pytest.raises(compiler.BuildFailed, match="takes more than.*\n.*DY2STATIC_CC_SECONDS"):
        compiler.build("int answer(void) { return 2; }")
    gate.touch()
    assert compiler.build("int answer(void) { return 2; }").handle.answer() == 2


def members(group):
    """The processes of a group that still run."""
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as file:
                state, _, its = file.read().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        found += [path] if int(its) == group and state != "Z" else []
    return found


def test_a_compiler_that_does_not_listen(tmp_path):
    """All that it has started ends."""
    script = tmp_path / "deaf-cc"
    script.write_text("#!/bin/sh\ntrap '' TERM\nsleep 1000 &\nsleep 1000\n")
    script.chmod(0o755)
    with config.CC.set(str(script)), config.CC_SECONDS.set(0.2):
        building = compiler.start("int answer(void) { return 1; }")
        group = building._process.pid
        until(lambda: len(members(group)) >= 5)         # a shell, its watch, the compiler, and two of its own
        with pytest.raises(compiler.BuildFailed, match="takes more than"):
            building.library()
    until(lambda: not members(group))


def in_child(function):
    """Call a function with a file in a fork of this process.  Returns its number, and the file to read what it writes."""
    theirs, ours = os.pipe()
    child = os.fork()
    if not child:
        try:
            signal.alarm(60)
            os.close(theirs)
            with open(ours, "w") as said:
                function(said)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(ours)
    return child, open(theirs)


@pytest.mark.parametrize("stopped", [False, True], ids=["finished", "stopped"])
def test_a_child_waits_for_the_compiler_of_its_parent(gate, stopped):
    """A process of which another one makes the library does not start a compiler, unless the other compiler is stopped."""
    compiled = to_static(loss_of, strict=True, backend="auto")
    for _ in range(6):
        step(compiled)
    running = list(compiler._running)

    def use(said):
        def started():
            return any(making._owner == os.getpid() for making in compiler._running)

        def say(answer):
            said.write(f"{answer}\n")
            said.flush()

        for _ in range(20):
            check(step(compiled))
        say(started())
        until(lambda: [check(step(compiled)), started() or is_native(compiled)][-1])
        say(started())
        until(lambda: [check(step(compiled)), is_native(compiled)][-1])

    child, said = in_child(use)
    with said:
        assert said.readline() == "False\n"             # it waits
        if not stopped:
            gate.touch()
        for making in running:
            making.stop() if stopped else making.library()
        assert said.readline() == f"{stopped}\n"
        gate.touch()
    assert os.waitpid(child, 0)[1] == 0
    until(lambda: [check(step(compiled)), is_native(compiled)][-1])


def test_processes_that_share_a_cache_compile_a_text_once(gate, tmp_path, monkeypatch):
    monkeypatch.setattr(compiler, "_PUBLISHED", 1000)   # however late the one that compiles goes on
    log, source = tmp_path / "log", "int answer(void) { return 3; }"
    script = tmp_path / "noted-cc"
    script.write_text(f'#!/bin/sh\necho started >> {log}\nexec {config.CC.value} "$@"\n')
    script.chmod(0o755)

    def use(said):
        building = compiler.start(source)
        said.write("asked\n")
        said.flush()
        said.write(str(building.library().find("answer")()))

    with config.CC.set(str(script)):
        children = [in_child(use) for _ in range(3)]
        for _, said in children:
            assert said.readline() == "asked\n"
        gate.touch()
        for child, said in children:
            with said:
                assert said.read() == "3"
            assert os.waitpid(child, 0)[1] == 0
    assert log.read_text() == "started\n"


def test_the_claim_of_a_process_that_dies_is_free(gate):
    """The compiler dies with the process that started it, and another process makes the library."""
    source = "int answer(void) { return 4; }"

    def die(said):
        compiler.start(source)
        said.write("started\n")
        said.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    child, said = in_child(die)
    with said:
        assert said.readline() == "started\n"
    os.waitpid(child, 0)
    gate.touch()
    begin = time.monotonic()
    assert compiler.start(source).library().find("answer")() == 4
    assert time.monotonic() - begin < config.CC_SECONDS.value / 2


ENDING = """
    import dy2static, os, sys
    import numpy as np, chainer.functions as F
    from dy2static.program import hotpath
    from dy2static.native import compiler
    hotpath.prepare = lambda: None
    f = dy2static.to_static(lambda x: F.tanh(x) * 2)
    for _ in range(5):
        f(np.ones((2, 3), "f"))
    print(*[making._process.pid for making in compiler._running], flush=True)
    {end}
"""


@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), 2)"])
def test_the_end_of_a_process(gate, tmp_path, end):
    """Nobody waits for the compiler, and nothing is left of it."""
    environment = {**os.environ, "DY2STATIC_CACHE_DIR": str(tmp_path / "cache"), "DY2STATIC_CC": str(config.CC.value),
                   "DY2STATIC_NATIVE_AFTER": "1", "DY2STATIC_BACKEND": "auto", "DY2STATIC_BACKGROUND": "1",
                   "DY2STATIC_KEEP": "0"}        # generated code stays in the cache, too
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(ENDING.format(end=end)))
    with open(tmp_path / "said", "w+") as said:
        subprocess.run([sys.executable, "-W", "always::ResourceWarning", str(path)], env=environment, stdout=said,
                       stderr=subprocess.STDOUT, timeout=60)
        said.seek(0)
        words = said.read()
    group, = [int(word) for word in words.splitlines() if word.isdigit()]
    until(lambda: not members(group))
    until(lambda: not os.listdir(tmp_path / "cache" / "native"))
    assert "ResourceWarning" not in words, words


ENDS = {
    "SIGTERM": lambda ended: os.kill(os.getpid(), signal.SIGTERM),
    "SIGKILL": lambda ended: os.kill(os.getpid(), signal.SIGKILL),
    "_exit": lambda ended: os._exit(0),
    "exec": lambda ended: (os.dup2(ended, 0), os.execv("/bin/cat", ["cat"])),
    "a child lives on": lambda ended: os._exit(0) if os.fork() else os.read(ended, 1),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_an_end_at_which_python_does_nothing(gate, end):
    """What goes on in place of the process, or beside it, does so until the test closes a pipe."""
    (theirs, ours), (ended, lives) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(theirs)
            os.close(lives)
            group = compiler.start("int answer(void) { return 1; }")._process.pid
            until(lambda: len(members(group)) >= 3)
            os.write(ours, str(group).encode())
            os.close(ours)
            end(ended)
        finally:
            os._exit(1)
    os.close(ours)
    os.close(ended)
    try:
        with open(theirs) as said:
            group = int(said.read())
        until(lambda: not members(group))
        assert not os.listdir(store.directory())
    finally:
        os.close(lives)
        os.waitpid(child, 0)


def test_an_interrupt_is_not_for_the_compiler(gate):
    compiled = to_static(loss_of, strict=True, backend="auto")
    for _ in range(6):
        step(compiled)
    making = compiler._running[0]
    assert os.getpgid(making._process.pid) != os.getpgid(0)
    making.stop()                                       # as at the end of the process
    assert making._process is None and making not in compiler._running


def test_another_process_takes_too_long(tmp_path):
    """A process that holds the claim for a library, and never looks at its compiler, does not stop others for good."""
    script = tmp_path / "slow-cc"
    script.write_text("#!/bin/sh\nexec sleep 30\n")
    script.chmod(0o755)
    source = "int answer(void) { return 2; }"
    with config.CC.set(str(script)), config.CC_SECONDS.set(0.2):
        claim = store.Claim(compiler.key_of(source, compiler.compiler(), compiler._all_flags(())))
        assert claim.take()
        try:
            begin = time.monotonic()
            with pytest.raises(compiler.BuildFailed, match="takes more than"):
                compiler.start(source).library()
            assert time.monotonic() - begin < 20
        finally:
            claim.release()
