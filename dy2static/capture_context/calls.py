"""What is called: inputs, functions, and calls of NumPy, Chainer and the host."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple, Union

from ..ir.dims import Size
from ..ir.graph import Value
from ..record.paths import Source
from .values import StagedList, SymbolicArray, SymbolicObject, SymbolicScalar, SymbolicText, SymbolicVariable

if TYPE_CHECKING:
    import chainer
    import numpy as np


class Inputs(Protocol):
    """What the caller brings."""

    def variable(self, real: chainer.Variable, source: Source) -> SymbolicVariable:
        """The symbolic form of a Variable of the user's."""

    def array(self, real: np.ndarray, source: Source, length: Optional[Source] = None) -> SymbolicArray:
        """The symbolic form of an array of the user's.  length: the path of how many there are in the list that it is made of."""

    def object(self, real: Any, source: Source) -> SymbolicObject:
        """The symbolic form of an object that only the host can use."""

    def unknown(self, source: Source) -> SymbolicObject:
        """What is at the end of a path, of which nothing is known, nor relied on."""

    def note_length(self, source: Source, length: int) -> None:
        """Note the length of a list of the user's that is read as it is."""

    def length(self, source: Source, length: int) -> Size:
        """The length of a list of the user's: a symbol where it differs from call to call."""

    def size(self, source: Source, real: int, is_size: bool) -> Optional[Size]:
        """A number of the user's that changes from call to call as a size; None where it is none."""

    def list_of_elements(self, source: Source, array: SymbolicArray, arrays: Callable[[Optional[str]], Any], kind: type,
                         more: Sequence[Any]) -> StagedList:
        """The items of a list of the user's, which are of one type, and more, as a new list of the graph.

        array: that NumPy makes of the list; arrays: with another dtype.
        """

    def list_of_numbers(self, source: Source, more: Sequence[Any]) -> StagedList:
        """The items of a list of floats of the user's, and more, as a new list of the graph."""

    def source_of(self, value: Value) -> Source:
        """The path that leads to an object."""

    def number(self, source: Source, real: Any, kind: str) -> SymbolicScalar:
        """The symbolic form of a number that changes from call to call."""

    def truth(self, source: Source, real: bool) -> SymbolicScalar:
        """The same of a truth value."""

    def numpy_number(self, source: Source, real: Any) -> SymbolicArray:
        """The same of a number of NumPy's."""

    def float_of(self, number: SymbolicArray) -> SymbolicScalar:
        """A number of NumPy's, or an array of one, as a float."""

    def text(self, source: Source, real: Union[str, bytes]) -> SymbolicText:
        """The symbolic form of a text that changes from call to call."""

    def object_value(self, source: Source) -> Value:
        """An object as a value of the graph."""

    def number_value(self, text: str, kind: str, hint: Any) -> Value:
        """An expression over numbers as a value of the graph."""

    def text_value(self, text: str) -> Value:
        """An expression that gives a text as a value of the graph."""


class Functions(Protocol):
    """The converted functions."""

    def shadow_cells(self) -> Sequence[Any]:
        """The closure cells that converted functions share with the user's."""

    def staged(self, function: Any) -> Callable[..., Any]:
        """The converted form of a function."""


class Imports(Protocol):
    """What is imported inside.  builtins: the built-in names of converted functions."""

    builtins: Dict[str, Any]


class NumPyCalls(Protocol):
    """Calls of NumPy."""

    def call(self, function: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """What a call on symbolic arrays gives."""


class ChainerCalls(Protocol):
    """Functions of Chainer."""

    def apply(self, node: chainer.FunctionNode, inputs: Sequence[Any]) -> Tuple[SymbolicVariable, ...]:
        """What ``node.apply(inputs)`` gives."""

    def result(self, value: Value, inputs: List[Value], requires_grad: bool, connected: bool) -> SymbolicVariable:
        """A result of a function as a Variable."""

    def new_variable(self, array: Any, requires_grad: bool) -> SymbolicArray:
        """The array of a Variable that user code makes."""


class HostCalls(Protocol):
    """Calls that wait for the host."""

    def call(self, function: Any, args: Tuple, kwargs: Mapping[str, Any], types_: Optional[Tuple] = None, structure: Any = ...,
             name: str = "", plainly: bool = False) -> Any:
        """Leave a call to the host."""
