"""cuDNN's convolutions by ctypes: descriptors and algorithms of one device, and how they are launched.

The functions are those of cuDNN 8 and 9.  `emulated` has a library with the same functions, so that everything here runs without
a GPU.
"""
from __future__ import annotations

import ctypes
import functools
import math
import os
import threading
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, TypeVar

import numpy as np

from ..compat.cuda import wheel_libraries
from ..errors import BackendError

T = TypeVar("T")

#: What can be computed: ``conv``, its gradient by the image, its gradient by the filters.
FORWARD, IMAGE, FILTERS = range(3)

# cudnnDataType_t by the letters of NumPy's dtypes, and the type in which sums are
_TYPES = {"f": 0, "d": 1, "e": 2}
_SUMS = {"f": 0, "d": 1, "e": 0}

_NCHW, _CROSS_CORRELATION, _DETERMINISTIC = 0, 1, 1

# cudnnMathType_t.  The default lets float32 be rounded to TF32; FMA does not
_DEFAULT_MATH, _FMA_MATH = 0, 3

#: The most memory that an algorithm may work in, bytes.
WORKSPACE = 256 << 20

#: Sizes, and strides of arrays, are ints of C.
_MOST = 2 ** 31


#: Do not load a library that is not loaded; where there is no such flag, it is looked for by its name.
_NOT_LOADED = getattr(os, "RTLD_NOLOAD", 0)


class CudnnError(BackendError):
    """An error that cuDNN reports."""


class _Found(ctypes.Structure):
    """``cudnnConvolutionFwdAlgoPerf_t``, which has the same fields as those of the gradients."""

    _fields_ = [("algorithm", c_int), ("status", c_int), ("time", ctypes.c_float), ("memory", c_size_t), ("determinism", c_int),
                ("math", c_int), ("reserved", c_int * 3)]


#: For each of `FORWARD`, `IMAGE` and `FILTERS`: the name in cuDNN's functions.
_NAMES = ("Forward", "BackwardData", "BackwardFilter")

_INTS = POINTER(c_int)

#: Parameters of cuDNN's functions.  Descriptors and handles are pointers, enumerations are ints.
_SIGNATURES: Dict[str, Tuple[Any, ...]] = {
    "cudnnCreate": (POINTER(c_void_p),), "cudnnSetStream": (c_void_p, c_void_p),
    "cudnnCreateTensorDescriptor": (POINTER(c_void_p),), "cudnnDestroyTensorDescriptor": (c_void_p,),
    "cudnnSetTensorNdDescriptor": (c_void_p, c_int, c_int, _INTS, _INTS),
    "cudnnCreateFilterDescriptor": (POINTER(c_void_p),), "cudnnDestroyFilterDescriptor": (c_void_p,),
    "cudnnSetFilterNdDescriptor": (c_void_p, c_int, c_int, c_int, _INTS),
    "cudnnCreateConvolutionDescriptor": (POINTER(c_void_p),), "cudnnDestroyConvolutionDescriptor": (c_void_p,),
    "cudnnSetConvolutionNdDescriptor": (c_void_p, c_int, _INTS, _INTS, _INTS, c_int, c_int),
    "cudnnSetConvolutionGroupCount": (c_void_p, c_int), "cudnnSetConvolutionMathType": (c_void_p, c_int),
    **{f"cudnnGetConvolution{name}Algorithm_v7": (*[c_void_p] * 5, c_int, POINTER(c_int), POINTER(_Found)) for name in _NAMES},
    **{f"cudnnGetConvolution{name}WorkspaceSize": (*[c_void_p] * 5, c_int, POINTER(c_size_t)) for name in _NAMES},
    **{f"cudnnConvolution{name}": (*[c_void_p] * 7, c_int, c_void_p, c_size_t, *[c_void_p] * 3) for name in _NAMES},
}


def prepared(library: Any) -> Any:
    """A library whose functions know their parameters.  Raises AttributeError where it lacks one."""
    for name, parameters in _SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = parameters, c_int
    library.cudnnGetVersion.restype = c_size_t
    library.cudnnGetErrorString.argtypes, library.cudnnGetErrorString.restype = (c_int,), c_char_p
    return library


@functools.lru_cache(maxsize=None)
def found() -> Optional[Any]:
    """cuDNN: the one that this process has loaded, else that of a wheel or of the system; None where there is none."""
    loaded = [(name, _NOT_LOADED) for name in ("libcudnn.so.9", "libcudnn.so.8")]
    for path, mode in (*loaded, *[(path, 0) for path in (*wheel_libraries("cudnn.so.9"), "libcudnn.so.9")]):
        try:
            return prepared(ctypes.CDLL(path, ctypes.DEFAULT_MODE | mode))
        except (OSError, AttributeError):
            continue
    return None


