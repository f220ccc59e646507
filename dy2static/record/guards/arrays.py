"""Guards of one array or Variable."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional, Tuple, Union

import chainer
import numpy as np

from ...errors import LoadError
from ...ir.devices import device_of, is_device_array, is_gpu, number_of
from ...ir.dims import Size
from ...ir.size_texts import described
from ..documents import need, pair_of
from ..files import FileIn, FileOut
from ..paths import GuardWriter, Source, TableWriter
from .base import PathGuard


@dataclass(frozen=True, eq=False)
class ArrayMatch(PathGuard):
    """An array with this shape, in which symbols stand for any size, and dtype: of NumPy, or on this device."""

    shape: Tuple[Size, ...]
    dtype: np.dtype
    device: str = ""
    word = "array"
    before_arrays = True

    def describe(self) -> str:
        return f"{self.source.describe()}: ndarray {described(self.shape)} {self.dtype}{_on(self.device)}"

    def change(self, value: Any) -> Tuple[str, str]:
        return f"{self.dtype} {described(self.shape)}{_on(self.device)}", _seen(value)

    def fails(self, writer: GuardWriter) -> Optional[str]:
        return writer.array_differs(writer.path(self.source), self.shape, self.dtype, self.source.parent is None, self.device)

    def row_at(self, place: int, table: TableWriter) -> bool:
        wanted = _wanted(self, table)
        return wanted is not None and table.test("array", place, wanted)

    def parts_out(self, out: FileOut) -> Any:
        _check_on_host(self, out)
        return out.array_type(self.shape, self.dtype)

    @classmethod
    def parts_in(cls, said: Any, file: FileIn) -> Tuple[Any, ...]:
        return file.array_type(said)


@dataclass(frozen=True, eq=False)
class VariableMatch(PathGuard):
    """A Variable of this class, whose array is as an `ArrayMatch` has it."""

    cls: type
    requires_grad: bool
    shape: Tuple[Size, ...]
    dtype: np.dtype
    device: str = ""
    word = "variable"
    before_arrays = True

    def describe(self) -> str:
        return (f"{self.source.describe()}: {self.cls.__name__} {described(self.shape)} {self.dtype}{_on(self.device)} "
                f"requires_grad={self.requires_grad}")

    def change(self, value: Any) -> Tuple[str, str]:
        expected = f"{self.cls.__name__} {self.dtype} {described(self.shape)}{_on(self.device)} requires_grad={self.requires_grad}"
        if not isinstance(value, chainer.Variable):
            return expected, _seen(value)
        return expected, f"{type(value).__name__} {_seen(value.array)} requires_grad={value.requires_grad}"

    def fails(self, writer: GuardWriter) -> str:
        value = writer.path(self.source)
        array = writer.arrays[self.source] = f"{value}_array"
        writer.lines.append(f"if type({value}) is not {writer.constant(self.cls, 'type')}: {writer.fail()}")
        writer.lines.append(f"{array} = {value}._data[0]")
        differs = writer.array_differs(array, self.shape, self.dtype, self.source.parent is None, self.device)
        also = f" or {differs}" if differs else ""
        return f"{value}._requires_grad is not {self.requires_grad} or {value}._layout is not None{also}"

    def row_at(self, place: int, table: TableWriter) -> bool:
        wanted = _wanted(self, table)
        if wanted is None or self.cls not in (chainer.Variable, chainer.Parameter):
            return False
        table.types[self.source] = self.cls
        table.arrays[self.source] = table.give("variable", place, table.constant(self.cls), self.requires_grad, wanted)
        return True

    def parts_out(self, out: FileOut) -> Any:
        _check_on_host(self, out)
        return [out.type_name(self.cls, self.source), self.requires_grad, *out.array_type(self.shape, self.dtype)]

    @classmethod
    def parts_in(cls, said: Any, file: FileIn) -> Tuple[Any, ...]:
        if type(said) is not list or len(said) != 4:
            raise LoadError(f"{str(said)[:80]} is not what a Variable is")
        kind = file.type_name(said[0])
        if kind not in (chainer.Variable, chainer.Parameter):
            raise LoadError(f"{said[0]} is no kind of Variable")
        return kind, need(said[1], bool, "requires_grad"), *file.array_type(said[2:])


@dataclass(frozen=True, eq=False)
class ArrayLayout(PathGuard):
    """An array that lies in memory like this: its strides in bytes, and its flags as a number."""

    strides: Tuple[int, ...]
    flags: int
    word = "layout"

    def describe(self) -> str:
        return f"{self.source.describe()}: an array with strides {self.strides} and flags {self.flags}"

    def fails(self, writer: GuardWriter) -> str:
        value = writer.path(self.source)
        return f"{value}.strides != {self.strides} or {value}.flags.num != {self.flags}"

    def row_at(self, place: int, table: TableWriter) -> bool:
        return table.test("layout", place, table.constant(np.array(self.strides, np.int64).tobytes()), self.flags)

    def parts_out(self, out: FileOut) -> Any:
        return [list(self.strides), self.flags]

    @classmethod
    def parts_in(cls, said: Any, file: FileIn) -> Tuple[Any, ...]:
        strides, flags = pair_of(said)
        return tuple([need(step, int, "a stride") for step in need(strides, list, "strides")]), need(flags, int, "flags")


@dataclass(frozen=True, eq=False)
class IndicesInRange(PathGuard):
    """An array of ints, none of which is below ``low``, and all of which are below ``high``."""

    low: int
    high: int
    word = "range"

    def describe(self) -> str:
        return f"{self.source.describe()}: indices in range({self.low}, {self.high})"

    def fails(self, writer: GuardWriter) -> str:
        value = writer.path(self.source)
        return f"outside({writer.arrays.get(self.source, value)}, {self.low}, {self.high})"

    def parts_out(self, out: FileOut) -> Any:
        return [self.low, self.high]

    @classmethod
    def parts_in(cls, said: Any, file: FileIn) -> Tuple[Any, ...]:
        low, high = pair_of(said)
        return need(low, int, "an index"), need(high, int, "an index")


@dataclass(frozen=True, eq=False)
class ContentsMatch(PathGuard):
    """A small array of whole numbers that holds just these, as bytes in C order.  Its shape and dtype are guarded before."""

    expected: bytes
    word = "contents"
    is_of_model = True

    def describe(self) -> str:
        return f"{self.source.describe()} with the same contents, which decide sizes or what is done"

    def is_reordered(self, value: np.ndarray) -> bool:
        """Whether an array of the same shape and dtype holds the same numbers in another order."""
        return np.array_equal(np.sort(np.frombuffer(self.expected, value.dtype)), np.sort(value, axis=None))

    def change(self, value: Any) -> Tuple[str, str]:
        return str(np.frombuffer(self.expected, value.dtype).reshape(value.shape).tolist()), str(value.tolist())

    def fails(self, writer: GuardWriter) -> str:
        return f"{writer.path(self.source)}.tobytes() != {writer.constant(self.expected, 'contents')}"

    def holds(self, at: Callable[[Source], Any]) -> bool:
        return at(self.source).tobytes() == self.expected

    def parts_out(self, out: FileOut) -> Any:
        return self.expected.hex()

    @classmethod
    def parts_in(cls, said: Any, file: FileIn) -> Tuple[Any, ...]:
        try:
            return bytes.fromhex(need(said, str, "the contents of an array")),
        except ValueError:
            raise LoadError(f"{said[:80]} is not what an array holds") from None


def _seen(value: Any) -> str:
    """Describe a value that is not the expected array."""
    if not isinstance(value, np.ndarray) and not is_device_array(value):
        return f"of class {type(value).__qualname__}"
    return f"{value.dtype} {value.shape}{_on(device_of(value))}"


def _on(device: str) -> str:
    return f" on {device}" if is_gpu(device) else ""


def _wanted(guard: Union[ArrayMatch, VariableMatch], table: TableWriter) -> Optional[int]:
    """The number of what native code compares an array with; None where sizes are free."""
    if not all(type(n) is int for n in guard.shape):
        return None
    if is_gpu(guard.device):
        return table.constant((guard.shape, guard.dtype, number_of(guard.device)))
    return table.constant((np.array(guard.shape, np.int64).tobytes(), guard.dtype))


def _check_on_host(guard: Union[ArrayMatch, VariableMatch], out: FileOut) -> None:
    """Raise `SaveError` if the array is on a GPU: programs for these are not saved."""
    if is_gpu(guard.device):
        out.refuse(guard.source, f"is on {guard.device}")
