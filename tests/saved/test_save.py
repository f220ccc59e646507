"""Saved models: what is loaded does what was saved, in this process and in others, and is trained and saved again."""
import itertools
import json
import os
import subprocess
import sys
import textwrap

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from saved_programs import CASES, array, assert_same, chain, linear, run

import dy2static
from dy2static import InputSpec, TranslatedLayer, load, save, to_static
from dy2static.errors import SignatureError


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_same_as_eager(name, tmp_path):
    case = CASES[name]
    save(case.make(), tmp_path / "m", case.specs)
    for backend in ("numpy", "c"):
        model, loaded = case.make(), load(tmp_path / "m", backend=backend)
        assert isinstance(loaded, TranslatedLayer) and isinstance(loaded, chainer.Link)
        links = (model, loaded) if isinstance(model, chainer.Link) else (None, None)
        for train, enable_backprop in itertools.product((False, True), (True, False)):
            with chainer.using_config("train", train), chainer.using_config("enable_backprop", enable_backprop):
                for n in case.sizes:
                    expected = run(model, links[0], case.args(n))
                    assert_same(run(loaded, links[1], case.args(n)), expected)
        if links[0] is not None:
            state = [[(path, link.__dict__[key]) for path, link in links.namedlinks() for key in sorted(link._persistent)]
                     for links in links]
            for (path, expected), (other, found) in zip(*state):
                assert path == other
                np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("kind", ["array", "variable", "detached"])
def test_every_way_to_give_an_array(kind, tmp_path):
    model = CASES["mlp"].make()
    save(model, tmp_path / "m", [InputSpec([None, 4])])
    loaded = load(tmp_path / "m")
    x = array(3, 4)
    given = {"array": lambda: x, "variable": lambda: chainer.Variable(x),
             "detached": lambda: chainer.Variable(x, requires_grad=False)}[kind]
    assert_same(run(loaded, loaded, (given(),)), run(model, model, (given(),)))


def test_after_calls_without_a_spec(tmp_path):
    """What was called is saved, in both modes, with the shapes it had."""
    model = to_static(CASES["mlp"].make())
    model(array(3, 4))
    save(model, tmp_path / "m")
    loaded = load(tmp_path / "m")
    for train in (False, True):
        with chainer.using_config("train", train):
            assert_same(run(loaded, loaded, (array(3, 4),)), run(model, model, (array(3, 4),)))
    with pytest.raises(SignatureError, match=r"\(3, 4\) float32"):
        loaded(array(2, 4))
    assert "another number or kind of arguments\n  hint: give" in str(pytest.raises(SignatureError, loaded, array(3, 4), 2).value)


