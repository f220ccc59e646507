"""Compiled libraries on disk: made once, found again, never loaded when they are not what was written."""
import os
import stat
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import cli, config
from dy2static.errors import FallbackWarning
from dy2static.native import announce, compiler, cpus, hotpath, kernels, library, store

TEXT = "int answer(void) { return %d; }"

pytestmark = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache, a process that has built nothing, and every announcement still to be made."""
    monkeypatch.setattr(compiler, "_built", {})
    monkeypatch.setattr(store, "_checked", {})
    announce.forget()
    with config.CACHE_DIR.set(str(tmp_path / "cache")):
        yield tmp_path / "cache" / "native"
    announce.forget()


def answer(number):
    return compiler.build(TEXT % number).handle.answer()


def libraries(folder):
    return sorted(path for path in folder.iterdir() if path.suffix == ".so")


@pytest.fixture
def compilations(monkeypatch):
    """The texts that went to the compiler."""
    texts = []
    start = compiler.Compiler.start

    def counted(self, source, *rest):
        texts.append(source)
        return start(self, source, *rest)

    monkeypatch.setattr(compiler.Compiler, "start", counted)
    return texts


def test_a_text_is_compiled_once(folder, compilations):
    assert answer(1) == 1 and compiler.build(TEXT % 1) is compiler.build(TEXT % 1)
    compiler._built.clear()
    assert answer(1) == 1
    assert len(compilations) == 1 and len(libraries(folder)) == 1
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not [path for path in folder.iterdir() if path.name.startswith(".new")]


def cut_off(path):
    path.write_bytes(path.read_bytes()[:1000])


def empty(path):
    path.write_bytes(b"")


def one_byte_changed(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def anothers_content(path):
    answer(999)
    other, = [found for found in libraries(path.parent) if found != path]
    path.write_bytes(other.read_bytes())


def writeable_by_others(path):
    path.chmod(0o722)


@pytest.mark.parametrize("damage", [cut_off, empty, one_byte_changed, anothers_content, writeable_by_others])
def test_a_damaged_file_is_made_again(folder, compilations, damage):
    answer(2)
    path, = libraries(folder)
    # the loader has the old one mapped: damage a new file of the same name
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    damage(path)
    compiler._built.clear()
    made = len(compilations)
    assert answer(2) == 2 and len(compilations) == made + 1
    assert store._is_sound(str(path))


def cut_off_at(path, size):
    """A part of a library, with the checksum of the whole file that it is not."""
    path.write_bytes(path.read_bytes()[:-store._FOOTER][:size])
    body = path.read_bytes()
    path.write_bytes(body + store._MARK + store._checksum(str(path), body))
    path.chmod(0o700)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.9, 0.999])
def test_a_part_with_a_checksum_is_made_again(folder, compilations, share):
    """To load it would end the process."""
    answer(3)
    path, = libraries(folder)
    whole = path.read_bytes()
    path.unlink()
    path.write_bytes(whole)
    cut_off_at(path, int(share * (len(whole) - store._FOOTER)))
    if 0.05 < share < 0.99:                             # else there is no header, or all but the end of what nobody loads
        with pytest.raises(OSError, match="cut off"):
            library.load(str(path))
    compiler._built.clear()
    made = len(compilations)
    assert answer(3) == 3 and len(compilations) == made + 1


def test_a_compiler_that_writes_a_part(folder, tmp_path):
    """As where the disk is full: it is not signed."""
    script = tmp_path / "half-cc"
    script.write_text(f"""#!/bin/sh
        {compiler.compiler().command[0]} "$@" || exit 1
        while [ "$1" != -o ]; do shift; done
        head -c 9000 "$2" > "$2.half" && mv "$2.half" "$2"
    """)
    script.chmod(0o755)
    with config.CC.set(str(script)), pytest.raises(compiler.BuildFailed, match="cannot be used.*cut off"):
        answer(4)
    assert not list(folder.iterdir())


def test_a_pipe_in_the_store(folder):
    answer(5)
    path, = libraries(folder)
    path.unlink()
    os.mkfifo(path, 0o700)
    compiler._built.clear()
    assert answer(5) == 5 and path.is_file()


def open_to_others(folder):
    folder.mkdir(parents=True)
    folder.chmod(0o755)


def a_link(folder):
    folder.parent.mkdir()
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "elsewhere")


def a_file(folder):
    folder.parent.mkdir()
    folder.write_text("")


def under_a_file(folder):
    folder.parent.write_text("")


@pytest.mark.parametrize("spoil", [open_to_others, a_link, a_file, under_a_file])
def test_a_directory_that_cannot_be_trusted(folder, spoil):
    spoil(folder)
    with pytest.warns(FallbackWarning, match="not kept on disk.*DY2STATIC_CACHE_DIR") as caught:
        assert answer(3) == 3
        assert answer(4) == 4
    assert len(caught) == 1
    assert not folder.is_dir() or not list(folder.iterdir())
    used = os.stat(store.directory())
    assert stat.S_IMODE(used.st_mode) == 0o700 and used.st_uid == os.geteuid()


def test_what_is_announced_in_a_backward_names_the_line_of_the_user(monkeypatch):
    """Not that of Chainer's `backward`, through which the compiler is called."""
    def fails(*args):
        announce.announce("disk", "the disk is full")
        raise NotImplementedError

    x = chainer.Variable(np.ones(2, np.float32))
    y = F.sum(F.tanh(x))
    monkeypatch.setattr(y.creator_node, "backward_accumulate", fails)
    with pytest.warns(FallbackWarning, match="the disk is full") as caught, pytest.raises(NotImplementedError):
        y.backward()
    assert [warning.filename for warning in caught] == [__file__]


