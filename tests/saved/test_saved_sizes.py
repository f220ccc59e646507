"""Saved and exported models of many free sizes, and what is said of those that cannot be."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import InputSpec, SaveError, load, save
from dy2static.errors import ExportError, SignatureError
from dy2static.export.captured import exported
from dy2static.saved import subject
from dy2static.saved.subject import TooSmall

SPECS = [InputSpec([None, None]), InputSpec([None, None])]


def centred(x, y):
    """Of two arrays with sizes of their own."""
    return x - x.mean(0), F.sum(F.relu(y), axis=1, keepdims=True)


def test_a_batch_of_one_where_many_sizes_are_free(tmp_path):
    save(centred, tmp_path / "m", SPECS)
    loaded = load(tmp_path / "m")
    for shapes in (((4, 2), (3, 5)), ((1, 2), (1, 5)), ((4, 1), (3, 1)), ((1, 1), (1, 1))):
        x, y = [np.random.RandomState(k).rand(*shape).astype("f") for k, shape in enumerate(shapes)]
        for found, wanted in zip(loaded(x, y), centred(x, y)):
            np.testing.assert_allclose(getattr(found, "array", found), getattr(wanted, "array", wanted), rtol=1e-6)
    with pytest.raises(SignatureError, match="hint: free sizes of a saved model are one or more"):
        loaded(np.zeros((0, 2), "f"), y)
    with pytest.raises(SignatureError, match="hint: save the model with an input_spec"):
        loaded(x.astype("d"), y)
    assert {size.least for size in exported(centred, SPECS).sizes.values()} == {0}


def test_arrays_that_are_tried_fit_into_memory(monkeypatch):
    """Here each size fails, so that larger ones are tried: of nine axes, that would be gigabytes."""
    largest = []

    def refused(specs, form, sharing, sizes):
        largest.append(max(64 * np.prod([sizes[sharing[k, axis]] for axis in (0, 2, 3)]) for k in range(3)))
        raise TooSmall("no size will do")
    monkeypatch.setattr(subject, "examples", refused)
    with pytest.raises(ExportError, match="no size will do"):
        exported(lambda x, y, z: x, [InputSpec([None, 64, None, None]) for _ in range(3)])
    assert max(largest) < 1 << 27


def decoded(x, past):
    """Attention of one step, in which sizes are those of the past and one more."""
    keys = F.concat([past, x], axis=1)
    scores = F.matmul(x, keys, transb=True)
    seen = np.arange(keys.shape[1]) > 0
    scores = F.where(np.broadcast_to(seen, scores.shape), scores, np.full(scores.shape, -9, "f"))
    return F.matmul(F.softmax(scores, axis=2), keys), keys


def test_sizes_of_a_cache_that_grows(tmp_path):
    save(decoded, tmp_path / "m", [InputSpec(["b", 1, 4]), InputSpec(["b", "t", 4])])
    loaded = load(tmp_path / "m")
    for n, length in ((2, 5), (3, 2), (1, 4)):
        x, past = [np.random.RandomState(n).rand(n, count, 4).astype("f") for count in (1, length)]
        for found, wanted in zip(loaded(x, past), decoded(x, past)):
            np.testing.assert_allclose(found.array, wanted.array, rtol=1e-5)


@pytest.mark.parametrize("kind", [np.asarray, chainer.Variable])
def test_parts_of_an_array_of_any_length(kind, tmp_path):
    def through_time(xs):
        h = 0
        for x in F.separate(xs, axis=1):
            h = F.tanh(h * 0.5 + x)
        return h
    save(through_time, tmp_path / "m", [InputSpec([2, None])])
    loaded = load(tmp_path / "m")
    for length in (2, 5, 1):
        xs = np.random.RandomState(length).rand(2, length).astype("f")
        np.testing.assert_allclose(loaded(kind(xs)).array, through_time(xs).array, rtol=1e-6)


def test_which_sizes_have_to_be_equal_is_said(tmp_path):
    specs = [InputSpec([None, 2]), InputSpec([None, 2]), InputSpec([3])]
    save(lambda x, y, z: F.sum(x * y) + F.sum(z), tmp_path / "m", specs)
    x, z = np.ones((4, 2), "f"), np.ones(3, "f")
    with pytest.raises(SignatureError, match="where axis 0 of argument 2 has the size of axis 0 of argument 1"):
        load(tmp_path / "m")(x, x[:3], z)


def test_what_cannot_be_saved_is_said_rather_than_what_arrays_lack(tmp_path):
    """Arguments are tried as arrays, too, which have no ``array``."""
    def opened(x):
        return x * len(open(str(x.array.shape)).read())
    with pytest.raises(SaveError, match="open"):
        save(opened, tmp_path / "m", [InputSpec([2, 3])])
