"""Arrays, devices and memory of the stand-in for CuPy: elements are NumPy's, rules are CuPy's."""
import operator
import threading
from pathlib import Path

import numpy as np

#: How many devices there are.
DEVICES = 2


class CUDARuntimeError(RuntimeError):
    """An error of CUDA's."""


class CUDADriverError(RuntimeError):
    """An error of the driver, with its number."""

    def __init__(self, status):
        super().__init__(f"CUDA_ERROR_{status}")
        self.status = status


class OutOfMemoryError(MemoryError):
    """There is not enough memory on the device."""


class PerformanceWarning(RuntimeWarning):
    """What CuPy warns of that is slow."""


class _Current(threading.local):
    device = 0


_current = _Current()


class Device:
    """A device.  id: its number, without an argument that of the current device."""

    compute_capability = "90"

    def __init__(self, device=None):
        self.id = _current.device if device is None else int(device)
        self._outer = []

    def __int__(self):
        return self.id

    def __eq__(self, other):
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self):
        return self.id

    def __repr__(self):
        return f"<CUDA Device {self.id}>"

    def use(self):
        if not 0 <= self.id < DEVICES:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        _current.device = self.id

    def __enter__(self):
        self._outer.append(_current.device)
        self.use()
        return self

    def __exit__(self, *args):
        _current.device = self._outer.pop()

    def synchronize(self):
        pass


class Memory:
    """The pool that all arrays come from, so far as tests look at it.

    allocations: how many arrays with memory of their own have been made.  freed: how often the pool was emptied.
    refused: numbers of allocations that fail, counted from 0.
    """

    def __init__(self):
        self.allocations, self.freed, self.refused = 0, 0, set()

    def allocate(self, size):
        """Count an allocation.  Raises `OutOfMemoryError`."""
        number = self.allocations
        self.allocations += 1
        if number in self.refused:
            raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes (allocated so far: 0 bytes).")

    def free_all_blocks(self, stream=None):
        self.freed += 1

    def used_bytes(self):
        return 0

    total_bytes = free_bytes = n_free_blocks = used_bytes

    def malloc(self, size):
        raise NotImplementedError("the stand-in has no memory without arrays")


memory = Memory()


class _Pointer:
    """`cupy.cuda.MemoryPointer`: where the elements of an array are."""

    def __init__(self, array):
        self.ptr, self.device_id, self.device = array._a.ctypes.data, array._device, Device(array._device)
        self.mem = self

    def __int__(self):
        return self.ptr


class ndarray:
    """An array whose elements NumPy cannot see.  Results of one element are arrays without axes, never numbers."""

    __slots__ = ("_a", "_device", "_owner", "__weakref__")
    __module__ = "cupy"
    __hash__ = None
    __array_priority__ = 100

    def __new__(cls, shape=(), dtype=float, memptr=None, strides=None, order="C"):
        if memptr is not None or strides is not None:
            raise NotImplementedError("arrays of given memory")
        return give(np.empty(shape, dtype, order or "C"))

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly.")

    def get(self, stream=None, order="C", out=None, blocking=True):
        if out is None:
            return np.array(self._a, order=order)
        out[...] = self._a
        return out

    def set(self, arr, stream=None):
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if arr.dtype != self.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        self._a[...] = arr

    def item(self):
        return self._a.item()

    def tolist(self):
        return self._a.tolist()

    device = property(lambda self: Device(self._device))
    data = property(_Pointer)
    base = property(lambda self: self._owner)
    shape = property(lambda self: self._a.shape, lambda self, shape: setattr(self._a, "shape", shape))
    dtype, ndim, size, strides, flags, nbytes, itemsize = (
        property(operator.attrgetter(f"_a.{name}")) for name in ("dtype", "ndim", "size", "strides", "flags", "nbytes", "itemsize"))
    T = property(lambda self: self.transpose())
    _c_contiguous, _f_contiguous = (property(lambda self, name=name: getattr(self._a.flags, name)) for name in ("c_contiguous", "f_contiguous"))
    real, imag = (property(lambda self, name=name: call(lambda a: getattr(a, name), (self,), {})) for name in ("real", "imag"))

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.data.ptr, False), "version": 3, "strides": self.strides}

    def view(self, dtype=None, type=None):
        return call(np.ndarray.view, (self,) if dtype is None else (self, dtype), {})

    def take(self, indices, axis=None, out=None):
        return call(np.ndarray.take, (self, indices, axis, out, "wrap"), {}, host=True)

    def scatter_add(self, slices, value):
        scatter_add(self, slices, value)

    def reduced_view(self, dtype=None):
        return self

    def __len__(self):
        return len(self._a)

    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key):
        return call(np.ndarray.__getitem__, (self, wrapped_key(self, key)), {}, host=True)

    def __setitem__(self, key, value):
        if isinstance(value, np.ndarray):
            if key is not Ellipsis and key != slice(None):
                raise TypeError(f"Unsupported type {type(value)}")
            value = np.broadcast_to(value, self.shape)
        call(np.ndarray.__setitem__, (self, wrapped_key(self, key), value), {}, host=True)

    def __bool__(self):
        return bool(self._a)

    def __float__(self):
        return float(self._a)

    def __int__(self):
        return int(self._a)

    def __complex__(self):
        return complex(self._a)

    def __repr__(self):
        return repr(self._a)

    def __str__(self):
        return str(self._a)

    def __format__(self, spec):
        return format(self._a[()] if not self.ndim else self._a, spec)

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        with self.device:
            return self.copy()

    def __reduce__(self):
        return _from_host, (self.get(),)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        import cupy
        found = getattr(cupy, ufunc.__name__, None)
        if method != "__call__" or found is None:
            return NotImplemented
        if "out" in kwargs:
            kwargs["out"], = kwargs["out"]
        return found(*inputs, **kwargs)

    def __array_function__(self, function, types, args, kwargs):
        import cupy
        found = cupy
        for part in (*function.__module__.split(".")[1:], function.__name__):
            found = getattr(found, part, None)
        return NotImplemented if found is None or any(t not in (ndarray, np.ndarray) for t in types) else found(*args, **kwargs)


