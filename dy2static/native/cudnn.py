"""cuDNN's convolutions by ctypes: descriptors and algorithms of one device, and how they are launched.

The functions are those of cuDNN 8 and 9.  `emulated` has a library with the same functions, so that everything here runs without
a GPU.
"""
from __future__ import annotations

import ctypes
import functools
import itertools
import math
import os
import threading
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, TypeVar

import numpy as np

from ..compat.cuda import wheel_libraries
from ..errors import BackendError
from . import measured

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


class Kind(NamedTuple):
    """What an algorithm is like: whether it gives the same bits every time, and the cudnnMathType_t that goes with it."""

    is_deterministic: bool
    math: int


class Choice(NamedTuple):
    """An algorithm: the descriptor of the convolution that goes with it, and the bytes that it works in."""

    descriptor: int
    algorithm: int
    workspace: int


#: Measures an algorithm: takes the bytes of the two operands, of the result and of the workspace, and what computes the
#: convolution, given the addresses of such memory and a stream; gives the seconds of one run.  Raises `CudnnError`.
Timer = Callable[[Sequence[int], Callable[[Sequence[int], int], None]], float]


class Mode(NamedTuple):
    """What decides on an algorithm.

    is_rounded: float32 is rounded to TF32.  is_free: an algorithm need not give the same bits in every run.
    """

    is_rounded: bool = False
    is_free: bool = False


class Plan:
    """How cuDNN computes one convolution: descriptors, which live as long as this, and algorithms.

    operands: the descriptors of the two operands and of the result, in the order of cuDNN's functions.
    choices: the algorithm for each `Mode`, in the order of the launcher's words.  launching: the handle that the launcher uses.
    timer: measures algorithms, of which the fastest are taken; None: those are taken that cuDNN expects to be fastest.
    identity: the device, its driver and cuDNN, in words: what is measured is kept for processes that say the same; "": it is not.
    """

    def __init__(self, library: Any, handle: c_void_p, convolution: Convolution, launching: Optional[c_void_p] = None,
                 timer: Optional[Timer] = None, identity: str = ""):
        self._launching, self._identity = launching, identity
        self.kind, self.is_wide = convolution.kind, convolution.dtype.char == "d"
        self._library = library
        self._made: List[Tuple[str, c_void_p]] = []
        asked = convolution.of_two_sizes()
        image, filters, result = self._tensor(asked.image, asked), self._filters(asked), self._tensor(asked.result, asked)
        self.operands = in_order(self.kind, image, filters, result)
        self._sizes = [math.prod(shape) * asked.dtype.itemsize
                       for shape in in_order(self.kind, asked.image, asked.filters, asked.result)]
        may_round = asked.dtype.char == "f"
        exact = self._fastest(handle, asked, _FMA_MATH if may_round else _DEFAULT_MATH, timer)
        rounded = self._fastest(handle, asked, _DEFAULT_MATH, timer) if may_round else exact
        self.choices = {Mode(): exact[0], Mode(True): rounded[0], Mode(False, True): exact[1], Mode(True, True): rounded[1]}

    def __del__(self) -> None:
        for kind, descriptor in self._made:
            getattr(self._library, f"cudnnDestroy{kind}Descriptor")(descriptor)

    @property
    def workspace(self) -> int:
        """How many bytes it works in."""
        return max(choice.workspace for choice in self.choices.values())

    def words(self) -> List[int]:
        """What the launcher has to know to compute it, as ``launch.c`` says.

        This has to live as long as the launcher uses them.
        """
        assert self._launching is not None, "plans of a device have a handle"
        functions = self._library.cudnnSetStream, getattr(self._library, f"cudnnConvolution{_NAMES[self.kind]}")
        return [self._launching.value or 0, *[ctypes.cast(function, c_void_p).value or 0 for function in functions], self.is_wide,
                *[descriptor.value or 0 for descriptor in self.operands],
                *itertools.chain(*self.choices.values())]

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

    def _fastest(self, handle: c_void_p, asked: Convolution, math_type: int, timer: Optional[Timer]) -> Tuple[Choice, Choice]:
        """The fastest algorithm of those that give the same bits every time, and the fastest of all.  Raises `CudnnError`."""
        possible = self._possible(handle, asked, math_type)
        if timer is not None and len(possible) > 1:
            key = measured.key_of(self._identity, asked, math_type) if self._identity else ""
            possible = self._in_order(handle, possible, timer, key)
        steady = next((choice for choice, kind in possible.items() if kind.is_deterministic), None)
        if steady is None:
            raise CudnnError(f"cuDNN has no algorithm for {asked}")
        return steady, next(iter(possible))

    def _in_order(self, handle: c_void_p, possible: Dict[Choice, Kind], timer: Timer, key: str) -> Dict[Choice, Kind]:
        """The algorithms with the fastest one first, as they are measured now, or as an earlier process has kept under a key."""
        by_name = {(kind.math, choice.algorithm): choice for choice, kind in possible.items()}
        order = measured.kept_order(key, by_name)
        if order is None:
            times = {name: self._time(handle, choice, timer) for name, choice in by_name.items()}
            order = sorted(by_name, key=times.__getitem__)
            if max(times.values()) < math.inf:                          # else there may have been no memory
                measured.keep_order(key, order)
        return {by_name[name]: possible[by_name[name]] for name in order}

    def _time(self, handle: c_void_p, choice: Choice, timer: Timer) -> float:
        """The seconds that an algorithm takes; infinite where it fails."""
        def run(addresses: Sequence[int], stream: int) -> None:
            *operands, workspace = addresses
            self.run(handle, choice, stream, operands, workspace)
        try:
            return timer([*self._sizes, max(choice.workspace, 1)], run)
        except CudnnError:
            return math.inf

    def run(self, handle: c_void_p, choice: Choice, stream: int, operands: Sequence[int], workspace: int) -> None:
        """Compute the convolution.  operands: the addresses of the two operands and of the result.  Raises `CudnnError`."""
        number = ctypes.c_double if self.is_wide else ctypes.c_float
        first, second, out = zip(self.operands, operands)
        check(self._library, self._library.cudnnSetStream(handle, stream))
        check(self._library, getattr(self._library, f"cudnnConvolution{_NAMES[self.kind]}")(
            handle, byref(number(1)), *first, *second, choice.descriptor, choice.algorithm, workspace, choice.workspace,
            byref(number(0)), *out))

    def _possible(self, handle: c_void_p, asked: Convolution, math_type: int) -> Dict[Choice, Kind]:
        """The algorithms that may be taken, fastest first as cuDNN expects."""
        library, name, made = self._library, _NAMES[self.kind], self._described(asked, math_type)
        descriptors = {math_type: made}
        possible: Dict[Choice, Kind] = {}
        first, second, out = self.operands
        count, all_found = c_int(), (_Found * 16)()
        check(library, getattr(library, f"cudnnGetConvolution{name}Algorithm_v7")(
            handle, first, second, made, out, len(all_found), byref(count), all_found))
        for one in all_found[:count.value]:
            if one.status or math_type == _FMA_MATH and one.math != _FMA_MATH:
                continue
            if one.math not in descriptors:
                descriptors[one.math] = self._described(asked, one.math)
            size, descriptor = c_size_t(), descriptors[one.math]
            if (not getattr(library, f"cudnnGetConvolution{name}WorkspaceSize")(
                    handle, first, second, descriptor, out, one.algorithm, byref(size)) and size.value <= WORKSPACE):
                possible.setdefault(Choice(descriptor.value or 0, one.algorithm, size.value),
                                    Kind(one.determinism == _DETERMINISTIC, one.math))
        return possible


