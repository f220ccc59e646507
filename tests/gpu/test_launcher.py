"""The launcher: regions run in C, through the table of the emulated driver."""
import contextlib
import sys
import types

import chainer
import numpy as np
import pytest
from emulated_graphs import array, case, run

from dy2static import FallbackWarning
from dy2static.backends.cuda.launches import launching
from dy2static.backends.cuda.program.steps import Copy, Launch, Product
from dy2static.check_gpu.samples import kernels_of
from dy2static.errors import InternalError
from dy2static.ir.op import OPS
from dy2static.native import announce, compiler, drivers, launcher
from dy2static.native.device import CupyDevice
from dy2static.native.device_kernels import Kernel
from dy2static.native.emulated import EmulatedDevice, EmulationError, missing
from dy2static.native.launcher import Failure, Place

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


def case_of(function, *shapes, dtype="float32"):
    """A case of a function, with random operands of these shapes."""
    return case(function, *[array(*shape, dtype=dtype) for shape in shapes])


def matmul(a, b, transa=False, transb=False):
    return OPS["matmul"](a, b, transa=transa, transb=transb)


def transposed(x, *axes):
    return OPS["transpose"](x, axes=axes)


def sliced(x, *parts):
    return OPS["getitem"](x, index=tuple([slice(*part) for part in parts]))


#: Functions, the shapes of their operands, how many products, and how many copies and kernels there are besides.
PRODUCTS = {
    "plain": (lambda a, b: matmul(a, b), ((4, 3), (3, 5)), 1, 0),
    "turned": (lambda a, b: matmul(a, b, True, True), ((3, 4), (5, 3)), 1, 0),
    "views": (lambda a, b: matmul(transposed(a, 1, 0), transposed(b, 1, 0)), ((3, 4), (5, 3)), 1, 0),
    "one row": (lambda a, b: matmul(a, b), ((1, 3), (3, 5)), 1, 0),
    "one column": (lambda a, b: matmul(a, b), ((4, 3), (3, 1)), 1, 0),
    "one in between": (lambda a, b: matmul(a, b, transb=True), ((4, 1), (5, 1)), 1, 0),
    "a stack": (lambda a, b: matmul(a, b, transa=True), ((6, 3, 4), (6, 3, 5)), 1, 0),
    "stacks of two axes": (lambda a, b: matmul(a, b), ((2, 3, 4, 3), (2, 3, 3, 5)), 1, 0),
    "heads": (lambda a, b: matmul(transposed(a, 0, 2, 1, 3), transposed(b, 0, 2, 3, 1)), ((2, 5, 3, 4), (2, 5, 3, 4)), 1, 2),
    "chosen by steps": (lambda a, b: matmul(sliced(a, (0, 6, 2), (0, 3, 1)), b), ((6, 3), (3, 5)), 1, 0),
    "columns by steps": (lambda a, b: matmul(sliced(a, (0, 4, 1), (0, 6, 2)), b), ((4, 6), (3, 5)), 1, 1),
    "one matrix for all": (lambda a, b: matmul(a, OPS["broadcast_to"](b, shape=(6, 3, 5))), ((6, 4, 3), (3, 5)), 1, 0),
    "one matrix for all, turned": (lambda a, b: matmul(OPS["broadcast_to"](a, shape=(6, 3, 4)), b, True), ((3, 4), (6, 3, 5)), 1, 0),
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, dtype):
    """Operands that cuBLAS can read are read where they are; the others are copied."""
    function, shapes, products, others = PRODUCTS[name]
    one = case_of(function, *shapes, dtype=dtype)
    steps = one.region.function.steps
    assert (sum(isinstance(step, Product) for step in steps), sum(not isinstance(step, Product) for step in steps)) == (products, others)
    device = EmulatedDevice()
    assert run(one, device) == "" and device.products == products


def test_a_stack_with_one_right_operand_is_one_product():
    one = case_of(*[PRODUCTS["one matrix for all"][0], *PRODUCTS["one matrix for all"][1]])
    (step,) = one.region.function.steps
    kind, _, words = launching.words(step, EmulatedDevice(), {})
    assert kind == "product" and words[4] == 6 * 4 and words[-1] == 1


def mixed(a, b):
    """Kernels, products, copies of whole arrays, and zeros."""
    y = OPS["tanh"](matmul(a, b))
    z = OPS["concat"](y, y, axis=0)
    return OPS["scatter_slice"](OPS["exp"](z), shape=(9, 6), index=(slice(0, 8), slice(0, 6, 2)))


