"""What is made of captured graphs, kept on disk: later processes get the same programs, and never those of anything else."""
import os
import subprocess
import sys
import textwrap
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import cli, config, to_static
from dy2static.backends.c import backend as backend_c
from dy2static.ir import packing
from dy2static.ir.digest import Forms, NoForm, digest
from dy2static.native import compiler, kept, store
from dy2static.program import recipe
from dy2static.pyast.loader import compile_text

BACKENDS = ("numpy", pytest.param("c", marks=pytest.mark.skipif(not compiler.available(), reason="there is no C compiler")))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty cache in which programs are kept."""
    monkeypatch.setattr(store, "_checked", {})
    with config.CACHE_DIR.set(str(tmp_path)), config.VERIFY.set(0):
        yield tmp_path / "native"


@pytest.fixture
def derived(monkeypatch):
    """The graphs that are differentiated: none, where code from the disk is used."""
    graphs, differentiate = [], recipe.differentiate

    def noted(outcome, *rest):
        graphs.append(outcome.graph.name)
        return differentiate(outcome, *rest)
    monkeypatch.setattr(recipe, "differentiate", noted)
    return graphs


def texts(folder):
    return sorted(folder.glob("*.text"))


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a, self.b = L.Linear(6, 5, initialW=chainer.initializers.Constant(0.1)), L.Linear(5, 3)
        self.b.W.array[...] = np.arange(15, dtype=np.float32).reshape(3, 5) / 10

    def forward(self, x):
        h = F.tanh(self.a(x)) * np.float32(0.5)
        return self.b(F.dropout(h, 0.0)) + np.array([1, 2, 3], np.float32)


def loss_of(model, x):
    return F.sum(model(x) ** 2)


def whole_step(model, optimizer, x):
    value = loss_of(model, x)
    model.cleargrads()
    value.backward()
    optimizer.update()
    return value


X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)


def gradients(backend, x=X):
    """The loss, the gradients and the program of a new function."""
    model, static = Net(), to_static(loss_of, backend=backend)
    loss = static(model, x)
    model.cleargrads()
    loss.backward()
    return [loss.array, *[p.grad for p in model.params()]], static.dispatcher.programs[0]


def step(backend):
    """The loss and the parameters after two compiled steps, and the program of the second."""
    model, static = Net(), to_static(whole_step, backend=backend)
    optimizer = chainer.optimizers.MomentumSGD(0.1).setup(model)
    losses = [static(model, optimizer, X).array for _ in range(3)]
    return [*losses, *[p.array for p in model.params()]], static.dispatcher.programs[0]


def assert_equal(found, expected):
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("run", (gradients, step))
def test_what_was_kept_gives_the_same_text_and_the_same_results(run, backend, folder, derived):
    first, one = run(backend)
    count, made = len(derived), len(texts(folder))
    assert count and made
    second, other = run(backend)
    assert len(derived) == count and len(texts(folder)) == made
    with config.KEEP.set(0):
        third, anew = run(backend)
    assert len(derived) > count
    assert_equal(second, first)
    assert_equal(third, first)
    for program in (other, anew):
        assert (program.source, program.native_code, program.counts, program.footprint, program.constant_bytes) == \
            (one.source, one.native_code, one.counts, one.footprint, one.constant_bytes)
    assert str(other.graph) == str(one.graph) and other.code == one.code


class Stages(chainer.Chain):
    """Leaves a Variable in each of its stages, so that the compiled call is several functions of Chainer's."""

    def __init__(self, stages):
        super().__init__()
        with self.init_scope():
            self.stages = chainer.ChainList(*[L.Linear(6, 6, initialW=chainer.initializers.Constant(k / 8))
                                              for k in range(1, stages + 1)])
        self.left = []

    def forward(self, x):
        left = []
        for stage in self.stages:
            x = F.tanh(stage(x))
            left.append(x)
        self.left = left
        return F.sum(x * x)


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler")
def test_backwards_that_are_needed_at_once_are_one_text(folder, monkeypatch):
    """The C compiler runs once for the forward, and once for all segments of the first backward; later processes find that."""
    def run(backend, backward=lambda model, loss: loss.backward()):
        model = Stages(4)
        loss = to_static(model.forward, backend=backend)(X) if backend else model.forward(X)
        model.cleargrads()
        backward(model, loss)
        return [loss.array, *[p.grad for p in model.params()]]

    def of_a_part(model, loss):
        model.left[1].grad = np.ones_like(X)
        model.left[1].backward()

    sources, start = set(), compiler.Compiler.start
    monkeypatch.setattr(compiler.Compiler, "start", lambda self, source, *rest: (sources.add(source), start(self, source, *rest))[1])
    eager, first = run(None), run("c")
    texts_of_regions = [source for source in sources if " run_0(" in source]
    assert sorted(source.count("static int run_") for source in texts_of_regions) == [1, 3]        # equal ones once, and the loss
    for a, b in zip(first, eager):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    made, known = len(texts(folder)), len(sources)
    assert_equal(run("c"), first)
    assert len(sources) == known and len(texts(folder)) == made
    with config.KEEP.set(0):                                # each is the same on its own
        monkeypatch.setattr(backend_c.CBackend, "shared", lambda self: None)
        assert_equal(run("c"), first)
        for a, b in zip(run("c", of_a_part), run(None, of_a_part)):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_of_gradients_of_a_kept_program(backend, folder):
    def penalty():
        model, static = Net(), to_static(loss_of, backend=backend)
        x = chainer.Variable(X)
        g, = chainer.grad([static(model, x)], [x], enable_double_backprop=True)
        model.cleargrads()
        F.sum(g * g).backward()
        return [g.array, *[p.grad for p in model.params() if p.grad is not None]]
    assert_equal(penalty(), penalty())


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler")
def test_a_kept_native_region_declines_as_before(folder):
    """What native code does not take, NumPy computes, from a graph that is read from the disk, too."""
    def run():
        static = to_static(lambda x: F.exp(x) * 2 + F.sqrt(x), backend="c")
        static(X + 2)
        with pytest.warns(RuntimeWarning, match="overflow"):
            large = static(X + 200).array
        return [static((X + 2)[:, ::-1]).array, large]
    expected = run()
    assert texts(folder)
    assert_equal(run(), expected)


