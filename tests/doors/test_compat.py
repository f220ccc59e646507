"""Chainer as edited by ``dy2static.compat`` works, and what goes wrong is said clearly."""
import subprocess
import sys
import textwrap
from pathlib import Path

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import cli, compat
from dy2static.compat import doctor, hook, patches
from dy2static.errors import BackendError

ROOT = Path(__file__).resolve().parent.parent.parent
NUMPY_2 = np.__version__ >= "2"


def run_python(program):
    """Run a program in a fresh Python; return its exit status and what it printed, errors last."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], cwd=ROOT,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, (done.stdout + done.stderr).strip()


class MLP(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.hidden = L.Linear(4, 8)
            self.out = L.Linear(8, 3)

    def forward(self, x):
        return self.out(F.relu(self.hidden(x)))


def test_training_lowers_the_loss():
    model = L.Classifier(MLP())
    optimizer = chainer.optimizers.Adam(alpha=0.1).setup(model)
    x = np.random.rand(16, 4).astype(np.float32)
    t = np.arange(16, dtype=np.int32) % 3
    before = model(x, t).item()
    for _ in range(2):
        optimizer.update(model, x, t)
    assert model(x, t).item() < before


def test_npz_round_trip(tmp_path):
    model, copy = MLP(), MLP()
    chainer.serializers.save_npz(str(tmp_path / "model.npz"), model)
    chainer.serializers.load_npz(str(tmp_path / "model.npz"), copy)
    x = np.ones((1, 4), np.float32)
    np.testing.assert_array_equal(model(x).array, copy(x).array)


def as_strided():
    x = chainer.Variable(np.arange(6, dtype=np.float32))
    y = F.as_strided(x, (2, 3), (1, 2))
    F.sum(y).backward()
    return np.concatenate([y.array.ravel(), x.grad])


def resize_images():
    x = chainer.Variable(np.array([[[[0, 1], [2, 3]]]], np.float32))
    y = F.resize_images(x, (3, 3))
    F.sum(y).backward()
    return np.concatenate([y.array.ravel(), x.grad.ravel()])


EDITED = {
    "as_strided": (as_strided, [0, 2, 4, 1, 3, 5, 1, 1, 1, 1, 1, 1]),
    "resize_images": (resize_images, [0, .5, 1, 1, 1.5, 2, 2, 2.5, 3, 2.25, 2.25, 2.25, 2.25]),
    "pad_sequence": (
        lambda: F.pad_sequence([np.array([7], np.uint8), np.array([8, 9], np.uint8)], padding=-1).array,
        [[7, 255], [8, 9]]),
    "categorical": (
        lambda: chainer.distributions.Categorical(p=np.float32([.5, .25, .25])).log_prob(np.array(1)).array,
        np.log(.25)),
}


@pytest.mark.parametrize("name", EDITED)
# Chainer itself computes the padding with NumPy 1, which warns that -1 will stop wrapping
@pytest.mark.filterwarnings("ignore:NumPy will stop allowing conversion:DeprecationWarning")
def test_an_edited_function_gives_what_it_gave(name):
    run, expected = EDITED[name]
    np.testing.assert_allclose(run(), expected, rtol=1e-6)


def test_debug_print_names_the_device_as_before():
    assert "device: CPU" in chainer.Variable(np.zeros(2, np.float32)).debug_print()


def test_the_modules_that_used_pkg_resources_load():
    import chainer.testing.doctest_helper
    assert chainer.testing.doctest_helper.pkg_resources.require("numpy>=1") is None
    with pytest.raises(chainer.testing.doctest_helper.pkg_resources.ResolutionError):
        chainer.testing.doctest_helper.pkg_resources.WorkingSet().require("numpy<1")


def test_line_numbers_stay():
    site = Path(chainer.__file__).parent.parent
    for name, patch in patches.PATCHES.items():
        source = doctor.source_file(site, name).read_text(encoding="utf-8")
        edited = patches.apply(name, source)
        assert edited != source
        if not callable(patch):
            assert edited.count("\n") == source.count("\n"), name


@pytest.mark.parametrize("name", patches.PATCHES)
def test_a_source_it_does_not_know_is_refused(name):
    with pytest.raises(ValueError):
        patches.apply(name, "x = 1\n")


def test_another_chainer_is_refused_by_name(tmp_path):
    module = tmp_path / "chainer" / "variable.py"
    module.parent.mkdir()
    module.write_text("x = 1\n")
    (module.parent / "__init__.py").write_text("from chainer import variable\n")
    status, text = run_python(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import dy2static, chainer")
    assert status == 1
    assert f"BackendError: D2S401: chainer.variable in {module} is not Chainer 7.8.1's" in text


def test_numpy_and_the_garbage_collector_are_left_alone():
    status, text = run_python("""
        import gc, numpy, types
        def names():
            return {name for name, value in vars(numpy).items() if not isinstance(value, types.ModuleType)}
        before = names()
        import dy2static, chainer
        print(names() ^ before, gc.isenabled())
    """)
    assert (status, text) == (0, "set() True")


def test_installing_twice_is_installing_once():
    finders = list(sys.meta_path)
    compat.install()
    assert sys.meta_path == finders


def test_chainer_first_works_where_chainer_alone_does_or_says_what_to_do():
    alone, error = run_python("import chainer")
    assert alone == 1 or not NUMPY_2, "no edit is needed any more"
    status, text = run_python("""
        try:
            import chainer
        except Exception:
            pass
        import dy2static, chainer
        print(chainer.__version__)
    """)
    if alone == 0:
        assert (status, text) == (0, "7.8.1")
    else:
        assert status == 1, error
        assert "BackendError: D2S401: `import chainer` came before `import dy2static` and failed" in text
        assert "hint: write `import dy2static` above `import chainer`" in text


def test_without_chainer_it_says_how_to_install_it():
    status, text = run_python("""
        import importlib.machinery, sys
        find = importlib.machinery.PathFinder.find_spec
        class NoChainer:
            @staticmethod
            def find_spec(name, path=None, target=None):
                return None if name == "chainer" else find(name, path, target)
        sys.meta_path = [f for f in sys.meta_path if f is not importlib.machinery.PathFinder] + [NoChainer]
        import dy2static
    """)
    assert status == 1
    assert "BackendError: D2S401: Chainer is not installed in this Python" in text
    assert text.endswith("\n    ".join(compat.INSTALL_CHAINER))


def test_the_hook_makes_plain_import_chainer_work():
    status, text = run_python(f"""
        exec({hook.line()!r})
        import sys, chainer, chainer.testing
        print("dy2static" in sys.modules)
        import dy2static
        print(chainer.__version__)
    """)
    assert (status, text) == (0, "False\n7.8.1")


def test_the_hook_comes_and_goes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(hook.sysconfig, "get_paths", lambda: {"purelib": str(tmp_path)})
    assert cli.main(["install-hook"]) == 0
    assert (tmp_path / "dy2static.pth").read_text() == hook.line()
    assert cli.main(["remove-hook"]) == 0
    assert cli.main(["remove-hook"]) == 0
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"removed {tmp_path / 'dy2static.pth'}", "no hook is installed in this environment"]


def test_the_doctor(capsys):
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "does not fit" not in text
    assert "`import dy2static`, then `import chainer`: works" in text
    assert "install-hook" in text or not NUMPY_2


def test_an_error_of_the_backend_is_a_runtime_error():
    assert issubclass(BackendError, RuntimeError)