def _operators():
    names = ("add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift lt le gt ge eq ne").split()
    ufuncs = dict(zip(names, (np.add, np.subtract, np.multiply, np.true_divide, np.floor_divide, np.remainder, np.divmod, np.power, np.matmul,
                              np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift, np.less, np.less_equal,
                              np.greater, np.greater_equal, np.equal, np.not_equal)))
    for name, ufunc in ufuncs.items():
        def forward(self, other, ufunc=ufunc):
            return NotImplemented if _defers(other) else call(ufunc, (self, other), {})

        def reflected(self, other, ufunc=ufunc):
            return call(ufunc, (other, self), {})

        def in_place(self, other, ufunc=ufunc):
            return call(ufunc, (self, other), {"out": self})

        setattr(ndarray, f"__{name}__", forward)
        if ufunc.nout == 1 and name not in ("lt", "le", "gt", "ge", "eq", "ne"):
            setattr(ndarray, f"__r{name}__", reflected)
            if name != "matmul":
                setattr(ndarray, f"__i{name}__", in_place)
    for name, ufunc in (("neg", np.negative), ("pos", np.positive), ("abs", np.absolute), ("invert", np.invert)):
        setattr(ndarray, f"__{name}__", lambda self, ufunc=ufunc: call(ufunc, (self,), {}))


def _defers(other):
    """Whether an operator leaves its operands to the other one, as CuPy does for objects of a higher priority."""
    return not isinstance(other, (ndarray, np.ndarray, np.generic)) and (
        getattr(other, "__array_ufunc__", other) is None or getattr(other, "__array_priority__", 0) > ndarray.__array_priority__)


_operators()


def _from_host(array):
    return give(array)


def give(value, owners=()):
    """NumPy's result as one of the stand-in, on the current device.  owners: arrays that it may be a view of."""
    if isinstance(value, (tuple, list)):
        return type(value)(give(v, owners) for v in value) if not hasattr(value, "_fields") else value._make(give(v, owners) for v in value)
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    found = object.__new__(ndarray)
    found._a = np.asarray(value)
    found._device, found._owner = _current.device, None
    for owner in owners:
        if found._a.base is not None and (found._a.base is owner._a or found._a.base is owner._a.base):
            found._owner, found._device = owner if owner._owner is None else owner._owner, owner._device
            found._a.flags.writeable = True                  # NumPy's diagonals are not, those of CuPy are
    if found._owner is None:
        memory.allocate(found._a.nbytes)
    return found


def unwrapped(value):
    """The elements of arrays, as NumPy's, in tuples and lists, too."""
    if isinstance(value, ndarray):
        return value._a
    return type(value)(map(unwrapped, value)) if type(value) in (tuple, list) else value


def arrays_in(values):
    """The arrays of the stand-in among values, in tuples and lists, too."""
    for value in values:
        if isinstance(value, ndarray):
            yield value
        elif type(value) in (tuple, list):
            yield from arrays_in(value)


def check_device(values):
    """Raises ValueError where an array is on another device than the current one (as between devices that cannot reach each other)."""
    for array in arrays_in(values):
        if array._device != _current.device:
            raise ValueError("Array device must be same as the current device: "
                             f"array device = {array._device} while current = {_current.device}")