def scaled(x, factor):
    return F.tanh(x) * factor


def test_another_graph_setting_or_version_is_another_key(folder, monkeypatch, derived):
    def made(factor=2.0, x=X, **options):
        before = len(derived)
        to_static(scaled, backend="numpy", **options)(x, factor)
        return len(derived) - before
    assert made() == 1 and made() == 0
    assert made(factor=3.0) == 1 and made(x=X.astype(np.float64)) == 1 and made(recompute="none") == 1
    assert made() == 0
    with config.MARCH.set("x86-64"):
        assert made() == 1
    monkeypatch.setattr(kept, "_sources", lambda: (0, "another version"))
    assert made() == 1 and made() == 0


def test_nothing_is_kept_where_passes_are_watched_or_the_package_has_changed(folder, monkeypatch):
    with config.VERIFY.set(1):
        gradients("numpy")
    with config.PASS_LEVEL.set("nothing"):
        gradients("numpy")
    with config.KEEP.set(0):
        gradients("numpy")
    monkeypatch.setattr(kept, "_sources", lambda: (kept._STARTED + 1, "changed"))
    gradients("numpy")
    assert not folder.exists() or not texts(folder)


def shout(x):
    """A function of the user's, which host calls call."""


def test_a_graph_with_objects_of_the_user_is_not_kept(folder):
    def f(x):
        y = F.tanh(x)
        print(y.array.shape, file=sys.stderr)
        shout(y)
        return y * 2
    to_static(f, backend="numpy")(X)
    before = len(texts(folder)) if folder.exists() else 0
    static = to_static(lambda x: np.apply_along_axis(_own, 1, F.tanh(x).array), backend="numpy")
    static(X)
    assert len(texts(folder) if folder.exists() else ()) == before


def _own(row):
    return row * 2


@pytest.mark.parametrize("damage", (lambda content: content[:-5], lambda content: b"", lambda content: content[:50] + b"x" + content[51:]))
def test_damaged_files_are_made_again(damage, folder, derived):
    expected, _ = gradients("numpy")
    for path in texts(folder):
        path.write_bytes(damage(path.read_bytes()))
    assert not any(entry.is_sound for entry in store.entries() if entry.name.endswith(".text"))
    count = len(derived)
    found, _ = gradients("numpy")
    assert_equal(found, expected)
    assert len(derived) == count + 1 and all(entry.is_sound for entry in store.entries())


def test_a_sound_file_with_something_else_is_made_again(folder, derived):
    expected, _ = gradients("numpy")
    for path in texts(folder):
        store.keep_text(path.stem, packing.pack(("something", "else")))
    found, _ = gradients("numpy")
    assert_equal(found, expected)
    for path in texts(folder):
        store.keep_text(path.stem, b"no record")
    assert_equal(gradients("numpy")[0], expected)
    count = len(derived)
    gradients("numpy")
    assert len(derived) == count


