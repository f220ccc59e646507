"""What cannot be saved is refused, with the place in the user's code."""
import os
import re

import chainer
import chainer.functions as F
import numpy as np
import pytest
from saved_programs import array, assert_same, chain, linear, of_globals, run

from dy2static import InputSpec, SaveError, SaveWarning, load, save
from dy2static.errors import LoadError, SignatureError
from dy2static.saved import files

# What is refused -----------------------------------------------------------------------------------------------------


class Mine:
    def __init__(self, y):
        self.y = y


class Counts:
    calls = 0


def test_what_cannot_be_saved(tmp_path):
    """One message each, with the line of the user's where there is one, and nothing is left behind."""
    def with_host_call(x):
        open(os.devnull).close()
        return x * 2

    def with_object(x):
        return Mine(x * 2)

    class Own(chainer.FunctionNode):
        def forward(self, inputs):
            return inputs[0] * 2,

    for function, message in ((with_host_call, "host"), (with_object, "Mine"), (lambda x: Own().apply((x,))[0], "cannot be saved"),
                              (lambda x: x.reshape(int(x.array.sum()), -1), "contents of an array")):
        with pytest.raises(SaveError, match=message) as caught:
            save(function, tmp_path / "m", [InputSpec([2, 3])])
        assert message == "Mine" or "test_saved_refusals.py" in str(caught.value)
    with pytest.raises(SaveError, match="call it once"):
        save(chain(lambda self, x: self.l1(x), l1=linear(None, 2)), tmp_path / "m", [InputSpec([2, 3])])
    for size in (4, None):
        with pytest.raises(SaveError, match=r"raises InvalidType for what input_spec describes(.|\n)*64 != 3"):
            save(chain(lambda self, x: self.l1(x), l1=linear(3, 2)), tmp_path / "m", [InputSpec([size, 64])])
    with pytest.raises(SaveError, match="not called yet"):
        save(lambda x: x, tmp_path / "m")
    def counted(x):                             # a file with the path to a class could not be read again
        Counts.calls += 1
        return x * Counts.calls
    with pytest.raises(SaveError, match="attributes of Counts cannot be saved"):
        save(counted, tmp_path / "m", [InputSpec([2, 3])])
    with pytest.raises(SaveError, match="a size"):
        save(lambda x: x * np.hanning(x.shape[0]).astype("f")[:, None], tmp_path / "m", [InputSpec([None, 3])])
    assert os.listdir(tmp_path) == []


def test_training_that_cannot_be_saved(tmp_path):
    """Inference is saved, and a warning says why training is not; calling it says so again."""
    def forward(self, x):
        if chainer.config.train:
            open(os.devnull).close()
        return self.l1(x)
    with pytest.warns(SaveWarning, match="for training: .*host"):
        save(chain(forward, l1=linear(4, 2)), tmp_path / "m", [InputSpec([None, 4])])
    loaded = load(tmp_path / "m")
    with pytest.raises(SignatureError, match="without train=True.*host"):
        loaded(array(2, 4))
    with chainer.using_config("train", False):
        assert loaded(array(2, 4)).shape == (2, 2)


def test_gradients_inside(tmp_path):
    """Without backprop there are none: that mode is not saved, and a call in it says why."""
    def penalty(self, x):
        x = chainer.Variable(x)
        g, = chainer.grad([F.sum(self.l1(x) ** 2)], [x], enable_double_backprop=True)
        return F.sum(g * g)
    model = chain(penalty, l1=linear(4, 2))
    save(model, tmp_path / "m", [InputSpec([None, 4])])
    loaded = load(tmp_path / "m")
    assert_same(run(loaded, loaded, (array(3, 4),)), run(model, model, (array(3, 4),)))
    with pytest.raises(SignatureError, match="without train=True, enable_backprop=False"), chainer.no_backprop_mode():
        loaded(array(3, 4))


def test_something_else_is_not_replaced(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "thesis.txt").write_text("all of it")
    with pytest.raises(SaveError, match="no saved model"):
        save(of_globals, tmp_path / "m", [InputSpec([2, 3])])
    save(of_globals, tmp_path / "n", [InputSpec([2, 3])])
    save(of_globals, tmp_path / "n", [InputSpec([2, 3])])
    assert sorted(os.listdir(tmp_path)) == ["m", "n"] and (tmp_path / "m" / "thesis.txt").exists()


@pytest.mark.parametrize("target, specs, message", [
    (chainer.Chain, [], "not a class\n  hint: give an object of the class: Chain"),
    ("model", [], "hint: it comes first: save"),
    (np.sum, [], "hint: for a function of a library's")])
def test_what_is_no_model(target, specs, message, tmp_path):
    with pytest.raises(SignatureError, match=re.escape(message)):
        save(target, tmp_path / "m", specs)


def test_another_number_of_specs(tmp_path):
    model = chain(lambda self, x, y: x + y)
    with pytest.raises(SignatureError, match="takes 2 arguments: x, y"):
        save(model, tmp_path / "m", [InputSpec([2])] * 3)
    with pytest.raises(SignatureError, match="has none for y"):
        save(model, tmp_path / "m", [InputSpec([2])])
    with pytest.raises(SaveError, match="hint: give a spec for each argument: x, y"):
        save(model, tmp_path / "m", [])


def test_calls_and_files_that_do_not_fit(tmp_path):
    save(lambda x: x + 1, tmp_path / "m", [InputSpec([2])])
    loaded = load(tmp_path / "m")
    with pytest.raises(SignatureError, match="hint: give arrays of the dtypes that it was saved for"):
        loaded(np.zeros(2))
    with pytest.raises(AttributeError, match="no attribute 'encode'; no other method was saved with it"):
        loaded.encode(np.zeros(2))
    (tmp_path / "m" / "manifest.json").write_text("{")
    with pytest.raises(LoadError, match=r"m.manifest.json is not JSON.*\n  hint: copy or save the model again"):
        load(tmp_path / "m")


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    def refuse(**options):
        raise PermissionError(13, "Permission denied", "a folder of another name")
    monkeypatch.setattr(files.tempfile, "mkdtemp", refuse)
    with pytest.raises(PermissionError, match="no model can be saved here: Permission denied: '.*/m'"):
        save(lambda x: x + 1, tmp_path / "m", [InputSpec([2])])