def version() -> Tuple[int, ...]:
    """The version of cuDNN, (9, 28, 1); () where there is none."""
    library = found()
    if library is None:
        return ()
    number = library.cudnnGetVersion()
    major = 10000 if number >= 90000 else 1000                         # 92801, 8907
    return number // major, number % major // 100, number % 100


class Convolution(NamedTuple):
    """A convolution to be computed: one of `FORWARD`, `IMAGE` and `FILTERS`.

    image: (N, C, *sizes), filters: (K, C / groups, *sizes), result: (N, K, *sizes) of the convolution, whatever is to be computed.
    """

    kind: int
    dtype: np.dtype
    image: Tuple[int, ...]
    filters: Tuple[int, ...]
    result: Tuple[int, ...]
    stride: Tuple[int, ...]
    pad: Tuple[int, ...]
    dilate: Tuple[int, ...]
    groups: int

    def is_expressible(self) -> bool:
        """Whether cuDNN can be asked for it: of 1 to 3 sizes, with as many windows as cuDNN makes itself."""
        sizes = zip(self.image[2:], self.filters[2:], self.result[2:], self.stride, self.pad, self.dilate)
        return (1 <= len(self.stride) <= 3 and self.dtype.char in _TYPES
                and all(1 + (n + 2 * p - (k - 1) * d - 1) // s == o for n, k, o, s, p, d in sizes)
                and all(math.prod(shape) < _MOST for shape in (self.image, self.filters, self.result)))

    def of_two_sizes(self) -> Convolution:
        """The same with at least two sizes, as cuDNN wants it."""
        if len(self.stride) > 1:
            return self
        shapes = [(*shape[:2], 1, shape[2]) for shape in (self.image, self.filters, self.result)]
        return Convolution(self.kind, self.dtype, *shapes, (1, *self.stride), (0, *self.pad), (1, *self.dilate), self.groups)


def in_order(kind: int, image: T, filters: T, result: T) -> Tuple[T, T, T]:
    """The two operands of what is computed, and what it gives, in the order of cuDNN's functions."""
    if kind == FORWARD:
        return image, filters, result
    return (filters, result, image) if kind == IMAGE else (image, result, filters)


class Choice(NamedTuple):
    """An algorithm: the descriptor of the convolution that goes with it, and the bytes that it works in."""

    descriptor: int
    algorithm: int
    workspace: int


class Plan:
    """How cuDNN computes one convolution: descriptors, which live as long as this, and algorithms.

    operands: the descriptors of the two operands and of the result, in the order of cuDNN's functions.
    exact, rounded: the algorithms without and with float32 rounded to TF32.  launching: the handle that the launcher uses.
    """

    def __init__(self, library: Any, handle: c_void_p, convolution: Convolution, launching: Optional[c_void_p] = None):
        self._launching = launching
        self.kind, self.is_wide = convolution.kind, convolution.dtype.char == "d"
        self._library = library
        self._made: List[Tuple[str, c_void_p]] = []
        asked = convolution.of_two_sizes()
        image, filters, result = self._tensor(asked.image, asked), self._filters(asked), self._tensor(asked.result, asked)
        self.operands = in_order(self.kind, image, filters, result)
        self.exact = self._choice(handle, asked, _FMA_MATH if asked.dtype.char == "f" else _DEFAULT_MATH)
        self.rounded = self._choice(handle, asked, _DEFAULT_MATH) if asked.dtype.char == "f" else self.exact

    def __del__(self) -> None:
        for kind, descriptor in self._made:
            getattr(self._library, f"cudnnDestroy{kind}Descriptor")(descriptor)

    @property
    def workspace(self) -> int:
        """How many bytes it works in."""
        return max(self.exact.workspace, self.rounded.workspace)

    def words(self) -> List[int]:
        """What the launcher has to know to compute it, as ``launch.c`` says.

        This has to live as long as the launcher uses them.
        """
        assert self._launching is not None, "plans of a device have a handle"
        functions = self._library.cudnnSetStream, getattr(self._library, f"cudnnConvolution{_NAMES[self.kind]}")
        return [self._launching.value or 0, *[ctypes.cast(function, c_void_p).value or 0 for function in functions], self.is_wide,
                *[descriptor.value or 0 for descriptor in self.operands], *self.exact, *self.rounded]

    def _new(self, kind: str) -> c_void_p:
        made = c_void_p()
        check(self._library, getattr(self._library, f"cudnnCreate{kind}Descriptor")(byref(made)))
        self._made.append((kind, made))
        return made

    def _tensor(self, shape: Sequence[int], asked: Convolution) -> c_void_p:
        made = self._new("Tensor")
        strides = [math.prod(shape[axis + 1:]) for axis in range(len(shape))]
        check(self._library, self._library.cudnnSetTensorNdDescriptor(
            made, _TYPES[asked.dtype.char], len(shape), _ints(shape), _ints(strides)))
        return made

    def _filters(self, asked: Convolution) -> c_void_p:
        made = self._new("Filter")
        check(self._library, self._library.cudnnSetFilterNdDescriptor(
            made, _TYPES[asked.dtype.char], _NCHW, len(asked.filters), _ints(asked.filters)))
        return made

    def _described(self, asked: Convolution, math_type: int) -> c_void_p:
        made = self._new("Convolution")
        check(self._library, self._library.cudnnSetConvolutionNdDescriptor(
            made, len(asked.stride), _ints(asked.pad), _ints(asked.stride), _ints(asked.dilate), _CROSS_CORRELATION,
            _SUMS[asked.dtype.char]))
        check(self._library, self._library.cudnnSetConvolutionGroupCount(made, asked.groups))
        check(self._library, self._library.cudnnSetConvolutionMathType(made, math_type))
        return made

    def _choice(self, handle: c_void_p, asked: Convolution, math_type: int) -> Choice:
        """The algorithm that cuDNN expects to be fastest, of those that give the same bits every time.  Raises `CudnnError`."""
        library, name, made = self._library, _NAMES[self.kind], self._described(asked, math_type)
        first, second, out = self.operands
        where = handle, first, second, made, out
        count, all_found = c_int(), (_Found * 16)()
        check(library, getattr(library, f"cudnnGetConvolution{name}Algorithm_v7")(*where, len(all_found), byref(count), all_found))
        for one in all_found[:count.value]:
            if one.status or one.determinism != _DETERMINISTIC or math_type == _FMA_MATH and one.math != _FMA_MATH:
                continue
            size = c_size_t()
            check(library, library.cudnnSetConvolutionMathType(made, one.math))
            if (not getattr(library, f"cudnnGetConvolution{name}WorkspaceSize")(*where, one.algorithm, byref(size))
                    and size.value <= WORKSPACE):
                return Choice(made.value or 0, one.algorithm, size.value)
        raise CudnnError(f"cuDNN has no algorithm for {asked}")


class Cudnn:
    """The cuDNN of the device that is current when this is made.  Raises `CudnnError` where that cannot be."""

    def __init__(self, library: Any):
        self._library, self._handle, self._launching = library, c_void_p(), c_void_p()
        for handle in (self._handle, self._launching):                  # for Python, and for the launcher, which has its own lock
            check(library, library.cudnnCreate(byref(handle)))
        self._plans: Dict[Convolution, Optional[Plan]] = {}
        self._lock = threading.Lock()

    def plan(self, convolution: Convolution) -> Optional[Plan]:
        """How to compute a convolution on the current device; None where cuDNN does not."""
        with self._lock:
            if convolution not in self._plans:
                self._plans[convolution] = self._planned(convolution)
            return self._plans[convolution]

    def _planned(self, convolution: Convolution) -> Optional[Plan]:
        if not convolution.is_expressible():
            return None
        try:
            return Plan(self._library, self._handle, convolution, self._launching)
        except CudnnError:
            return None

    def run(self, plan: Plan, stream: int, is_rounded: bool, operands: Sequence[int], workspace: int) -> None:
        """Compute a convolution on the current device.  operands: the addresses of the two operands and of the result.

        Raises `CudnnError`.
        """
        choice = plan.rounded if is_rounded else plan.exact
        number = ctypes.c_double if plan.is_wide else ctypes.c_float
        first, second, out = zip(plan.operands, operands)
        with self._lock:                                                # the stream belongs to the handle
            check(self._library, self._library.cudnnSetStream(self._handle, stream))
            check(self._library, getattr(self._library, f"cudnnConvolution{_NAMES[plan.kind]}")(
                self._handle, byref(number(1)), *first, *second, choice.descriptor, choice.algorithm, workspace, choice.workspace,
                byref(number(0)), *out))


def check(library: Any, status: int) -> None:
    """Raise `CudnnError` for a status that is none of success."""
    if status:
        raise CudnnError(f"cuDNN reports error {status}, {library.cudnnGetErrorString(status).decode()}")


def _ints(numbers: Sequence[int]) -> Any:
    return (c_int * len(numbers))(*numbers)