def test_a_region_is_one_run():
    one, device = case_of(mixed, (4, 5), (5, 3)), EmulatedDevice()
    kinds = [type(step).__name__ for step in one.region.function.steps]
    assert kinds.count("Product") == kinds.count("Clear") == kinds.count("Copy") == 1
    assert run(one, device) == "" and len(one.region.runs) == 1


def test_without_a_compiler_python_launches(monkeypatch):
    def nothing():
        raise compiler.NoCompiler("there is no C compiler")
    monkeypatch.setattr(launcher, "start", nothing)
    announce.forget()
    one, device = case_of(mixed, (4, 5), (5, 3)), EmulatedDevice()
    launcher.begin()
    with pytest.warns(FallbackWarning, match="launched from Python, which takes longer: .*no C compiler"):
        assert run(one, device) == ""
    assert len(one.region.runs) == len(one.region.function.steps) and device.products == 1


def test_without_cublas_products_are_calls(monkeypatch):
    """The steps before and after a product stay runs in C."""
    def function(a, b):
        return OPS["exp"](matmul(OPS["tanh"](a), b))
    one, device = case_of(function, (4, 5), (5, 3)), EmulatedDevice()
    monkeypatch.setattr(device.launcher(), "kinds", frozenset(launcher.KINDS) - {"product"})
    assert run(one, device) == "" and device.products == 1 and device.state.products == 0
    assert len(one.region.runs) == 3


def test_what_a_kernel_does_wrong_is_said_with_its_name():
    one, device = case_of(lambda a: OPS["exp"](a), (4,)), EmulatedDevice()
    name = one.kernels[0].name
    text = f'extern "C" __global__ void {name}(float *a, float *b) {{ if (threadIdx.x) __syncthreads(); }}\n'
    with pytest.raises(EmulationError, match="a barrier that not all threads reach") as found:
        one.run(device, device.load([Kernel(name, text)]))
    assert str(found.value.__cause__) == f"step 0 of a region on a GPU, {name}: driver reports error 719"


def test_products_are_told_the_stream_and_its_memory_when_these_change():
    one, device = case_of(matmul, (4, 5), (5, 3)), EmulatedDevice()
    other = np.zeros(64, np.uint8)
    for place in (Place(1, other.ctypes.data), Place(1, other.ctypes.data), Place(2, other.ctypes.data + 8)):
        device.place = lambda products, place=place: place
        assert run(one, device) == ""
        assert (device.state.stream, device.state.memory) == place[:2]


@pytest.mark.parametrize("dtype, modes, compute", [("float32", 0, 68), ("float32", 2 << 8, 69), ("float32", 7 << 8, 77), ("float64", 0, 70),
                                                   ("float64", 7 << 8, 70), ("float64", 2 << 16, 71), ("float32", 2 << 16, 68)])
def test_the_precision_of_products_is_what_cupy_is_set_to(dtype, modes, compute):
    one, device = case_of(matmul, (4, 5), (5, 3), dtype=dtype), EmulatedDevice()
    here = device.place(True)
    device.place = lambda products: here._replace(modes=modes)
    assert run(one, device) == "" and device.state.compute == compute


def test_wrong_arguments_are_a_mistake_of_ours():
    with pytest.raises(InternalError, match="does not take 3 arguments of"):
        EmulatedDevice().launcher().launch(1, 2, "x")


def test_operands_are_addresses_arrays_or_packed():
    """A region takes arrays themselves.  It launches nothing if one is not contiguous, and then copies are made."""
    one, device = case_of(lambda x, v: OPS["tanh"](OPS["matmul"](x, v)), (4, 5), (5, 3)), EmulatedDevice()
    one.region.load(device, device.load(kernels_of([one])))
    (x, v), out, scratch = one.operands, np.zeros((4, 3), np.float32), np.zeros(one.region.scratch + 16, np.uint8)
    (inner,), launch, pack = one.region.runs, device.launcher().launch, device.launcher().pack
    memory = [scratch] if one.region.scratch else []
    packed = pack(x, v)
    assert packed == np.array([x.ctypes.data, v.ctypes.data], np.int64).tobytes()
    for operands in ([x, v, out], [packed, out], [x.ctypes.data, pack(v, out)]):
        out[...] = 0
        assert inner.launched([*operands, *memory])
        np.testing.assert_allclose(out, np.tanh(x @ v), rtol=1e-5)
    strided = np.zeros((4, 10), np.float32)[:, ::2]
    strided[...] = 2 * x
    assert pack(strided) is None and not inner.launched([strided, v, out, *memory])
    one.region.call(strided, v, out, *memory)
    np.testing.assert_allclose(out, np.tanh(2 * x @ v), rtol=1e-5)
    assert inner.region(device.place(True), ["x", v, out, *memory]) == launcher.STRIDED
    with pytest.raises(InternalError, match="does not take"):
        launch(inner.region._handle, *device.place(True), packed, packed, packed)


