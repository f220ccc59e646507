"""Frozen Links: the same numbers, arrays that nobody can write, and what native code keeps."""
import copy
import gc
import pickle

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

import dy2static
from dy2static import freeze, to_static, unfreeze
from dy2static.native import frozen, team


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first = L.Convolution2D(3, 32, 3, pad=1)
            self.winograd = L.Convolution2D(32, 64, 3, pad=1)
            self.norm = L.BatchNormalization(64)
            self.single = L.Convolution2D(64, 40, 1)
            self.strided = L.Convolution2D(40, 64, 3, stride=2, pad=1)
            self.grouped = L.Convolution2D(64, 64, 3, pad=1, groups=4)
            self.depthwise = L.DepthwiseConvolution2D(64, 1, 3, pad=1)
            self.last = L.Convolution2D(64, 24, 1)
            self.out = L.Linear(24, 5)

    def forward(self, x):
        h = F.relu(self.first(x))
        h = F.relu(self.norm(self.winograd(h)))
        h = self.strided(F.relu(self.single(h)))
        h = F.relu(self.depthwise(self.grouped(h)))
        return self.out(F.mean(self.last(h), axis=(2, 3)))


@pytest.fixture
def net():
    chainer.global_config.train = True
    np.random.seed(0)
    found = to_static(Net(), backend="c")
    found.norm.avg_mean[...] = np.random.uniform(-1, 1, 64)
    yield found
    unfreeze(found)


def answer(net, x=None):
    x = np.random.RandomState(1).standard_normal((2, 3, 32, 32)).astype(np.float32) if x is None else x
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        return net(x).array


@pytest.mark.parametrize("threads", [1, 2])
def test_frozen_links_give_the_same_numbers(net, threads):
    before = team.wanted()
    team.set_threads(threads)
    try:
        expected = answer(net)
        assert freeze(net) is net
        assert frozen.kept_bytes() == 0
        np.testing.assert_array_equal(answer(net), expected)
        kept = frozen.kept_bytes()
        assert kept >= 16 * 32 * 64 * 4                     # the transformed filters of one layer alone
        np.testing.assert_array_equal(answer(net), expected)
        assert frozen.kept_bytes() == kept
        unfreeze(net)
        np.testing.assert_array_equal(answer(net), expected)
        assert frozen.kept_bytes() == 0
    finally:
        team.set_threads(before)


def test_replaced_parameters_count(net):
    freeze(net)
    answer(net)
    for link in (net.winograd, net.single):
        link.W.array = link.W.array * 2
    changed = answer(net)
    unfreeze(net)
    np.testing.assert_array_equal(changed, answer(net))


def test_a_new_freeze_forgets_the_old_weights(net):
    for factor in (1, 3, 5):
        unfreeze(net)
        net.winograd.W.array[...] *= factor
        net.single.W.array[...] *= factor
        expected = answer(net)
        freeze(net)
        np.testing.assert_array_equal(answer(net), expected)


def test_frozen_arrays_cannot_be_written(net):
    freeze(net)
    for array in (net.first.W.array, net.norm.avg_mean, net.first.W.array[0]):
        assert frozen.is_frozen(array)
        with pytest.raises(ValueError):
            array[...] = 0
        with pytest.raises(ValueError):
            array.flags.writeable = True
    optimizer = chainer.optimizers.SGD().setup(net)
    x = np.zeros((2, 3, 32, 32), np.float32)
    with pytest.raises(ValueError):
        optimizer.update(lambda: F.sum(net(x)))             # batch normalization changes its statistics
    with chainer.using_config("train", False), pytest.raises(ValueError):
        optimizer.update(lambda: F.sum(net(x)))


def test_gradients_with_respect_to_inputs(net):
    x = np.random.RandomState(2).standard_normal((2, 3, 32, 32)).astype(np.float32)

    def gradient():
        variable = chainer.Variable(x)
        with chainer.using_config("train", False):
            F.sum(net(variable)).backward()
        return variable.grad
    expected = gradient()
    freeze(net)
    np.testing.assert_array_equal(gradient(), expected)
    assert net.first.W.grad is not None


def test_copies_are_writeable(net):
    freeze(net)
    for other in (copy.deepcopy(net.first), pickle.loads(pickle.dumps(net.first)), net.first.copy("copy")):
        assert not frozen.is_frozen(other.W.array)
        other.W.array[...] = 0
    assert net.first.W.array.any()


