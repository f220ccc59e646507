"""Products whose algorithms are measured (``chainer.config.autotune``): which one computes, launched and in graphs."""
import ctypes

import chainer
import numpy as np
import pytest
from cupy_double import on_device, on_double
from emulated_graphs import array, case, run

from dy2static import config, to_static
from dy2static.backends.registry import OF_LIBRARY
from dy2static.check_gpu import open_sizes
from dy2static.ir.op import OPS
from dy2static.native import drivers, emulated, launcher, measured, store
from dy2static.native.emulated import EmulatedDevice, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

cupy = chainer.backends.cuda.cupy


@pytest.fixture(autouse=True)
def measuring():
    with chainer.using_config("autotune", True):
        yield


def matmul(a, b):
    return OPS["matmul"](a, b, transa=False, transb=False)


def layer(x, w, b):
    y = matmul(x, w)
    return OPS["relu"](OPS["add"](y, OPS["broadcast_to"](b, shape=y.shape)))


def device_of(*times):
    """A device with these times: microseconds of cuBLAS's own algorithm, and of those of cublasLt; -1: it does not compute."""
    device = EmulatedDevice()
    device.state.offered = len(times) - 1
    for number, time in enumerate(times):
        device.state.times[number] = time
    return device


@pytest.mark.parametrize("times, algorithm", [((100, 90, 50, 99), 2), ((100, 98), 0), ((100, 96), 1), ((100, -1, 50), 2), ((100, 120), 0),
                                              ((100, -1), 0), ((5000, 4000, 3000), 2), ((100,), 0)])
def test_the_fastest_one_computes(times, algorithm):
    """Not where what it gains is hardly more than noise.  Long products are measured, too."""
    one, device = case(matmul, array(4, 6), array(6, 8)), device_of(*times)
    assert run(one, device) == "" and device.state.algorithm == algorithm


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_stacks(dtype):
    one, device = case(matmul, array(3, 4, 6, dtype=dtype), array(3, 6, 8, dtype=dtype)), device_of(100, 50)
    assert run(one, device) == "" and device.state.algorithm == 1
    assert device.state.compute == (70 if dtype == np.float64 else 68)


def test_sums_are_cut_into_parts_if_that_is_faster():
    """Only where they are long."""
    for inner, parts in ((64, 1), (128, 2), (1024, 4)):
        one, device = case(matmul, array(2, inner), array(inner, 4)), device_of(100, 90)
        assert run(one, device) == "" and (device.state.algorithm, device.state.parts) == (1, parts)


def test_without_autotune_cublas_chooses():
    one, device = case(matmul, array(4, 6), array(6, 8)), device_of(100, 50)
    with chainer.using_config("autotune", False):
        assert run(one, device) == "" and device.state.products == 1 and device.state.algorithm == 0


def test_it_is_measured_once_for_each_sort():
    """Another region has the same sort of product; other sizes, alignments and modes are other ones."""
    device = device_of(100, 50)
    assert run(case(matmul, array(4, 6), array(6, 8)), device) == ""
    before = device.state.products
    assert run(case(lambda a, b: OPS["exp"](matmul(a, b)), array(4, 6), array(6, 8)), device) == ""
    assert (device.state.products, device.state.algorithm) == (before + 1, 1)
    for change in (lambda: None, lambda: setattr(device, "is_rounded", True)):
        change()
        before = device.state.products
        assert run(case(matmul, array(4, 6), array(6, 8 - device.is_rounded)), device) == ""
        assert device.state.products > before + 1 if device.is_rounded else device.state.products == before + 1
    assert device.state.compute == 77


def test_algorithms_are_for_alignments():
    """The emulator refuses addresses that are less aligned than was said when the algorithm was chosen."""
    x, w = array(4, 6), array(6, 8)
    one, device = case(matmul, x, w), device_of(100, 50)
    assert run(one, device) == ""
    memory, out = np.zeros(64, np.float32), np.zeros((4, 8), np.float32)
    for k in (0, 1, 2, 3, 0):
        view = memory[k:k + x.size].reshape(x.shape)
        view[...] = x
        one.region.call(view, w, out)
        np.testing.assert_allclose(out, x @ w, rtol=1e-5)
        assert device.state.algorithm == 1


def test_they_are_part_of_graphs():
    """Recorded as they were measured, and not measured while they are recorded."""
    def network(x, v, w):
        return OPS["tanh"](matmul(OPS["tanh"](matmul(x, v)), w))
    arrays = array(4, 5), array(5, 6, seed=1), array(6, 3, seed=2)
    one, device = case(network, *arrays), device_of(100, 90, 50)
    assert run(one, device) == ""
    out, scratch, products = np.zeros((4, 3), np.float32), np.zeros(one.region.function.scratch, np.uint8), device.state.products
    for _ in range(4):
        device.state.algorithm = 0
        one.region.call(*arrays, out, scratch)
        assert device.state.algorithm == 2
        np.testing.assert_allclose(out, one.expected[0], rtol=1e-5)
    (only,) = one.region.runs
    assert only.region.counts.replayed >= 3 and only.region.counts.failures == 0
    assert device.state.products == products + 2 * 4