def call(function, args, kwargs, *, host=False, keywords=None):
    """What a function of NumPy's gives for arrays of the stand-in.

    host: whether it takes NumPy's arrays, too.  keywords: names that CuPy's function has; others raise TypeError, as there.
    """
    unknown = [name for name in kwargs if keywords is not None and name not in keywords and not keywords[-1].startswith("**")]
    if unknown:
        raise TypeError(f"{getattr(function, '__name__', function)}() got an unexpected keyword argument {unknown[0]!r}")
    if not host and any(isinstance(value, np.ndarray) for value in (*args, *kwargs.values())):
        raise TypeError(f"Unsupported type {np.ndarray}")
    values = (*args, *kwargs.values())
    if isinstance(function, np.ufunc):
        check_device(values)
    out = kwargs.get("out")
    with np.errstate(all="ignore"):
        if isinstance(function, np.ufunc) or function is np.clip:
            result = _elementwise(function, unwrapped(args), {name: unwrapped(value) for name, value in kwargs.items()})
        else:
            result = function(*unwrapped(args), **{name: unwrapped(value) for name, value in kwargs.items()})
    return out if isinstance(out, ndarray) else give(result, tuple(arrays_in(values)))


def _elementwise(ufunc, args, kwargs):
    """A ufunc, or `numpy.clip`, for which an array without axes is an array, not a number, when it looks for the dtype of its result."""
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    if getattr(ufunc, "signature", None) is not None or all(a.ndim for a in arrays) or kwargs.get("out") is not None:
        return ufunc(*args, **kwargs)
    shape = np.broadcast_shapes(*(a.shape for a in arrays)) if arrays else ()
    result = ufunc(*(a.reshape(1) if isinstance(a, np.ndarray) and not a.ndim else a for a in args), **kwargs)
    return tuple(r.reshape(shape) for r in result) if isinstance(result, tuple) else np.reshape(result, shape)


def wrapped_key(array, key):
    """An index in which arrays of indices that are out of range wrap around, as in CuPy."""
    parts = key if isinstance(key, tuple) else (key,)
    used = sum(_axes_of(part) for part in parts)
    found, axis = [], 0
    for part in parts:
        value = np.asarray(unwrapped(part)) if isinstance(part, (ndarray, np.ndarray, list)) else part
        if value is Ellipsis:
            axis += array.ndim - used
        elif isinstance(value, np.ndarray) and value.dtype.kind in "iu" and axis < array.ndim and array.shape[axis]:
            value = value % array.shape[axis]
        elif isinstance(value, np.ndarray) and not value.size and isinstance(part, list):
            value = value.astype(np.intp)
        found.append(value)
        axis += _axes_of(part)
    return tuple(found) if isinstance(key, tuple) else found[0]


def _axes_of(part):
    if part is None or part is Ellipsis:
        return 0
    value = np.asarray(unwrapped(part)) if isinstance(part, (ndarray, np.ndarray, list)) else part
    return value.ndim if isinstance(value, np.ndarray) and value.dtype == bool else 1


def scatter_add(array, slices, value):
    """`cupyx.scatter_add`."""
    scatter(np.add, array, slices, value)


def scatter(ufunc, array, slices, value):
    """The method ``at`` of a ufunc."""
    check_device((array, slices, value))
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    ufunc.at(array._a, wrapped_key(array, slices), unwrapped(value))


def names_of(version):
    """The listed names of CuPy 14.2 or 13.6: name -> names of parameters, or None for what the list does not say any of."""
    found = {}
    for line in [*_lines("cupy_names.txt"), *(_lines("cupy_names_13.txt") if version == 13 else [])]:
        name, _, rest = line.partition("(")
        if line.startswith("-"):
            del found[line[1:]]
        elif rest:
            found[name] = tuple(rest[:-1].split(", "))
        else:
            name, kind = line.split()
            found[name] = ("out", "dtype", "casting") if kind == "ufunc" else None
    return found


def _lines(file):
    return [line for line in Path(__file__).with_name(file).read_text().splitlines() if not line.startswith("#")]


#: The public names of CuPy 14.2 with the names of their parameters; those of the methods of an array.
NAMES = names_of(14)
METHODS = {name[len("cupy.ndarray."):]: keywords for name, keywords in NAMES.items() if name.startswith("cupy.ndarray.")}


def _give_methods():
    """Give arrays those of CuPy's methods that the class does not define, by NumPy's."""
    def method_of(function, keywords):
        return lambda self, *args, **kwargs: call(function, (self, *args), kwargs, keywords=keywords)
    for name, keywords in METHODS.items():
        function = getattr(np.ndarray, name, None)
        if callable(function) and not hasattr(ndarray, name):
            setattr(ndarray, name, method_of(function, keywords))


_give_methods()
