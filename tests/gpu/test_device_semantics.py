"""What differs between CuPy and NumPy is as in eager mode in programs for a GPU; each function is compared with its eager run."""
import copy
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from cupy_double import on_double
from numpy_on_double import array

from dy2static import FallbackWarning, to_static

cuda = chainer.backends.cuda
cupy = cuda.cupy


def sums_and_elements_are_arrays(x):
    s = x.array.sum()
    return s, s * 2, s / x.array.size, x.array[0, 0], -s, x.array.mean(axis=0) + s


def arrays_without_axes_decide_dtypes(x):
    return x.array * cupy.array(2.0), x.array * np.float32(2), x.array * 2, cupy.sum(x.array) * cupy.ones(3, "d")


def functions_of_both_libraries(x):
    xp = chainer.backend.get_array_module(x)
    return xp.exp(x.array), np.exp(x.array), xp.where(x.array > 0, 1, 0), xp.concatenate([x.array, xp.zeros((1, 3), "f")])


def made_by_the_library(x):
    return F.concat([x, chainer.Variable(x.xp.ones((2, 3), np.float32))], 0) + x.xp.arange(3, dtype="f")


def devices_and_modules(x):
    assert x.xp is cupy and x.device == chainer.get_device("@cupy:0") == chainer.backend.get_device_from_array(x.array)
    with chainer.using_device(x.device):
        return F.tanh(x), x.array.device.id


def attributes_of_arrays(x):
    try:
        address = x.array.ctypes.data
    except AttributeError:
        address = None
    on_the_host = x.array.get() if hasattr(x.array, "get") else x.array
    return on_the_host, address, hasattr(x.array, "device"), hasattr(x.array, "ctypes"), getattr(x.array, "itemset", None)


def indices(x):
    return x[x.xp.array([0, 2, 1])], x[1], F.select_item(x, x.xp.array([0, 1, 2, 1], "i")), F.embed_id(x.xp.array([1, 0], "i"), x)


def indices_out_of_range_wrap(x):
    return x.array[x.xp.array([0, 9])]


def branches(x):
    s = x.array.sum()
    if s > 0 and x.array[0, 0] < 1:
        return F.relu(x), s if s > 1 else -s
    return x, s


def loops(x):
    n = 0
    while abs(x.array).max() > 0.1:
        x, n = x / 2, n + 1
    return x, n


def reads(x):
    return x * float(x.array.sum()), x.array.sum().item(), bool(x.array[0, 0] > 0), int(x.array.argmax())


def sizes_by_contents(x):
    return x[:int(x.array.argmax()) % 3 + 1]


def written_in_place(x):
    a = x.array * 2
    a += 1
    a[0] = 0
    return x * a


def draws(x):
    y = F.gaussian(F.dropout(x, 0.5), x) + F.zoneout(x, x * 2, 0.5)
    return y + cupy.random.normal(0, 1, x.shape).astype("f") + x.xp.random.rand(4, 3, dtype="f")


def gradients_inside(x):
    g, = chainer.grad([F.sum(F.tanh(x))], [x], enable_double_backprop=True)
    return F.sum(g * g)


def without_gradients(x):
    with chainer.no_backprop_mode():
        return F.sigmoid(x)


def windows(x):
    return F.resize_images(F.max_pooling_2d(F.reshape(x, (1, 1, 4, 3)), 2), (3, 5))


def places_of_the_largest(x):
    y, places = F.max_pooling_2d(F.reshape(x, (1, 1, 4, 3)), 2, return_indices=True)
    return F.upsampling_2d(y * 2, places, 2, outsize=(4, 3)), places


def losses(x):
    t = x.xp.array([0, 1, 2, 1], "i")
    return F.softmax_cross_entropy(x, t), F.accuracy(x, t)


def read_as_an_array_of_the_host(x):
    a = x.array.get()
    return x * float(a.sum()), a, cupy.asnumpy(x.array), cuda.to_cpu(x.array) + 1, x.device.send(x.array)


def computed_on_the_host_in_between(x):
    a = x.array.get().sum(axis=0)
    return x * x.xp.asarray(a * 2), a


def sent_to_the_host_as_a_function(x):
    return F.copy(F.tanh(x), -1) * 2, F.copy(x, "@cupy:0")


def sent_to_the_gpu(x):
    return cuda.to_gpu(np.ones((4, 3), "f")) * x + x.device.send(np.arange(3, dtype="f"))


def sent_there_and_back(x):
    return F.sum(F.copy(F.exp(F.copy(x, "@numpy")), "@cupy:0") * x)


def without_a_lowering(x):
    p = chainer.distributions.Bernoulli(logit=x)
    return p.log_prob(x.xp.ones((4, 3), "f"))


def lists_that_grow_by_contents(x):
    kept = []
    for i in range(len(x)):
        if x.array[i].sum() > 0:
            kept.append(x[i] * 2)
    return F.stack(kept) if kept else x


def lists_that_grow_in_a_loop(x):
    rows = []
    while F.max(x).array > 0.3:
        rows.append(x[0])
        x = x * 0.5
    return F.stack(rows)


def printed(x):
    print(x.array.sum().shape)
    return x + 1


CAPTURED = [
    sums_and_elements_are_arrays, arrays_without_axes_decide_dtypes, functions_of_both_libraries, made_by_the_library,
    devices_and_modules, attributes_of_arrays, indices, branches, loops, reads, sizes_by_contents, written_in_place, draws, gradients_inside,
    without_gradients, windows, places_of_the_largest, losses, read_as_an_array_of_the_host, computed_on_the_host_in_between,
    sent_to_the_host_as_a_function, sent_to_the_gpu, sent_there_and_back, without_a_lowering,
    lists_that_grow_by_contents, lists_that_grow_in_a_loop, printed]