def test_products_of_sizes_that_only_the_run_knows_are_not_measured():
    """Fresh sizes may come in each call."""
    one, device = open_sizes.OpenCase("product", "float32"), device_of(100, 50)
    one.region.load(device, device.load(one.kernels))
    for sizes in ((5, 7), (6, 7), (5, 7)):
        assert not one.closed(sizes).difference(one.run(device, sizes))
    assert device.state.products == 3 and device.state.algorithm == 0


def test_nothing_is_measured_while_the_user_records():
    one, device = case(matmul, array(4, 6), array(6, 8)), device_of(100, 50)
    one.region.load(device, device.load(one.kernels))
    out, graph, stream = np.zeros((4, 8), np.float32), ctypes.c_void_p(), ctypes.c_void_p(0)
    emulated._call("cuStreamBeginCapture_v2", stream, 1)
    one.region.call(*one.operands, out)
    emulated._call("cuStreamEndCapture", stream, ctypes.byref(graph))
    emulated._call("cuGraphDestroy", graph)
    assert device.state.products == 0 and not out.any()
    one.region.call(*one.operands, out)
    assert device.state.algorithm == 1
    np.testing.assert_allclose(out, one.expected[0], rtol=1e-5)


@pytest.mark.parametrize("what", ["no events or graphs", "no recorder", "no workspace"])
def test_where_nothing_can_be_measured_cublas_chooses(what, monkeypatch):
    one, device = case(matmul, array(4, 6), array(6, 8)), device_of(100, 50)
    if what == "no events or graphs":
        device.state.graph_status = 2
    else:
        state = ctypes.addressof(device.state)
        sizes = (1 << 14, 0) if what == "no recorder" else (0, state)
        made = launcher.Launcher(ctypes.addressof(emulated._table()), state, state, *sizes)
        monkeypatch.setattr(device, "launcher", lambda: made)
    assert run(one, device) == "" and device.state.algorithm == 0


#: Microseconds: cuBLAS's own algorithm, and those of cublasLt; which one computes, and whether it also adds the bias.
FINISHED = {"the usual one": ((100, 50, 49), 1, True), "another one": ((100, 50, 20), 2, True),
            "a product and a kernel": ((20, 50, 40), 0, False), "only the second": ((100, -1, 50), 2, False)}


@pytest.mark.parametrize("name", FINISHED)
def test_with_bias_and_relu(name):
    times, algorithm, is_finished = FINISHED[name]
    one, device = case(layer, array(4, 6), array(6, 8), array(8, seed=3)), device_of(*times)
    assert run(one, device) == ""
    launched, finished = device.launched, device.state.finished
    out = np.zeros((4, 8), np.float32)
    one.region.call(*one.operands, out)
    np.testing.assert_allclose(out, one.expected[0], rtol=1e-5)
    assert device.state.algorithm == algorithm
    assert (device.launched - launched, device.state.finished - finished) == ((0, 1) if is_finished else (1, 0))


def test_nan_stays_nan():
    x, b = array(4, 6), array(8, seed=3)
    x[1], b[2] = np.nan, np.nan
    one, device = case(layer, x, array(6, 8), b), device_of(100, 50, 20)
    device.state.loses_nan = 1
    (found,) = one.run(device, device.load(one.kernels))
    np.testing.assert_allclose(found, one.expected[0], rtol=1e-5)
    assert device.state.finished == 0 and device.state.algorithm == 2


def product(x, w):
    return chainer.functions.tanh(chainer.functions.matmul(x, w))


@on_double
@pytest.mark.skipif(on_device(), reason="the device does not say which algorithms it takes")
def test_the_setting_is_read_in_each_call():
    device = OF_LIBRARY["cupy", True].device(0)
    device.state.offered, device.state.times[0], device.state.times[1] = 1, 100, 50
    x, w = cupy.array(array(4, 6)), cupy.array(array(6, 8))
    static, found = to_static(product, backend="c", strict=True), []
    try:
        for is_on in (False, True, False):
            with chainer.using_config("autotune", is_on):
                np.testing.assert_allclose(static(x, w).array.get(), np.tanh(array(4, 6) @ array(6, 8)), rtol=1e-5)
            found.append(device.state.algorithm)
    finally:
        device.state.times[0] = device.state.times[1] = 0
    assert found == [0, 1, 0]


def small(device, function=matmul):
    """Compute a product of (4, 6) and (6, 8) on a device, or a layer; gives how many products were computed for that, and by which algorithm."""
    arrays = [array(4, 6), array(6, 8), array(8, seed=3)][:2 if function is matmul else 3]
    before = device.products
    assert run(case(function, *arrays), device) == ""
    return device.products - before, device.state.algorithm


