"""The launcher: runs the steps of a region on a device in C, through a table of functions of NVIDIA's libraries.

The table is that of a GPU (`drivers`) or of the emulator (`emulated`): everything else is the same.  ``launch.c`` says what the
words of a region mean.
"""
from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Union

from ..errors import BackendError, InternalError
from . import compiler, library, measured
from .announce import announce
from .failures import NoCompiler, Refused

#: The kinds of steps, by their numbers: ``launch.c`` has a function ``launch_KIND`` for each.
KINDS = ("kernel", "product", "clear", "copy", "convolution", "finished", "table", "while", "scattered")

#: The kinds that cuBLAS does, and those that work in the memory of `Place.workspace` or of their own.
OF_CUBLAS = frozenset(("product", "finished", "scattered"))
OF_LIBRARIES = OF_CUBLAS | {"convolution"}

#: The most words that one step stores in a table, as in ``launch.c``.
MOST_WORDS = 500

#: Functions of the driver that loops in graphs need: CUDA 12.4 has them.
FOR_LOOPS = ("cuGraphConditionalHandleCreate", "cuGraphAddNode")

#: Whose error a failed run reports, in the order of ``launch.c``.
LIBRARIES = ("driver", "cublas", "launcher", "cudnn")

_FILES = [f"{name}.c" for name in (
    "launch", "launch_products", "launch_matmul", "launch_tuning", "launch_finished", "launch_graphs",
    "launch_regions")]
_SOURCE = f"#define KIND_FUNCTIONS {', '.join([f'launch_{kind}' for kind in KINDS])}\n" + "".join(
    [Path(__file__).with_name(name).read_text(encoding="utf-8") for name in _FILES])
_FLAGS = ("-O2", "-pthread")
_FIELDS = Path(__file__).with_name("include") / "dy2static_launch.h"


@functools.lru_cache(maxsize=None)
def functions() -> Sequence[str]:
    """The names of the functions in a table, in its order."""
    lines = _FIELDS.read_text(encoding="utf-8").split("#define DY_FUNCTIONS(X)", 1)[1].split("typedef", 1)[0]
    return [part.partition(",")[0] for part in lines.split(" X(")[1:]]


class Failure(NamedTuple):
    """What went wrong in a run: whose status it is, one of `LIBRARIES`, and the number of the step."""

    library: str
    status: int
    step: int


#: What a run reports that has launched nothing, because an array is not contiguous.
STRIDED = Failure("launcher", 0, -1)

#: What a run reports, with its sign turned, if algorithms of products were measured that can be kept.
_FRESH = 1 << 16

#: Flags of `Place.modes`.
FREE, MEASURED = 1 << 24, 1 << 25


class Place(NamedTuple):
    """Where a run takes place, and how.

    stream: a CUstream.  workspace: memory that products use there.  modes: the compute types of CuPy for floats of 16, 32 and 64
    bits, a byte each; `FREE`, if algorithms of cuDNN may give other bits in each run; `MEASURED`, if those of products are
    measured.
    """

    stream: int
    workspace: int = 0
    modes: int = 0


#: What a region is launched with: addresses, arrays of NumPy's or CuPy's, floats, and addresses that `Launcher.pack` has packed.
Operand = Union[int, float, bytes, Any]


class Counts(NamedTuple):
    """How a region has been run: kernel by kernel, or by graphs; how many graphs were made, and set anew; how often that failed."""

    plain: int
    replayed: int
    built: int
    patched: int
    failures: int