def test_large_copies_are_no_kernels():
    """Small arrays, and those that do not stand side by side, are copied by one kernel."""
    for shapes, axis, steps in ((((512, 512), (513, 512)), 0, [Copy, Copy]), (((4, 5), (513, 5)), 0, [Launch]),
                                (((4, 5), (4, 2)), 1, [Launch]), (((4, 512), (513, 512)), 0, [Copy, Copy])):
        one = case_of(lambda a, b, axis=axis: OPS["concat"](a, b, axis=axis), *shapes)
        assert [type(step) for step in one.region.function.steps] == steps


# A device of CuPy -----------------------------------------------------------------------------------------------------


class Error(Exception):
    def __init__(self, status):
        self.status = status


@pytest.fixture
def cupy(monkeypatch):
    """CuPy as far as `CupyDevice` uses it for runs."""
    device = contextlib.nullcontext()
    device.compute_capability = "90"
    found = types.SimpleNamespace(stream=0, compute={"e": 1, "f": 7, "d": 2}, made=[])
    def empty(nbytes, dtype):
        found.made.append(types.SimpleNamespace(data=types.SimpleNamespace(ptr=1000 + len(found.made)), nbytes=nbytes))
        return found.made[-1]
    found.empty = empty
    found._core = types.SimpleNamespace(get_compute_type=lambda dtype: found.compute[dtype.char])
    found.cuda = types.SimpleNamespace(
        Device=lambda number: device, get_current_stream=lambda: types.SimpleNamespace(ptr=found.stream),
        runtime=types.SimpleNamespace(runtimeGetVersion=lambda: 13000), driver=types.SimpleNamespace(CUDADriverError=Error),
        cublas=types.SimpleNamespace(CUBLASError=type("CUBLASError", (Error,), {})))
    monkeypatch.setitem(sys.modules, "cupy", found)
    return found


def test_places_on_a_gpu(cupy):
    """Each stream has its memory for products, which is made once; the oldest goes."""
    device = CupyDevice()
    assert device.place(False) == Place(0) and not cupy.made
    assert device.place(True) == device.place(True) == Place(0, 1000, 1 | 7 << 8 | 2 << 16 | launcher.FREE)
    with chainer.using_config("cudnn_deterministic", True):
        assert device.place(True) == Place(0, 1000, 1 | 7 << 8 | 2 << 16)
    assert cupy.made[0].nbytes == 32 << 20
    for cupy.stream in (*range(10, 19), 18):
        device.place(True)
    assert len(cupy.made) == 10 and len(device._workspaces) == 8 and 0 not in device._workspaces


def test_errors_are_those_of_cupy(cupy):
    device = CupyDevice()
    assert type(device.error(Failure("driver", 719, 2))) is Error and device.error(Failure("driver", 719, 2)).status == 719
    assert isinstance(device.error(Failure("cublas", 13, 0)), cupy.cuda.cublas.CUBLASError)


def test_without_a_driver_cupy_launches(cupy, monkeypatch):
    def nothing():
        raise drivers.NoDriver("the driver cannot be called: no libcuda.so.1")
    monkeypatch.setattr(drivers, "_driver", nothing)
    drivers.table.cache_clear()
    announce.forget()
    with pytest.warns(FallbackWarning, match="launched from Python.*no libcuda.so.1"):
        assert CupyDevice().launcher() is None


def test_the_table_is_filled_by_name(monkeypatch):
    """Of libraries that have some of the functions; what they lack is null."""
    kernel = launcher.functions().index("cuLaunchKernel")
    have = types.SimpleNamespace(cuLaunchKernel=123)
    monkeypatch.setattr(drivers, "_driver", lambda: have)
    monkeypatch.setattr(drivers, "products", lambda major, name="cublas": None)
    monkeypatch.setattr(drivers.ctypes, "cast", lambda function, kind: types.SimpleNamespace(value=function))
    drivers.table.cache_clear()
    try:
        table = drivers.table(13)
    finally:
        drivers.table.cache_clear()
    assert [k for k, address in enumerate(table) if address] == [kernel] and table[kernel] == 123
    assert drivers.workspace_of((9, 0)) == 32 << 20 and drivers.workspace_of((8, 6)) == 4 << 20