def of_process(*times, identity="some device"):
    """A device as another process has it, which finds what earlier ones have kept."""
    device = device_of(*times)
    device._identity = identity
    return device


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """An empty directory for what is kept, and a function that gives the tables in it."""
    monkeypatch.setattr(store, "_checked", {})
    with config.CACHE_DIR.set(str(tmp_path)):
        emulated._driver()
        yield lambda: sorted((tmp_path / "native").glob("*.measured"))


@pytest.mark.parametrize("function, times", [(matmul, (100, 50)), (layer, (100, 60, 50)), (layer, (20, 60, 50)), (matmul, (100, 120))])
def test_later_processes_do_not_measure_again(kept, function, times):
    """They compute with the algorithm that was the fastest; it is tried once (with NaN, if it has ReLU, which is not counted)."""
    measured, chosen = small(of_process(*times), function)
    assert measured > 5 and len(kept()) == 1
    times = (100,) * len(times)
    assert small(of_process(*times), function) == (2 if chosen and function is matmul else 1, chosen)
    assert small(of_process(*times, identity="another device"), function)[0] > 5 and len(kept()) == 2


def test_devices_without_a_name_keep_nothing(kept):
    assert small(device_of(100, 50))[0] > 5 and not kept()


def test_nothing_is_kept_if_nothing_is_to_be_kept(kept):
    with config.KEEP.set(0):
        assert small(of_process(100, 50))[0] > 5 and not kept()


def test_what_several_processes_measure_is_kept(kept):
    """Also where one has begun before the other one has kept anything."""
    first, second = of_process(100, 50), of_process(100, 50)
    assert first.launcher() and second.launcher()
    small(first)
    assert run(case(matmul, array(3, 6), array(6, 8)), second) == "" and second.state.algorithm == 1
    third = of_process(100, 100)
    assert small(third) == (2, 1)
    before = third.products
    assert run(case(matmul, array(3, 6), array(6, 8)), third) == "" and third.products - before == 2


@pytest.mark.parametrize("damage", [lambda content: content[:100], lambda content: b"", lambda content: content[:9] + b"x" + content[10:]])
def test_damaged_tables_count_as_empty(kept, damage):
    small(of_process(100, 50))
    (path,) = kept()
    path.write_bytes(damage(path.read_bytes()))
    assert small(of_process(100, 20, 10))[1] == 2
    assert small(of_process(100, 20, 100)) == (2, 2)


@pytest.mark.parametrize("times", [(100, -1, 90), (100, 90, -1)])
def test_algorithms_that_do_not_compute_any_more_are_measured_again(kept, times):
    small(of_process(100, *[10 if time < 0 else 100 for time in times[1:]]))
    found = small(of_process(*times))
    assert found[0] > 5 and found[1] == (2 if times[1] < 0 else 1)
    assert small(of_process(*times)) == (2, found[1])


def test_relu_that_loses_nan_is_not_taken_from_a_table(kept):
    assert small(of_process(100, 50), layer)[1] == 1
    device = of_process(100, 50)
    device.state.loses_nan = 1
    small(device, layer)
    assert device.state.finished == 0


def test_what_cannot_be_timed_is_not_kept(kept):
    device = of_process(100, 50)
    device.state.graph_status = 2
    assert small(device) == (1, 0) and not kept()


def test_a_table_is_bounded(kept, monkeypatch):
    """Those that were measured last stay."""
    monkeypatch.setattr(measured, "MOST_RECORDS", 2)
    device = of_process(100, 50)
    for rows in (2, 3, 4):
        assert run(case(matmul, array(rows, 6), array(6, 8)), device) == ""
    for rows, products in ((4, 2), (3, 2)):
        later = of_process(100, 50)
        assert run(case(matmul, array(rows, 6), array(6, 8)), later) == "" and later.products == products
    later = of_process(100, 50)
    assert run(case(matmul, array(2, 6), array(6, 8)), later) == "" and later.products > 5


class Driver:
    """A libcuda that says what it is asked about a device.  status: what its functions give."""

    def __init__(self, status=0):
        self._status = status

    def cuDeviceGet(self, place, number):
        place._obj.value = number
        return 0

    def cuDeviceGetName(self, place, size, device):
        place.value = f"Some GPU {device.value}".encode()
        return self._status

    def cuDeviceGetAttribute(self, place, attribute, device):
        place._obj.value = 132 if attribute == 16 else 0
        return 0

    def cuDriverGetVersion(self, place):
        place._obj.value = 13000
        return 0


class Library:
    @staticmethod
    def cublasLtGetVersion():
        return 130100


def test_what_tells_devices_apart(monkeypatch):
    monkeypatch.setattr(drivers, "_driver", Driver)
    monkeypatch.setattr(drivers, "products", lambda major, name: Library)
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    assert drivers.identity(1, 13) == "Some GPU 1, 132 multiprocessors, driver 13000, cublasLt 130100, TF32 0"
    monkeypatch.setattr(drivers, "_driver", lambda: Driver(status=1))
    assert drivers.identity(1, 13) == ""
    monkeypatch.setattr(drivers, "products", lambda major, name: None)
    assert drivers.identity(1, 13) == ""
