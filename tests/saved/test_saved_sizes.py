"""Saved and exported models of many free sizes, and what is said of those that cannot be."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import InputSpec, SaveError, load, save, to_static
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
    with pytest.raises(SignatureError, match=r"not saved: .* division by zero \(.*test_saved_sizes.py:19\)\n  hint: leave the call"):
        loaded(np.zeros((0, 2), "f"), y)
    with pytest.raises(SignatureError, match="hint: give arrays of the dtypes that it was saved for"):
        loaded(x.astype("d"), y)
    with pytest.raises(SignatureError, match="hint: save the model with an input_spec"):
        loaded(x[0], y)
    assert {size.least for size in exported(centred, SPECS).sizes.values()} == {0}


class Classifier(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv, self.norm, self.out = L.Convolution2D(2, 3, 3, pad=1), L.BatchNormalization(3), L.Linear(3, 4)

    def forward(self, x):
        return self.out(F.sum(F.relu(self.norm(self.conv(x))), axis=(2, 3)))


def joined(x, y):
    """Where rows of one may be there and none of the other."""
    return F.concat([x, y], axis=0), F.matmul(x, y, transb=True)


def looped(x):
    """With a loop over rows, and one on what they hold."""
    h = F.sum(x * 0, axis=0)
    for row in x:
        h = h + row
    while float(F.sum(h).array) > 1:
        h = h * 0.5
    return h, F.softmax(x)


@pytest.mark.parametrize("target, specs, shapes", [
    (Classifier(), [[None, 2, 5, 5]], [((0, 2, 5, 5),), ((1, 2, 5, 5),), ((3, 2, 5, 5),)]),
    (joined, [["m", 3], ["n", 3]], [((m, 3), (n, 3)) for m in (0, 1, 4) for n in (0, 1, 4)]),
    (looped, [[None, 3]], [((0, 3),), ((1, 3),), ((5, 3),)])], ids=["network", "mixed", "loops"])
def test_arrays_without_elements(target, specs, shapes, tmp_path):
    with chainer.using_config("train", False):
        save(target, tmp_path / "m", [InputSpec(spec) for spec in specs])
        loaded = load(tmp_path / "m")
        for given in shapes:
            arrays = [np.random.RandomState(k).rand(*shape).astype("f") for k, shape in enumerate(given)]
            results = []
            for function in (target, loaded):
                variables = [chainer.Variable(array) for array in arrays]
                found = function(*variables)
                found = found if isinstance(found, tuple) else (found,)
                sum([F.sum(y * y) for y in found]).backward()
                results.append([y.array for y in found] + [x.grad for x in variables])
            for wanted, found in zip(*results):
                assert found.shape == wanted.shape
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_what_is_saved_for_no_rows_only_is_refused(tmp_path):
    """A way out for no rows is not a model."""
    def shown(x):
        return x if len(x) == 0 else F.sum(x) * len(open(__file__).readline())
    with pytest.raises(SaveError, match="open"):
        save(shown, tmp_path / "m", [InputSpec([None, 2])])


def test_rows_without_elements_in_native_code():
    """Of no elements NumPy has no maximum: it says so, and no warning speaks of a mistake."""
    compiled = to_static(lambda x: F.softmax(x, axis=1), backend="c", strict=True)
    for shape in ((2, 0), (0, 3)):
        if shape[1]:
            assert compiled(np.zeros(shape, "f")).shape == shape
        else:
            with pytest.raises(ValueError, match="zero-size array to reduction operation maximum"):
                compiled(np.zeros(shape, "f"))


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
