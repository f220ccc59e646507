"""What the parts of a capture ask of those that know inputs, functions, numbers and indices."""
from __future__ import annotations

import types
from typing import Any, Callable, Dict, List, Optional, Protocol, Sequence, Tuple

import numpy as np

from ...capture_context import calls, numbers
from ...ir.dims import Dim
from ...ir.graph import Node, Value
from ...record.inputs import Input
from ...record.paths import Source


class Inputs(calls.Inputs, Protocol):
    """The inputs of one capture."""

    all: List[Input]
    named: List[Tuple[str, Source]]

    def bind(self, value: Any, hint: str) -> str:
        """A name for an object in the generated code."""


class Functions(calls.Functions, Protocol):
    """The converted functions of one capture.

    cells: the closure cells that they share with the user's.  has_generators: whether one of the user's is, or makes, a generator.
    """

    cells: Dict[int, Any]
    has_generators: bool

    def real(self, function: Any) -> Any:
        """The function of the user's that a function stands for."""

    def staged_pairs(self) -> List[Tuple[types.FunctionType, types.FunctionType]]:
        """The functions of the user's that are converted, with their converted forms."""

    def unstaged(self, made: types.FunctionType) -> Optional[types.FunctionType]:
        """The function of the user's that a converted one stands for; None for what is made during the capture."""


class Imports(calls.Imports, Protocol):
    """What these statements do in one capture.  `builtins` are the built-in names of converted functions."""

    def check_bases(self, name: str, bases: Sequence[Any], metaclass: Any = None) -> None:
        """Stop where making a class runs code of the user's, which Python would call unseen."""


class Expressions(numbers.Expressions, Protocol):
    """What operators on symbolic numbers make in one capture."""

    def make(self, text: str, hint: Any) -> Any:
        """A symbolic number for an expression whose value in this call is ``hint``; the value, if it decides something."""

    def text_of(self, operand: Any) -> str:
        """The Python text of an operand."""


class DecidingContents(numbers.DecidingContents, Protocol):
    """What decides something in one capture."""

    def entered(self, value: Value, source: Source, real: np.ndarray) -> None:
        """An array among the inputs of the graph."""

    def exposed(self, operands: Sequence[Value]) -> None:
        """A call of unknown code gets these: it may write into them, and into arrays of the caller's."""

    def is_fixed(self, source: Source, real: np.ndarray) -> bool:
        """Whether the contents of this array of the caller's are known."""

    def is_fixed_expression(self, text: str) -> bool:
        """Whether the value of an expression over numbers is known."""


class IndexRanges(numbers.IndexRanges, Protocol):
    """What is known of the arrays of indices among the inputs of one capture."""

    arrays: Dict[Value, Tuple[Any, np.ndarray]]
    multiples: Dict[Value, Any]

    def cover(self, nodes: Sequence[Node]) -> bool:
        """Whether none of these nodes can fail, if the guards hold that this adds."""

    def drawn(self, value: Value, least: Any, below: Any) -> None:
        """An array of whole numbers is drawn from these bounds, if they are known."""

    def entered(self, value: Value, source: Any, array: np.ndarray) -> None:
        """An input of the graph."""

    def is_inside(self, function: Any, args: Sequence[Any], operands: Sequence[Value]) -> bool:
        """Whether a call takes a part of an array by numbers that are certain to be in range."""

    def may_raise(self, node: Node) -> bool:
        """Whether a node may fail on what its operands hold."""

    def rows_at(self, array: Any, key: Any) -> Any:
        """``array[i:i + n]`` in a loop over every n-th ``i``; NotImplemented for everything else."""


class AssumedSizes(Protocol):
    """Numbers that the run finds and that are taken to be sizes of other arrays."""

    def decided(self, name: str, size: Dim) -> None:
        """A number decides a size in this call."""

    def applied(self, name: str, args: Any) -> Any:
        """The arguments of a call, with sizes for numbers that are taken to be such."""


class NumberBounds(Protocol):
    """The bounds of numbers of one capture."""

    def note(self, value: Value, bounds: Any) -> None:
        """A number of the graph lies between these."""

    def of_call(self, name: str, args: Sequence[Any], operands: Sequence[Value]) -> Any:
        """The bounds of what a function of numbers gives, which cannot fail then; None where they are not known."""

    def of_whole(self, item: Any, counted: bool = True, depth: int = ...) -> Any:
        """The bounds of a whole number, or of the elements of an array of such; None where they are not known."""


class NumberChecks(Protocol):
    """Of a `Capture`: the sizes of the numbers that NumPy meets."""

    texts: Dict[Value, Tuple[str, Any]]

    def hold(self, function: Callable[..., Any], name: str, template: Tuple[Any, Any],
             operands: List[Value]) -> Tuple[List[Any], Any]:
        """The types of the operands for a trial, and the dtype in which NumPy computes if nothing else shows that."""

    def hold_all(self, operands: List[Value]) -> None:
        """Guard that numbers among the inputs, which go into code that is not known, are about as large as in this call."""

    def like(self, value: Value) -> Any:
        """The type of an operand; of a number among the inputs, with what it is like."""

    def widen(self, function: Callable[..., Any], operands: List[Value], types: List[Any], dtype: Any) -> Callable[..., Any]:
        """Let the arrays that are compared have the dtype in which NumPy compares them; the function to be called."""