def test_shared_arrays_stay_shared_and_kinds_of_arrays():
    one, two = L.Linear(3, 4), L.Linear(3, 4)
    two.W.array = one.W.array
    link = chainer.Sequential(one, two)
    link.add_persistent("empty", np.zeros((0, 3)))
    link.add_persistent("count", 3)
    link.add_persistent("turned", np.arange(6.0).reshape(2, 3).T)
    link.add_persistent("flag", np.array(True))
    freeze(freeze(link))
    assert one.W.array is two.W.array and link.count == 3 and link.empty.shape == (0, 3)
    np.testing.assert_array_equal(link.turned, np.arange(6.0).reshape(2, 3).T)
    assert link.flag.shape == () and frozen.is_frozen(link.flag) and not frozen.is_frozen(np.arange(3))
    unfreeze(link)
    assert one.W.array is two.W.array and one.W.array.flags.writeable


def test_memory_goes_with_its_arrays():
    gc.collect()                    # what tests before have left
    link = freeze(L.Linear(30, 40))
    known = len(frozen._memories)
    held = link.W.array[2]
    unfreeze(link)
    gc.collect()
    assert len(frozen._memories) == known
    del held
    gc.collect()
    assert len(frozen._memories) == known - 1


@pytest.mark.parametrize("link, message", [
    (L.Linear(None, 3), "parameter /W is not initialized"), (chainer.Sequential(L.Linear(2, 3), L.Linear(None, 3)), "parameter /1/W")])
def test_what_cannot_be_frozen(link, message):
    with pytest.raises(ValueError, match=message):
        dy2static.freeze(link)
    assert not any(frozen.is_frozen(p.array) for p in link.params())


def test_what_is_no_link_is_refused():
    for function in (freeze, dy2static.unfreeze):
        with pytest.raises(dy2static.errors.SignatureError, match="freeze and unfreeze take a Link, not int"):
            function(3)


def test_objects_are_refused():
    link = chainer.Link()
    link.add_persistent("names", np.array(["a", None], object))
    with pytest.raises(ValueError, match="persistent array /names holds objects"):
        freeze(link)


def test_several_threads_make_what_is_kept_at_the_same_time(net):
    import threading
    expected = answer(net)
    freeze(net)
    found = []
    threads = [threading.Thread(target=lambda: found.append(answer(net))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for result in found:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("n_in, n_out", [(128, 64), (40, 1100), (500, 300), (1100, 37)])
def test_products_of_many_rows(n_in, n_out):
    link = to_static(L.Linear(n_in, n_out), backend="c")
    x = np.random.RandomState(3).standard_normal((700, n_in)).astype(np.float32)
    expected = answer(link, x)
    freeze(link)
    np.testing.assert_array_equal(answer(link, x), expected)
    assert frozen.kept_bytes() >= 4 * n_in * n_out
    np.testing.assert_array_equal(answer(link, x), expected)
    unfreeze(link)
    assert frozen.kept_bytes() == 0


@pytest.mark.parametrize("rows, n_in, n_out", [(200, 300, 400), (64, 1024, 261), (50, 256, 500)])
def test_products_of_few_rows(rows, n_in, n_out):
    """Panels are kept where they stay in the first cache (AVX2), or from 97 rows on (AVX-512); in any case the numbers are the same."""
    link = to_static(L.Linear(n_in, n_out), backend="c")
    x = np.random.RandomState(3).standard_normal((rows, n_in)).astype(np.float32)
    expected = answer(link, x)
    freeze(link)
    for _ in range(2):
        np.testing.assert_array_equal(answer(link, x), expected)
    unfreeze(link)
    assert frozen.kept_bytes() == 0


@pytest.mark.parametrize("n_in, n_out, groups", [(500, 20, 1), (48, 6, 2)])
def test_transposed_filters_of_deconvolutions(n_in, n_out, groups):
    """Windows that overlap, on small images: one product of all taps."""
    link = to_static(L.Deconvolution2D(n_in, n_out, 4, 2, 1, groups=groups), backend="c")
    x = np.random.RandomState(3).standard_normal((3, n_in, 4, 5)).astype(np.float32)
    expected = answer(link, x)
    freeze(link)
    np.testing.assert_array_equal(answer(link, x), expected)
    assert frozen.kept_bytes() >= 4 * link.W.size
    np.testing.assert_array_equal(answer(link, x), expected)
    unfreeze(link)
    assert frozen.kept_bytes() == 0
