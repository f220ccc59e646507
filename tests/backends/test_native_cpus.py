"""Native code for other CPUs than this one, compilers of other kinds, and one store for machines of several kinds."""
import os
import subprocess
import sys

import numpy as np
import pytest
from kernels_on_cpus import run

from dy2static import config, to_static
from dy2static.errors import FallbackWarning
from dy2static.native import announce, compiler, cpus
from dy2static.program import hotpath

pytestmark = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")

TEXT = "int answer(void) { return %d; }"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty store, and a process that has built nothing."""
    monkeypatch.setattr(compiler, "_built", {})
    monkeypatch.setattr(hotpath, "prepare", lambda: None)       # it would be compiled in a while, for this store
    announce.forget()
    with config.CACHE_DIR.set(str(tmp_path / "cache")):
        yield tmp_path / "cache" / "native"
    announce.forget()


@pytest.mark.any_python
@pytest.mark.parametrize("kind, maker, kernel", [
    ("x86-64-v2", "gcc", "product"), ("x86-64-v3", "clang", "product"), ("aarch64", "gcc", "product"), ("aarch64", "gcc", "math")])
def test_kernels_of_another_cpu(kind, maker, kernel):
    """`python -m tests.kernels_on_cpus` has all of them."""
    try:
        right, words = run(kind, maker, kernel, "float", ("-O1",))
    except LookupError as reason:
        pytest.skip(str(reason))
    assert right, words


def test_one_store_serves_two_kinds_of_cpu(folder, monkeypatch):
    """Each machine finds its own libraries beside those of the other."""
    this, other = cpus.fields(), {"model name": "another", "flags": "sse2"}
    found = []
    for fields in (this, other, this, other):
        monkeypatch.setattr(cpus, "fields", lambda: fields)          # noqa: B023  called at once
        compiler._built.clear()                         # as in a new process
        kept = compiler.is_kept(TEXT % 7)
        built = compiler.build(TEXT % 7)
        assert built.handle.answer() == 7
        found.append((kept, built.path))
    assert [kept for kept, _ in found] == [False, False, True, True]
    assert found[0] == (False, found[2][1]) and found[1] == (False, found[3][1]) and found[0][1] != found[1][1]
    assert len(list(folder.iterdir())) == 2


def test_a_level_is_one_library_for_all_cpus(folder, monkeypatch):
    keys = []
    for fields in ({"model name": name, "flags": "ssse3 sse4_2 popcnt"} for name in ("one", "another")):
        monkeypatch.setattr(cpus, "fields", lambda: fields)          # noqa: B023  called at once
        with config.MARCH.set("x86-64-v2"):
            keys.append(compiler.key_of("x", compiler.compiler()))
        keys.append(compiler.key_of("x", compiler.compiler()))
    assert keys[0] == keys[2] and len(set(keys)) == 3


def test_a_level_decides_what_is_made(folder):
    text = "int answer(void) {\n#ifdef __AVX2__\nreturn 2;\n#endif\nreturn 1; }"
    for march, answer in (("x86-64-v2", 1), ("x86-64-v3", 2)):
        with config.MARCH.set(march):
            if cpus.lacking():
                pytest.skip(f"this CPU has no {cpus.lacking()}")
            assert compiler.build(text).handle.answer() == answer


def test_the_longest_vectors_are_used(monkeypatch):
    def flags(march, has="sse2 avx2"):
        monkeypatch.setattr(cpus, "fields", lambda: {"flags": has})
        with config.MARCH.set(march):
            return "-mprefer-vector-width=512" in compiler._all_flags(())
    assert flags("native", "avx2 avx512f") and flags("x86-64-v4")
    assert not any((flags("native"), flags("x86-64-v3", "avx2 avx512f"), flags("armv8-a", "avx2 avx512f")))


def test_a_level_above_this_cpu_is_never_run(folder, monkeypatch):
    monkeypatch.setattr(cpus, "fields", lambda: {"flags": "sse2 ssse3 sse4_2 popcnt"})
    compiled, x = to_static(lambda x: np.tanh(x) + 1, backend="c"), np.ones((2, 3), "f")
    with config.MARCH.set("x86-64-v3"):
        with pytest.warns(FallbackWarning, match="run on NumPy: DY2STATIC_MARCH=x86-64-v3 is more.*avx2, fma"):
            np.testing.assert_array_equal(compiled(x), np.tanh(x) + 1)
        with pytest.raises(compiler.NoCompiler, match="bmi2"):
            compiler.build(TEXT % 8)


def test_a_cpu_that_the_compiler_does_not_know_is_named_with_its_variable(folder):
    with config.MARCH.set("i9"), pytest.raises(compiler.BuildFailed) as caught:
        compiler.build(TEXT % 9)
    assert str(caught.value).endswith("hint: DY2STATIC_MARCH=i9 is no CPU that this compiler knows")


def test_the_environment_names_the_cpu(tmp_path):
    text = "int answer(void) {\\n#ifdef __AVX2__\\nreturn 2;\\n#endif\\nreturn 1; }"
    program = ("from dy2static import config\nfrom dy2static.native import compiler\n"
               f"assert compiler.build('{text}').handle.answer() == 1 and config.STRICT_BUILD.value == 1")
    environment = dict(os.environ, DY2STATIC_MARCH="x86-64-v2", DY2STATIC_STRICT_BUILD="1", DY2STATIC_CACHE_DIR=str(tmp_path))
    with config.MARCH.set("x86-64-v2"):
        if cpus.lacking():
            pytest.skip(f"this CPU has no {cpus.lacking()}")
    assert subprocess.run([sys.executable, "-c", program], env=environment, timeout=120).returncode == 0


def test_a_refused_text_is_an_error_where_that_is_wanted(folder):
    """Tests are run so: a kernel that does not compile would leave them to NumPy."""
    x = np.ones((2, 3), "f")
    for strict in (1, 0):
        compiled = to_static(lambda x: np.tanh(x) * 3, backend="c")
        with config.CC.set("false"), config.STRICT_BUILD.set(strict):
            if strict:
                with pytest.raises(compiler.BuildFailed, match="refused the text"):
                    compiled(x)
            else:
                with pytest.warns(FallbackWarning, match="run on NumPy"):
                    np.testing.assert_array_equal(compiled(x), np.tanh(x) * 3)