def test_a_directory_of_another_user(folder, monkeypatch):
    folder.mkdir(parents=True, mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(FallbackWarning, match="belongs to another user"):
        assert store.directory() != str(folder)


def test_the_files_used_least_recently_go(folder):
    for number in range(6):
        answer(10 + number)
        for age, path in enumerate(sorted(libraries(folder), key=lambda path: -path.stat().st_mtime)):
            os.utime(path, (1e9 - age, 1e9 - age))
    kept = libraries(folder)
    oldest = min(kept, key=lambda path: path.stat().st_mtime)
    assert len(kept) == 6
    assert store.fetch(oldest.stem, lambda path: pytest.fail("it is there")) == str(oldest)      # now it is the newest
    store.shrink(str(folder), "")
    assert libraries(folder) == kept                       # below a MiB nothing goes
    with config.CACHE_MB.set(0):
        store.shrink(str(folder), str(oldest))
    assert libraries(folder) == [oldest]
    assert answer(10) == 10


def test_the_directory_is_looked_at_now_and_then(folder, monkeypatch):
    looked = []
    monkeypatch.setattr(store, "shrink", lambda folder, keep: looked.append(keep))
    for first in "01f":
        store.fetch(first + "0" * 63, lambda path: open(path, "wb").close())
    assert [os.path.basename(path)[0] for path in looked] == ["0"]


def test_what_a_dead_process_left_is_cleared(folder):
    answer(30)
    (folder / ".new-old").write_text("")
    os.utime(folder / ".new-old", (1e9, 1e9))
    (folder / ".new-now").write_text("")
    store.shrink(str(folder), "")
    assert not (folder / ".new-old").exists() and (folder / ".new-now").exists()


@pytest.mark.parametrize("what, value", [
    ("identity", "another CPU"), ("_headers", "other headers"), ("FLAGS", ("-O0",)),
], ids=lambda x: x if isinstance(x, str) else "")
def test_what_decides_is_in_the_key(monkeypatch, what, value):
    maker = compiler.compiler()
    before = compiler.key_of("x", maker)
    assert before == compiler.key_of("x", maker) != compiler.key_of("y", maker)
    assert before != compiler.key_of("x", maker._replace(identity="another version"))
    if what == "FLAGS":
        assert before != compiler.key_of("x", maker, value)
    else:
        monkeypatch.setattr(cpus if what == "identity" else compiler, what, lambda: value)
        assert before != compiler.key_of("x", maker)


def test_concurrent_processes(folder):
    """They make the same texts, and the directory."""
    children = []
    for _ in range(3):
        children.append(os.fork())
        if not children[-1]:
            try:
                assert [answer(i) for i in range(40, 43)] == [40, 41, 42]
                os._exit(0)
            finally:
                os._exit(1)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert len(list(folder.iterdir())) == 3 and all(store._is_sound(str(path)) for path in folder.iterdir())


def claim_of(source):
    return store.Claim(compiler.key_of(source, compiler.compiler(), compiler._all_flags(())))


def test_who_waits_for_another_process_leaves_no_claim(folder, monkeypatch):
    """The other process ends between a look for the library and the claim of it."""
    monkeypatch.setattr(compiler, "_PUBLISHED", 1000)
    source = TEXT % 44
    other = claim_of(source)
    assert other.take()
    build = compiler.start(source)
    try:
        assert not build.ready()
        other.remove()
    finally:
        other.release()
    assert not build.ready()                         # it may be about to appear
    assert not list(folder.iterdir())
    build._others_until = 0                          # it has not
    assert build.library().handle.answer() == 44
    assert [path.suffix for path in folder.iterdir()] == [".so"]


def test_what_appears_between_a_look_and_the_claim_is_not_made_again(folder, compilations):
    with pytest.MonkeyPatch.context() as patch:
        def late(claim):
            patch.undo()
            made = compiler._built.copy()
            compiler._built.clear()
            assert answer(45) == 45                  # another process makes it
            compiler._built.update(made)
            return claim.take()
        patch.setattr(store.Claim, "take", late)
        assert answer(45) == 45
    assert len(compilations) == 1 and [path.suffix for path in folder.iterdir()] == [".so"]


def test_what_is_removed_between_a_look_and_its_use_is_made_again(folder, compilations):
    """As by another process that clears the cache, or makes room in it."""
    assert answer(46) == 46
    compiler._built.clear()
    build = compiler.start(TEXT % 46)
    assert build.ready()
    for path in libraries(folder):
        path.unlink()
    assert build.library().handle.answer() == 46 and len(compilations) == 2


def test_a_claim_is_not_held_by_a_process_that_was_forked_meanwhile(folder):
    """By another thread; the process would hold it as long as it lives."""
    claim, (ended, lives), (begun, began) = claim_of(TEXT % 47), os.pipe(), os.pipe()
    assert claim.take()
    child = os.fork()
    if not child:
        os.close(lives)
        os.write(began, b".")
        os.read(ended, 1)
        os._exit(0)
    other = claim_of(TEXT % 47)
    try:
        assert os.read(begun, 1) and not other.take()
        claim.release()
        assert other.take()
    finally:
        other.release()
        for pipe in (lives, ended, begun, began):
            os.close(pipe)
        os.waitpid(child, 0)


@pytest.mark.parametrize("value", ["/nowhere/cc", "no-such-compiler"])
def test_no_compiler(folder, value):
    with config.CC.set(value):
        with pytest.warns(FallbackWarning, match="run on NumPy.*no C compiler"):
            assert not compiler.available()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not compiler.available()             # said once
        with pytest.raises(compiler.NoCompiler, match="DY2STATIC_CC"):
            compiler.build(TEXT % 50)


def test_a_command_that_cannot_be_read(folder):
    with config.CC.set('gcc "-O2'), pytest.warns(FallbackWarning, match='run on NumPy: DY2STATIC_CC is no command.*gcc "-O2'):
        assert not compiler.available()
        with pytest.raises(compiler.NoCompiler, match="No closing quotation"):
            compiler.build(TEXT % 50)


@pytest.mark.parametrize("value, text, message", [
    ("", "int answer(void) { return nothing; }", "refused.*nothing"),
    ("false", TEXT % 51, "refused"),
    ("true", TEXT % 52, "cannot be used"),              # says that all is well and writes nothing
    ("", '#include "no_such.h"', "refused"),
    ("", "extern int nowhere(void); int answer(void) { return nowhere(); }", "cannot be used.*nowhere"),
], ids=str)
def test_a_compiler_that_fails(folder, value, text, message):
    with config.CC.set(value), pytest.raises(compiler.BuildFailed, match="(?s)" + message):
        compiler.build(text)
    assert not [path for path in folder.iterdir() if path.name.startswith(".new")]


def test_a_child_process_can_build(folder):
    answer(60)
    child = os.fork()
    if not child:
        os._exit(0 if answer(60) == 60 and answer(61) == 61 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert answer(61) == 61


def test_kernels_are_compiled_ahead_of_time(folder, monkeypatch, capsys):
    monkeypatch.setattr(library, "CALLED", {})
    monkeypatch.setattr(library, "ADDRESSES", dict(library.ADDRESSES))
    served = kernels.serve("set_table", "#define TABLE", lambda: "const int table[2] = {3, 4};")
    monkeypatch.setattr(hotpath, "start", lambda: compiler.start(TEXT % 80))
    for compiled in (2, 0):
        compiler._built.clear()                             # as in a new process
        assert cli.main(["build-kernels"]) == 0
        assert capsys.readouterr().out == f"compiled {compiled} of 2 libraries of kernels into {folder}\n"
    caller = compiler.build("static const int *found;\n#define TABLE\nvoid set_table(const int *table) { found = table; }\n"
                            "int answer(void) { return found[1]; }")
    assert caller.handle.answer() == 4 and served.address() > 0
    compiler._built.clear()
    monkeypatch.setattr(hotpath, "start", lambda: compiler.start("int answer(void) { return nothing; }"))
    assert cli.main(["build-kernels"]) == 1 and "refused the text" in capsys.readouterr().out


def test_what_another_process_removes_is_not_listed(tmp_path, monkeypatch):
    def is_sound(path):
        if path.endswith("gone.so"):
            raise FileNotFoundError(path)
        return True
    monkeypatch.setattr(store, "_is_sound", is_sound)
    with config.CACHE_DIR.set(str(tmp_path)):
        for name in ("gone.so", "there.so"):
            open(os.path.join(store.directory(), name), "w").close()
        assert [entry.name for entry in store.entries()] == ["there.so"]
