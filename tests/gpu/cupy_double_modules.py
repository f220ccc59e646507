"""The modules of the stand-in for CuPy: names of CuPy 14.2 that lead to NumPy's and SciPy's functions."""
import contextlib
import functools
import importlib
import sys
import time
import types

import cupy_double_arrays as arrays
import numpy as np
from cupy_double_arrays import NAMES, Device, call, give, ndarray, unwrapped
from cupy_double_kernels import ElementwiseKernel, ReductionKernel

VERSION = "14.2.0"

#: Functions that take arrays of the host.
_TAKES_HOST = {"array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "asnumpy", "split", "array_split"}

#: What of SciPy a module of ``cupyx`` stands for.
_SCIPY = {"cupyx.scipy.special": "scipy.special", "cupyx.scipy.linalg": "scipy.linalg"}


class _Module(types.ModuleType):
    """A module whose names are those that CuPy has; each is looked up in NumPy or SciPy when it is asked for."""

    def __getattr__(self, name):
        full = f"{self.__name__}.{name}"
        if full not in NAMES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = _found(self.__name__, name)
        if isinstance(found, types.ModuleType):
            return found
        if isinstance(found, np.ufunc):
            found = _Ufunc(found)
        elif callable(found) and not isinstance(found, type):
            found = _forwarding(found, NAMES[full], name in _TAKES_HOST)
        setattr(self, name, found)
        return found


def _found(module, name):
    """NumPy's or SciPy's object of this name.  Raises AttributeError where the stand-in lacks it."""
    source = np
    if module in _SCIPY:
        source = importlib.import_module(_SCIPY[module])
    elif module != "cupy":
        source = functools.reduce(getattr, module.split(".")[1:], np)
    if not hasattr(source, name):
        raise AttributeError(f"the stand-in for CuPy has no {module}.{name}")
    return getattr(source, name)


class _Ufunc:
    """`cupy.ufunc`: of its methods, CuPy has these for all of them, and reductions of sums and products."""

    def __init__(self, ufunc):
        self.ufunc, self.__name__ = ufunc, ufunc.__name__

    def __call__(self, *args, **kwargs):
        return call(self.ufunc, args, kwargs, keywords=("out", "dtype", "casting"))

    def at(self, a, indices, b=None):
        arrays.scatter(self.ufunc, a, indices, b)

    def reduce(self, array, axis=0, dtype=None, out=None, keepdims=False):
        if self.ufunc not in (np.add, np.multiply):
            raise NotImplementedError(f"`cupy_{self.__name__}.reduce` is not supported yet")
        return (array.sum if self.ufunc is np.add else array.prod)(axis, dtype, out, keepdims)


def _forwarding(function, keywords, host):
    def forwarding(*args, **kwargs):
        return call(function, args, kwargs, host=host, keywords=keywords)
    forwarding.__name__ = forwarding.__qualname__ = getattr(function, "__name__", "function")
    forwarding.__module__ = "cupy"
    return forwarding


# ------------------------------------------------------------------------------------------------------------------------ cupy


def _array(obj, dtype=None, copy=True, order="K", subok=False, ndmin=0, *, blocking=False):
    return give(np.array(unwrapped(obj), dtype, copy=True, order=order, ndmin=ndmin))


def _asarray(a, dtype=None, order=None, *, blocking=False, copy=None):
    if isinstance(a, ndarray) and (dtype is None or a.dtype == dtype) and order in (None, "K", "A") and not copy:
        return a
    return give(np.array(unwrapped(a), dtype, order=order or "K"))


def _contiguous(a, dtype=None):
    if isinstance(a, ndarray) and (dtype is None or a.dtype == dtype) and a.flags.c_contiguous:
        return a
    return give(np.array(unwrapped(a), dtype, order="C"))


def _asnumpy(a, stream=None, order="C", out=None, *, blocking=True):
    return a.get(order=order, out=out) if isinstance(a, ndarray) else np.asarray(a)


def _copyto(dst, src, casting="same_kind", where=None):
    if isinstance(src, np.ndarray):
        raise TypeError(f"Unsupported type {type(src)}")
    arrays.check_device((dst,))
    np.copyto(dst._a, unwrapped(src), casting=casting, where=True if where is None else unwrapped(where))


def _take(a, indices, axis=None, out=None):
    return a.take(indices, axis, out)


def _repeat(a, repeats, axis=None):
    if isinstance(repeats, ndarray):
        raise TypeError("the stand-in repeats by numbers of the host")
    return call(np.repeat, (a, repeats, axis), {})


def _rsqrt(x, out, dtype):
    return np.reciprocal(np.sqrt(x, dtype=dtype), out=out)


def _truth(function):
    return lambda *args, **kwargs: call(lambda *a, **k: np.asarray(function(*a, **k)), args, kwargs)


def _get_array_module(*args):
    return sys.modules["cupy"] if any(isinstance(a, ndarray) for a in args) else np


def _fuse(*args, **kwargs):
    return args[0] if args and callable(args[0]) else lambda function: function


class _Memoized:
    """A function that remembers its results; like CuPy's, it is not of the type of Python's functions."""

    def __init__(self, function, for_each_device):
        functools.update_wrapper(self, function)
        self._function, self._for_each_device, self._found = function, for_each_device, {}

    def __call__(self, *args, **kwargs):
        key = (args, tuple(sorted(kwargs.items())), Device().id if self._for_each_device else None)
        if key not in self._found:
            self._found[key] = self._function(*args, **kwargs)
        return self._found[key]


def _memoize(for_each_device=False):
    return lambda function: _Memoized(function, for_each_device)


# ------------------------------------------------------------------------------------------------------------------- cupy.random


class RandomState:
    """A stream of random numbers.  Each call draws one number of it, as the seed of its own: what is drawn depends on the order of
    calls and on the dtype, as with cuRAND, and is never what NumPy's stream would give."""

    def __init__(self, seed=None, method=None):
        self._state = np.random.RandomState(seed)

    def seed(self, seed=None):
        self._state.seed(seed)

    def __getattr__(self, name):
        if f"cupy.random.{name}" not in NAMES:
            raise AttributeError(name)

        def drawn(*args, **kwargs):
            dtype = np.dtype(kwargs.pop("dtype", None) or float)
            state = np.random.RandomState([self._state.randint(2 ** 31), dtype.num])
            result = getattr(state, name)(*unwrapped(args), **{key: unwrapped(value) for key, value in kwargs.items()})
            if name == "shuffle":
                return None
            result = np.asarray(result)
            return give(result.astype(dtype) if result.dtype.kind == "f" else result)
        return drawn


_states = {}


def _random_state():
    return _states.setdefault(Device().id, RandomState())


class _Random(types.ModuleType):
    RandomState = RandomState

    def __getattr__(self, name):
        if f"cupy.random.{name}" not in NAMES:
            raise AttributeError(f"module 'cupy.random' has no attribute {name!r}")

        def drawn(*args, **kwargs):
            return getattr(_random_state(), name)(*args, **kwargs)
        drawn.__name__, drawn.__module__ = name, "cupy.random"
        setattr(self, name, drawn)
        return drawn

    @staticmethod
    def get_random_state():
        return _random_state()

    @staticmethod
    def set_random_state(rs):
        _states[Device().id] = rs

    @staticmethod
    def seed(seed=None):
        _random_state().seed(seed)

    @staticmethod
    def reset_states():
        _states.clear()


# --------------------------------------------------------------------------------------------------------------------- cupy.cuda


class Stream:
    """A stream: what is put in it has been done when the call returns."""

    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
        self.ptr, self._outer = 0 if null else id(self), []

    def use(self):
        _streams[:] = [self]
        return self

    def __enter__(self):
        _streams.append(self)
        return self

    def __exit__(self, *args):
        _streams.pop()

    def synchronize(self):
        pass

    def record(self, event=None):
        return event or Event()

    def wait_event(self, event):
        pass

    def is_capturing(self):
        return False


class Event:
    """A point of a stream: the time when it is recorded, since all before is done then."""

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        pass

    def record(self, stream=None):
        self.time = time.perf_counter()

    def synchronize(self):
        pass


Stream.null = Stream(null=True)
_streams = [Stream.null]


def _cuda(module):
    cuda, runtime = module("cupy.cuda"), module("cupy.cuda.runtime")
    cuda.Device, cuda.Stream, cuda.Event, cuda.OutOfMemoryError = Device, Stream, Event, arrays.OutOfMemoryError
    cuda.get_current_stream = lambda device_id=-1: _streams[-1]
    cuda.get_elapsed_time = lambda start, end: (end.time - start.time) * 1e3
    cuda.get_device_id = lambda: Device().id
    cuda.is_available = lambda: True
    cuda.set_allocator = cuda.set_pinned_memory_allocator = lambda allocator=None: None
    cuda.MemoryPool = cuda.PinnedMemoryPool = arrays.Memory
    cuda.using_allocator = contextlib.nullcontext
    runtime.CUDARuntimeError = arrays.CUDARuntimeError
    runtime.getDeviceCount = lambda: arrays.DEVICES
    runtime.getDevice = lambda: Device().id
    runtime.setDevice = lambda device: Device(device).use()
    runtime.deviceSynchronize = runtime.streamSynchronize = lambda *args: None
    module("cupy.cuda.memory").OutOfMemoryError = arrays.OutOfMemoryError
    cuda.memory.MemoryPointer = arrays._Pointer
    module("cupy.cuda.memory_hook").MemoryHook = type("MemoryHook", (), {"name": "MemoryHook"})
    module("cupy.cuda.cublas")
    module("cupy.cuda.driver").CUDADriverError = arrays.CUDADriverError
    module("cupy.cuda.profiler")


def install():
    """Enter the modules in `sys.modules`, and return ``cupy``."""
    made = {}

    def module(name, kind=types.ModuleType):
        found = made[name] = kind(name)
        found.__path__ = []
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(made[parent], last, found)
        return found

    cupy = module("cupy", _Module)
    for name in ("cupy.linalg", "cupy.fft", "cupy.lib", "cupy.lib.stride_tricks", "cupyx", "cupyx.scipy", *_SCIPY):
        module(name, _Module)
    module("cupy.random", _Random)
    module("cupy._util").PerformanceWarning = arrays.PerformanceWarning
    _cuda(module)
    cupy.is_double, cupy.__version__, cupy.ndarray, cupy.memory = True, VERSION, ndarray, arrays.memory
    cupy.ufunc = _Ufunc
    cupy.ElementwiseKernel, cupy.ReductionKernel = ElementwiseKernel, ReductionKernel
    cupy.array, cupy.asarray, cupy.asanyarray, cupy.asnumpy, cupy.copyto = _array, _asarray, _asarray, _asnumpy, _copyto
    cupy.ascontiguousarray, cupy.take, cupy.get_array_module = _contiguous, _take, _get_array_module
    cupy.repeat, cupy.allclose, cupy.array_equal = _repeat, _truth(np.allclose), _truth(np.array_equal)
    cupy.fuse, cupy.memoize, cupy.clear_memo = _fuse, _memoize, lambda: None
    cupy.get_default_memory_pool = cupy.get_default_pinned_memory_pool = lambda: arrays.memory
    made["cupyx"].scatter_add = arrays.scatter_add
    made["cupyx"].rsqrt = lambda x, out=None, dtype=None: call(_rsqrt, (x,), {"out": out, "dtype": dtype})
    sys.modules.update(made)
    return cupy