def test_the_model_is_not_called(tmp_path):
    """`save` changes nothing, and prints nothing."""
    calls = []

    class Model(chainer.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.bn = L.BatchNormalization(3)
            self.count = 0

        def forward(self, x):
            self.count += 1
            calls.append(self.count)
            return self.bn(x) * np.random.rand()
    model, random = Model(), np.random.get_state()[1].tolist()
    before = model.bn.avg_mean.copy()
    save(model, tmp_path / "m", [InputSpec([None, 3])])
    assert (model.count, calls) == (0, []) and np.random.get_state()[1].tolist() == random
    np.testing.assert_array_equal(model.bn.avg_mean, before)
    loaded = load(tmp_path / "m")
    for _ in range(3):
        loaded(array(4, 3))
    assert loaded.count == 3 and calls == []


def test_second_order(tmp_path):
    model = CASES["shared"].make()
    save(model, tmp_path / "m", [InputSpec([None, 4])])
    loaded = load(tmp_path / "m")

    def penalty(model):
        x = chainer.Variable(array(3, 4))
        model.cleargrads()
        g, = chainer.grad([F.sum(model(x))], [x], enable_double_backprop=True)
        F.sum(g * g).backward()
        return [g.array, x.grad] + [p.grad for _, p in sorted(model.namedparams())]
    for a, b in zip(penalty(loaded), penalty(model)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_arguments_by_name(tmp_path):
    save(chain(lambda self, x, y: self.l1(x) - y, l1=linear(4, 4)), tmp_path / "m", [InputSpec([None, 4]), InputSpec([None, 4])])
    loaded = load(tmp_path / "m")
    np.testing.assert_array_equal(loaded(y=array(2, 4), x=array(2, 4, seed=1)).array,
                                  loaded(array(2, 4, seed=1), array(2, 4)).array)


def test_sizes_of_their_own(tmp_path):
    """Free axes that need not be equal are not; others are, and what does not fit is an error."""
    def both(x, y):
        return F.sum(x, axis=0) + F.sum(y, axis=0)
    save(both, tmp_path / "own", [InputSpec([None, 3]), InputSpec([None, 3])])
    np.testing.assert_allclose(load(tmp_path / "own")(array(2, 3), array(5, 3)).array, both(array(2, 3), array(5, 3)).array, rtol=1e-6)
    save(lambda x, y: F.sum(F.relu(x) * y), tmp_path / "equal", [InputSpec([None, 3]), InputSpec([None, 3])])
    loaded = load(tmp_path / "equal")
    loaded(array(4, 3), array(4, 3))
    with pytest.raises(SignatureError, match=r"this call with ndarray \(4, 3\) float32, ndarray \(5, 3\) float32; the nearest wants"):
        loaded(array(4, 3), array(5, 3))


def neighbours(x, adjacency):
    degree = F.sum(adjacency, axis=1) + 1
    return F.matmul(adjacency * F.broadcast_to(F.expand_dims(degree, 1), adjacency.shape), x)


def within_lengths(x, n):
    keep = np.arange(x.shape[1])[None, :] < n[:, None]
    return F.sum(F.where(keep, F.sum(x, axis=2), np.zeros(x.shape[:2], "f")), axis=1)


def causal(x):
    keep = np.broadcast_to(np.tril(np.ones((x.shape[1], x.shape[1]), bool)), (x.shape[0], 4, x.shape[1], x.shape[1]))
    scores = F.broadcast_to(F.expand_dims(F.matmul(x, x, transb=True), 1), keep.shape)
    return F.sum(F.where(keep, scores, np.zeros(keep.shape, "f")), axis=3)


@pytest.mark.parametrize("function, specs, wrong", [
    (neighbours, [InputSpec([None, 3]), InputSpec([None, None])], ((4, 3), (4, 5))),
    (neighbours, [InputSpec(["nodes", 3]), InputSpec(["nodes", "nodes"])], ((4, 3), (5, 5))),
    (within_lengths, [InputSpec([None, None, 4]), InputSpec([None], "int32")], ((3, 2, 4), (2,))),
    (causal, [InputSpec([None, None, 4])], None)])
def test_sizes_that_have_to_be_equal_are_found(function, specs, wrong, tmp_path):
    """Also those of two axes of one array, of axes of several numbers, and those that have a name; others stay free, and small."""
    def arrays(*shapes):
        return [array(*shape) if spec.dtype.kind == "f" else np.arange(shape[0], dtype="i") for shape, spec in zip(shapes, specs)]
    save(function, tmp_path / "m", specs)
    loaded = load(tmp_path / "m")
    for n, m in ((2, 3), (5, 4), (1, 2), (3, 1)):
        given = arrays(*{neighbours: ((n, 3), (n, n)), within_lengths: ((n, m, 4), (n,)), causal: ((n, m, 4),)}[function])
        np.testing.assert_allclose(loaded(*given).array, function(*given).array, rtol=1e-5)
    if wrong is not None:
        with pytest.raises(SignatureError):
            loaded(*arrays(*wrong))


def test_images_that_must_not_be_too_small(tmp_path):
    """Where windows have to fit, sizes are free from a power of two on; the batch may be one."""
    def forward(self, x):
        h = F.relu(self.conv2(F.max_pooling_2d(F.relu(self.conv(x)), 2)))
        return self.l1(F.average(h, axis=(2, 3)))
    model = chain(forward, conv=lambda: L.Convolution2D(2, 4, 5), conv2=lambda: L.Convolution2D(4, 4, 3, pad=1), l1=linear(4, 2))
    save(model, tmp_path / "m", [InputSpec([None, 2, None, None])])
    loaded = load(tmp_path / "m")
    for shape in ((1, 2, 9, 20), (3, 2, 16, 8), (2, 2, 33, 33)):
        assert_same(run(loaded, loaded, (array(*shape),)), run(model, model, (array(*shape),)))
    with pytest.raises(SignatureError, match="8 or more"):
        loaded(array(2, 2, 6, 6))


def test_images_whose_sizes_must_be_multiples(tmp_path):
    """Where they are halved and doubled again.  Other functions may call what was loaded with sizes of their own."""
    def forward(self, x):
        h = F.max_pooling_2d(F.relu(self.conv(x)), 2)
        return F.concat([x, self.back(F.max_pooling_2d(h, 2))])
    model = chain(forward, conv=lambda: L.Convolution2D(2, 4, 3, pad=1), back=lambda: L.Deconvolution2D(4, 2, 4, stride=4))
    save(model, tmp_path / "m", [InputSpec([None, 2, None, None])])
    loaded = load(tmp_path / "m")
    for shape in ((1, 2, 8, 20), (3, 2, 16, 4), (2, 2, 36, 40)):
        assert_same(run(loaded, loaded, (array(*shape),)), run(model, model, (array(*shape),)))
    with pytest.raises(SignatureError, match="a multiple of 4, 4 or more"):
        loaded(array(2, 2, 6, 8))
    outer = to_static(lambda x: loaded(F.tile(x, (1, 1, 2, 2))) * 2, dynamic=True)
    for n in (4, 6, 8, 10):
        x = array(1, 2, n, 2 * n)
        np.testing.assert_allclose(outer(x).array, model(np.tile(x, (1, 1, 2, 2))).array * 2, rtol=1e-5, atol=1e-6)


def test_sizes_up_to_the_rows_of_a_table(tmp_path):
    table = array(16, 3, seed=4)
    model = chain(lambda self, x: self.l1(F.mean(x + table[None, :x.shape[1]], axis=1)), l1=linear(3, 2))
    save(model, tmp_path / "m", [InputSpec([None, None, 3])])
    loaded = load(tmp_path / "m")
    for shape in ((1, 1, 3), (3, 7, 3), (2, 16, 3)):
        np.testing.assert_allclose(loaded(array(*shape)).array, model(array(*shape)).array, rtol=1e-5)
    with pytest.raises(SignatureError, match="2 to 16"):
        loaded(array(2, 17, 3))


def test_modes_of_the_layer(tmp_path):
    """``eval()`` and ``train()`` of one layer; until then the configuration decides."""
    model = CASES["mlp"].make()
    save(model, tmp_path / "m", [InputSpec([None, 4])])
    loaded = load(tmp_path / "m")
    x = array(3, 4)
    with chainer.using_config("train", False):
        expected = model(x).array
        np.testing.assert_allclose(loaded(x).array, expected, rtol=1e-6)
        loaded.train()
        assert not np.allclose(loaded(x).array, expected)
    loaded.eval()
    np.testing.assert_allclose(loaded(x).array, expected, rtol=1e-6)


def test_another_process(tmp_path):
    """Neither the module of the model nor what it imports is there; the layer prints and raises as the model did."""
    (tmp_path / "mymodel.py").write_text(textwrap.dedent("""
        import dy2static, chainer, chainer.functions as F, chainer.links as L, numpy as np, private_helpers

        class Model(chainer.Chain):
            def __init__(self):
                super().__init__()
                with self.init_scope():
                    self.l1 = L.Linear(3, 2)

            def forward(self, x):
                h = private_helpers.scaled(self.l1(x))
                if h.array.sum() > 100:
                    raise ValueError("too large")
                print("sum", round(float(h.array.sum()), 3))
                return h

        if __name__ == "__main__":
            np.random.seed(0)
            model = Model()
            dy2static.save(model, "saved", [dy2static.InputSpec([None, 3])])
            print(model(np.ones((2, 3), "f")).array.tolist())
    """))
    (tmp_path / "private_helpers.py").write_text("def scaled(x):\n    return x * 2\n")
    first = python(tmp_path, "mymodel.py")
    for name in ("mymodel.py", "private_helpers.py"):
        os.remove(tmp_path / name)
    (tmp_path / "serve.py").write_text(textwrap.dedent("""
        import dy2static, numpy as np, sys
        model = dy2static.load("saved")
        print(model(np.ones((2, 3), "f")).array.tolist())
        try:
            model(np.full((2, 3), 1e6, "f") * np.sign(model.l1.W.array.sum(0)))
        except ValueError as error:
            print(error)
        assert "mymodel" not in sys.modules
    """))
    second = python(tmp_path, "serve.py")
    assert second.splitlines()[:2] == first.splitlines() and "too large" in second


def python(folder, script):
    """What a script prints."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(dy2static.__file__)))
    done = subprocess.run([sys.executable, script], cwd=folder, env={**os.environ, "PYTHONPATH": root}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_files_can_be_read(tmp_path):
    """JSON with the names of the user's lines, and arrays with the names of the parameters."""
    from safetensors.numpy import load_file
    model = CASES["mlp"].make()
    save(model, tmp_path / "m", [InputSpec([None, 4], name="x")])
    assert set(load_file(str(tmp_path / "m" / "arrays.safetensors"))) >= {"l1.W", "l1.b", "l2.W", "l2.b"}
    document = json.loads((tmp_path / "m" / "programs.json").read_text())
    assert document["arguments"] == ["x"] and document["places"][0][0] == "saved_programs.py"
    assert json.loads((tmp_path / "m" / "manifest.json").read_text())["version"] == 1
    assert str(tmp_path) not in (tmp_path / "m" / "programs.json").read_text()