def test_python_compiles_a_long_text_once(folder):
    source, made = "def f(x):\n" + "    x = x - 1\n" * 5000 + "    return (lambda: 1 / x)()\n", []

    def loaded(filename):
        return compile_text(source, filename, {}, keep=lambda source, make: kept.code_of(
            source, lambda: made.append(filename) or make()))["f"]
    one, other = loaded("<one>"), loaded("<other>")
    assert made == ["<one>"] and one(5001) == other(5001) == 1
    for function, filename in ((one, "<one>"), (other, "<other>")):
        with pytest.raises(ZeroDivisionError) as info:
            function(5000)
        assert [str(entry.path) for entry in info.traceback[1:]] == [filename] * 2
    with config.KEEP.set(0):
        loaded("<third>")
    assert made == ["<one>", "<third>"]


def test_the_store_counts_shows_and_removes_what_is_kept(folder, capsys):
    gradients("numpy")
    names = [path.name for path in texts(folder)]
    assert names and {entry.name for entry in store.entries()} >= set(names)
    cli.main(["cache", "list"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in names)
    with config.CACHE_MB.set(0):
        store.shrink(str(folder), str(texts(folder)[0]))
    assert len(texts(folder)) == 1
    cli.main(["cache", "clear"])
    assert not texts(folder)


PROGRAM = """
    import dy2static, chainer.functions as F, numpy as np
    from dy2static import conversion
    from dy2static.program import recipe
    parse = conversion.tree_of
    def parsed(function):
        print("parsed")
        return parse(function)
    conversion.tree_of = parsed
    differentiate = recipe.differentiate
    def noted(*args):
        print("differentiated")
        return differentiate(*args)
    recipe.differentiate = noted

    def f(x, n):
        total = x
        while F.sum(total).array < n:
            total = total * 1.5 + np.minimum(x, 1)
        return F.sum(F.concat([total, x[1:]], axis=0))
    print(float(dy2static.to_static(f, backend="numpy", strict=True)(np.ones((3, 2), np.float32), 50.0).array))
"""


def test_another_process_finds_it(tmp_path):
    """Also if texts have other hashes there: no order of a set is in a key."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    outputs = [subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True, env={
        **os.environ, "DY2STATIC_CACHE_DIR": str(tmp_path), "PYTHONHASHSEED": seed}).stdout.split() for seed in ("1", "2")]
    assert outputs[0] == ["parsed", "differentiated", outputs[1][0]] and len(outputs[1]) == 1


def test_forms_tell_different_things_apart():
    a = np.arange(6.0).reshape(2, 3)
    items = [None, 0, False, 0.0, -0.0, "0", b"0", (0,), [0], {0: 0}, {0}, float("nan"), a, a.T, np.asfortranarray(a), a.astype(np.float32),
             a + 1, np.float64(0), np.float32(0), np.dtype("f4"), np.dtype(">f4"), np.sum, np.add, np.add.reduce, slice(0, 1), range(1),
             Ellipsis, 1j, np.float32]
    found = [digest(Forms().of(item)) for item in items]
    assert len(set(found)) == len(items)
    assert found == [digest(Forms().of(item)) for item in items]
    assert digest(Forms().of({"a", "b"})) == digest(Forms().of({"b", "a"}))


@pytest.mark.parametrize("item", (_own, lambda x: x, Net, object(), np.array([object()]), np.random.RandomState(0), folder, Net().forward))
def test_things_without_a_form(item):
    with pytest.raises(NoForm):
        Forms().of(item)


@pytest.mark.parametrize("item", (_own, lambda x: x, Net, Net()))
def test_what_is_of_the_user_is_not_written(item):
    with pytest.raises(packing.NotPacked):
        packing.pack([item])


def test_a_replaced_function_of_a_library_has_no_form(monkeypatch):
    original = np.linalg.norm
    monkeypatch.setattr(np.linalg, "norm", lambda x: 0)
    with pytest.raises(NoForm):
        Forms().of(original)
    with pytest.raises(NoForm):
        Forms().of(np.linalg.norm)


def test_constants_stay_read_only():
    array = np.arange(3)
    array.flags.writeable = False
    found = packing.unpack(packing.pack({"a": array}))["a"]
    assert not found.flags.writeable and found.tolist() == [0, 1, 2]


def test_what_numpy_has_broadcast_is_kept_without_a_warning():
    broadcast, _ = np.broadcast_arrays(np.arange(3), np.zeros((2, 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        content = packing.pack(broadcast)
    assert packing.unpack(content).tolist() == [[0, 1, 2]] * 2


def test_bytes_that_name_other_code_are_refused():
    with pytest.raises(packing.NotPacked):
        packing.unpack(b"cos\nsystem\n(S'true'\ntR.")