class Cudnn:
    """The cuDNN of the device that is current when this is made.  identity: as that of `Plan`.

    Raises `CudnnError` where that cannot be.
    """

    def __init__(self, library: Any, identity: str = ""):
        self._identity = identity
        self._library, self._handle, self._launching = library, c_void_p(), c_void_p()
        for handle in (self._handle, self._launching):                  # for Python, and for the launcher, which has its own lock
            check(library, library.cudnnCreate(byref(handle)))
        self._plans: Dict[Tuple[Convolution, bool], Optional[Plan]] = {}
        self._lock = threading.Lock()

    def plan(self, convolution: Convolution, timer: Optional[Timer] = None) -> Optional[Plan]:
        """How to compute a convolution on the current device; None where cuDNN does not.

        timer: measures its algorithms, once for each convolution.
        """
        with self._lock:
            key = convolution, timer is not None
            if key not in self._plans:
                self._plans[key] = self._planned(convolution, timer)
            return self._plans[key]

    def _planned(self, convolution: Convolution, timer: Optional[Timer]) -> Optional[Plan]:
        if not convolution.is_expressible():
            return None
        try:
            return Plan(self._library, self._handle, convolution, self._launching, timer, self._identity)
        except CudnnError:
            return None

    def run(self, plan: Plan, stream: int, mode: Mode, operands: Sequence[int], workspace: int) -> None:
        """Compute a convolution on the current device.  operands: the addresses of the two operands and of the result.

        Raises `CudnnError`.
        """
        with self._lock:                                                # the stream belongs to the handle
            plan.run(self._handle, plan.choices[mode], stream, operands, workspace)


def check(library: Any, status: int) -> None:
    """Raise `CudnnError` for a status that is none of success."""
    if status:
        raise CudnnError(f"cuDNN reports error {status}, {library.cudnnGetErrorString(status).decode()}")


def _ints(numbers: Sequence[int]) -> Any:
    return (c_int * len(numbers))(*numbers)
