"""Calls of all functions and links of Chainer on a device, compiled and in eager mode."""
import functools
import types

import call_matrix
import chainer
import function_cases
import link_matrix
import lowering_cases
import numpy as np
import pytest
from against_eager import floats_in
from cupy_double import on_double, tolerance
from models_on_double import numbers, sent

from dy2static import to_static

pytestmark = pytest.mark.filterwarnings("ignore")

cupy = chainer.backends.cuda.cupy
to_cpu = chainer.backends.cuda.to_cpu


@functools.lru_cache(maxsize=None)
def send_tables():
    """Let the functions of the tables find CuPy where they say ``np``, and their arrays on the device."""
    def found(value):
        return cupy if value is np else sent(value)
    for package in (lowering_cases, function_cases):
        for module in package._MODULES:
            vars(module).update({name: found(value) for name, value in vars(module).items()})
    for row in call_matrix.ROWS:
        if isinstance(row.function, types.FunctionType):
            row.function.__defaults__ = row.function.__defaults__ and tuple(map(found, row.function.__defaults__))
            for cell in row.function.__closure__ or ():
                cell.cell_contents = found(cell.cell_contents)


#: Beginnings of names of rows that are not compared.  Chainer's CUDA kernels do not look where labels or images are out of range, or
#: windows are nothing but padding: they read whatever is there, or write to it.  Maximum pooling of NaN, and the inverses of no
#: matrices (Chainer's CUDA code raises ValueError), are limits (docs/gpu.md).
NOT_COMPARED = ("roi_", "softmax_cross_entropy soft ignored", "max_pooling_3d", "spatial_pyramid_pooling_2d 3", "max_pooling_2d of NaN",
                "batch_inv (0")


#: Chainer's CUDA kernels of these cannot be compiled for float16, or refuse its float32 weights: an error in eager mode.
ONLY_COMPILED_IN_HALF = ("negative_sampling", "softmax_cross_entropy weighted images")

#: Chainer's CUDA kernels of these compute in float32, also in float64 (docs/gpu.md).
SINGLE = ("upsampling_2d", "local_response_normalization", "negative_sampling")


def is_compared(case, dtype):
    """Whether a row of the table of calls is compared."""
    name = str(case)
    return not name.startswith(NOT_COMPARED) and "'ignore_label': 2" not in name and not (
        dtype == "e" and name.startswith(ONLY_COMPILED_IN_HALF))


class OnDevice(call_matrix.Call):
    """A call whose arrays are on a device."""

    def sent(self, array):
        return cupy.asarray(array)

    def seed(self):
        cupy.random.seed(3)

    def drawn(self):
        return [cupy.random.random_sample(2)]

    def of_host(self):
        """The same, with its arrays on the host; and the libraries of the arrays."""
        self.places = [[type(a).__module__ for a in found] for found in self.found]
        self.found = [[to_cpu(a) for a in found] for found in self.found]
        self.after = None if self.after is None else [to_cpu(a) for a in self.after]
        return self


def check_call(number, backend, dtype):
    """Compare a row of the table of calls, with other contents and strides in the second call; gives that in eager mode."""
    send_tables()
    case = call_matrix.ROWS[number]
    static = to_static(case.function, backend=backend)
    for seed, strided in ((0, False), (1, True)):
        eager = OnDevice(case.function, case, dtype, seed, strided).of_host()
        compiled = OnDevice(static, case, dtype, seed, strided).of_host()
        least = np.dtype("f" if dtype == "d" and str(case).startswith(SINGLE) else dtype).name
        call_matrix.compare(eager, compiled, tolerance(call_matrix.TOLERANCE[least]))
        assert eager.places == compiled.places, "the arrays are on other devices"
    return eager


def check_calls(part, backend, dtype):
    """Compare the rows of a part of the table of calls; all that differ are named."""
    problems = []
    for number in range(part, len(call_matrix.ROWS), PARTS):
        case = call_matrix.ROWS[number]
        try:
            if is_compared(case, dtype) and dtype in case.dtypes:
                check_call(number, backend, dtype)
        except Exception as error:
            problems.append(f"row {number}, {case}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    assert not problems, "\n".join(problems)


#: In how many tests the table of calls is compared.
PARTS = 80


@pytest.mark.gpu
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("dtype", ["e", "f", "d"])
@on_double
def test_functions_as_calls_of_cupy(part, dtype):
    check_calls(part, "numpy", dtype)


@pytest.mark.gpu
@pytest.mark.parametrize("part", range(PARTS))
@on_double
def test_functions_as_kernels(part):
    check_calls(part, "c", "f")


def on_device(item):
    """The arguments of a call, with their arrays and Variables on the device."""
    if isinstance(item, chainer.Variable):
        item.to_device("@cupy:0")
        return item
    return type(item)(map(on_device, item)) if type(item) in (tuple, list) else sent(item)


def trained(row, link, function):
    """All arrays that calls of a link leave, or the exception that ends them: results, gradients, and its state after each update."""
    optimizer, found = chainer.optimizers.MomentumSGD(0.01).setup(link), []
    link.cleargrads()
    for seed in range(4):
        args, kwargs = link_matrix.arguments(row, seed)
        args = on_device(args)
        np.random.seed(seed)
        cupy.random.seed(seed)
        try:
            with chainer.using_config("train", seed != 2):
                result = function(*args, **kwargs)
            if floats_in(result):
                sum([chainer.functions.sum(chainer.functions.sin(y)) for y in floats_in(result)]).backward()
        except Exception as error:
            return found, (type(error), str(error))
        found += numbers(result) + [x for y in floats_in(args) for x in numbers(y.grad)]
        found += [array for p in link.params() for array in numbers(p.grad)]
        if all(p.array is not None for p in link.params()):
            optimizer.update()
        link.cleargrads()
        found += [array for part in link.links() for name in (*part._params, *part._persistent) for array in numbers(getattr(part, name))]
    return found, None


def check_link(name, backend):
    """Compare a row of the table of links; gives the exception that ends its calls in eager mode, if there is one."""
    row, both = link_matrix.ROWS[name], []
    for compile in (lambda target: target, functools.partial(to_static, backend=backend)):
        np.random.seed(0)
        link = row.make()
        link.to_device("@cupy:0")
        function = compile(link if row.apply is None else row.apply)
        both.append(trained(row, link, function if row.apply is None else functools.partial(function, link)))
    (eager, error), (compiled, other) = both
    assert other == error, f"it raises {other}, in eager mode {error}"
    assert len(eager) == len(compiled)
    for wanted, array in zip(eager, compiled):
        assert (array.shape, array.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(array, wanted, rtol=tolerance(2e-5), atol=tolerance(2e-5) * max(np.abs(wanted).max(initial=0), 0.1))
    return error


LINKS = pytest.mark.parametrize("name", link_matrix.ROWS)


@pytest.mark.gpu
@LINKS
@on_double
def test_links_as_calls_of_cupy(name):
    check_link(name, "numpy")


@pytest.mark.gpu
@LINKS
@on_double
def test_links_as_kernels(name):
    check_link(name, "c")