class Launcher:
    """The launcher of one device.

    table: where the table of functions is.  context: the CUcontext of the device.  products: a cublasHandle_t that nothing else
    uses; 0: there is no cuBLAS.  workspace: the bytes at `Place.workspace`.
    recorder: a stream on which nothing is launched, for CUDA graphs; 0: there are none.
    identity: the device, its driver and libraries, in words: algorithms that are measured are kept for processes that say the same;
    "": they are not kept.

    launch, pack: functions of ``launch_regions.c``.  measured: the algorithms of products.
    Raises `failures.NoCompiler`, `failures.BuildFailed` and `library.NotSupported`.
    """

    def __init__(self, table: int, context: int = 0, products: int = 0, workspace: int = 0, recorder: int = 0,
                 identity: str = ""):
        self._library = start().library().handle
        self.kinds = frozenset(KINDS) - (frozenset() if products else OF_CUBLAS)
        self._device = ctypes.create_string_buffer(self._library.launch_device_size())
        self.address = ctypes.addressof(self._device)
        self._library.launch_device(self._device, ctypes.c_void_p(table), ctypes.c_void_p(context), ctypes.c_void_p(products),
                                    ctypes.c_int64(workspace), ctypes.c_void_p(recorder))
        key = measured.key_of(identity, workspace, _SOURCE, _FIELDS.read_text(encoding="utf-8")) if identity else ""
        self.measured = measured.Products(self._library, self._device, key)
        self.launch: Callable[..., Optional[int]] = library.bind(start().library(), "launch", _wrong)
        self.pack: Callable[..., Optional[bytes]] = library.bind(start().library(), "launch_pack", _wrong)

    def region(self, words: Sequence[int], graphs: bool = True, measured: bool = True) -> "Region":
        """A region to be launched, from its words.

        graphs: whether runs that come again are replayed as CUDA graphs.  measured: whether `MEASURED` counts for it.
        """
        return Region(self, self._library, words, graphs, measured)


class Region:
    """Steps that are launched together: ``region(place, addresses)``."""

    def __init__(self, launcher: Launcher, functions: Any, words: Sequence[int], graphs: bool, measured: bool):
        functions.launch_region.restype = functions.launch_counts.restype = ctypes.c_void_p
        functions.launch_forget.argtypes = [ctypes.c_void_p]                # it may be called when Python ends
        self._launcher, self._forget = launcher, functions.launch_forget
        self._handle = functions.launch_region(ctypes.c_void_p(launcher.address), (ctypes.c_int64 * len(words))(*words),
                                               ctypes.c_int64(len(words)), int(graphs), int(measured))
        if not self._handle:
            raise MemoryError("there is no memory for a region")
        self._counts = (ctypes.c_int64 * len(Counts._fields)).from_address(functions.launch_counts(ctypes.c_void_p(self._handle)))

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._forget(self._handle)

    def __call__(self, place: Place, operands: Sequence[Operand]) -> Optional[Failure]:
        """Launch all steps.  operands: inputs, outputs, and scratch memory where there is some.

        Gives what went wrong, or None; `STRIDED` if an array is not contiguous.
        """
        status = self._launcher.launch(self._handle, *place, *operands)
        if not status:
            return STRIDED if status is None else None
        if status > 0:
            return Failure(LIBRARIES[status >> 16 & 255], status & 0xffff, status >> 24)
        if -status & _FRESH:
            self._launcher.measured.keep()
        if -status % _FRESH:
            announce("graphs", f"kernels are launched one by one where no CUDA graph can be made or launched "
                               f"(error {-status % _FRESH})")
        return None

    @property
    def counts(self) -> "Counts":
        """What has been done so far."""
        return Counts(*self._counts[:])


def start() -> compiler.Build:
    """The library of the launcher, which may be on its way.  Raises `failures.NoCompiler`."""
    return compiler.start(_SOURCE, _FLAGS)


def begin() -> None:
    """Begin to compile the library.  Where that is not possible, `made` says so."""
    try:
        start()
    except NoCompiler:
        return


def made(make: Callable[[], Launcher]) -> Optional[Launcher]:
    """The launcher that ``make`` gives; None where there can be none, which is announced once."""
    try:
        return make()
    except BackendError as reason:
        if Refused.stands(reason):
            raise
        announce("launcher", f"programs on GPUs are launched from Python, which takes longer: {reason}")
        return None


def _wrong(*arguments: Any) -> None:
    raise InternalError(f"the launcher does not take {len(arguments)} arguments of {sorted({type(x).__name__ for x in arguments})}")


def table_of(found: Dict[str, int]) -> Any:
    """A table of functions by their names, as an array of ctypes; those that are not found are null."""
    names = functions()
    return (ctypes.c_void_p * len(names))(*[found.get(name) for name in names])