def mixed_with_the_host(x):
    return x + np.ones((4, 3), "f")


def sent_as_a_variable(x):
    y = F.exp(x)
    y.to_cpu()
    return y * 2


def converted_by_numpy(x):
    kept = cupy.asarray(x.array), cupy.array([x.array[0], x.array[1]])
    return kept, np.array([x.array[0], x.array[1]])


def converted_by_numpy_at_once(x):
    return np.ascontiguousarray(x.array) * 2


LEFT_TO_EAGER = [mixed_with_the_host, sent_as_a_variable, indices_out_of_range_wrap, converted_by_numpy, converted_by_numpy_at_once]


def told(item):
    """What somebody can see of a result."""
    if isinstance(item, (tuple, list)):
        return [told(part) for part in item]
    if isinstance(item, chainer.Variable):
        return ["Variable", item.requires_grad, *told([item.array])]
    if isinstance(item, (cupy.ndarray, np.ndarray)):
        values = item.get() if isinstance(item, cupy.ndarray) else item
        return [type(item).__module__, item.dtype.name, item.shape, *values.ravel().tolist()]
    return [type(item).__name__, item]


def nearly(item):
    """The same, for what may differ from it by rounding."""
    if isinstance(item, list):
        return [nearly(part) for part in item]
    return pytest.approx(item, rel=1e-5, abs=1e-6) if isinstance(item, float) else item


def run(function, *args):
    """What a call gives, or raises, and its gradient."""
    cupy.random.seed(0)
    x = chainer.Parameter(array(4, 3))
    try:
        result = function(x, *args)
    except Exception as error:
        return [type(error).__name__, str(error)]
    first = result[0] if isinstance(result, tuple) else result
    if isinstance(first, chainer.Variable) and first.requires_grad:
        F.sum(first).backward()
    return told([result, x.grad])


def compare(function, *args):
    for link in args:
        link.to_device("@cupy:0")
    states = [copy.deepcopy(args) for _ in range(3)]
    static = to_static(function)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        wanted, *results = [run(f, *state) for f, state in zip((function, static, static), states)]
    assert results == [nearly(wanted)] * 2
    for name in [name for link in args for name in link._persistent]:
        eager, *others = [cuda.to_cpu(getattr(link, name)) for state in states for link in state]
        np.testing.assert_allclose(others, [eager] * 2, rtol=1e-5)
    return static, [str(w.message) for w in found if issubclass(w.category, FallbackWarning)]


@pytest.mark.parametrize("number", range(len(CAPTURED)), ids=lambda number: CAPTURED[number].__name__)
@on_double
def test_captured(number):
    static, warned = compare(CAPTURED[number])
    assert not warned and static.stats()["programs"] == 1


@pytest.mark.parametrize("number", range(len(LEFT_TO_EAGER)), ids=lambda number: LEFT_TO_EAGER[number].__name__)
@on_double
def test_left_to_eager_mode_with_a_warning(number):
    _, warned = compare(LEFT_TO_EAGER[number])
    assert warned


@pytest.mark.parametrize("number", range(4))
@on_double
def test_links(number):
    link, reshaped = [(L.BatchNormalization(3), None), (L.LayerNormalization(3), None), (L.Convolution2D(1, 2, 2), (1, 1, 4, 3)),
                      (L.StatelessLSTM(3, 2), None)][number]

    def function(x, link):
        if reshaped is not None:
            return link(F.reshape(x, reshaped))
        return link(None, None, x) if isinstance(link, L.StatelessLSTM) else link(x)
    static, warned = compare(function, link)
    assert not warned and static.stats()["programs"] == 1


@pytest.mark.stand_in("it has two devices that cannot reach each other")
@on_double
def test_calls_of_cupy_need_the_current_device():
    static = to_static(lambda x: x * 2)
    function = to_static(lambda x: F.tanh(x), strict=True)
    a = array(2, 3)
    assert static(a).device.id == 0 and static.stats()["programs"] == 1
    with cupy.cuda.Device(1):
        b = array(2, 3)
        assert static(b).device.id == 1 and static.stats()["programs"] == 2
        assert function(a).array.device.id == 0 and function(b).array.device.id == 1        # Chainer makes the device current itself
        with pytest.raises(ValueError, match="current"), pytest.warns(FallbackWarning, match="the current device is another one"):
            static(a)
    assert static(a).device.id == 0 and static.stats()["captures"] == 2


@pytest.mark.parametrize("backend", ["numpy", "c"])
@on_double
def test_maximum_pooling_leaves_nan_out(backend):
    """As Chainer's CUDA kernel does, also in the gradient; on the host NaN stays."""
    x = np.random.RandomState(0).rand(2, 3, 6, 6).astype("f")
    x[0, 0, :2, :2], x[1, 2, 3, 3], x[0, 1, 0, 0] = np.nan, np.nan, np.nan

    def f(x):
        return F.max_pooling_2d(x, 2)
    found = []
    for function in (f, to_static(f, backend=backend, strict=True)):
        given = chainer.Variable(cupy.array(x))
        y = function(given)
        F.sum(y[:, 1:] * 2).backward()                      # the first channel has a window of nothing but NaN
        found.append((y.array.get(), given.grad.get()))
    assert np.isneginf(found[0][0][0, 0, 0, 0]) and not np.isnan(found[0][0]).any()
    for eager, static in zip(*found):
        np.testing.assert_array_equal(eager, static)
