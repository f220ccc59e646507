"""What the ONNX form of an op may use: the writer of nodes, as a protocol.

The names that a rule gets and gives are those of ONNX values.  `dy2static.export.to_onnx` has the writer; nothing here, and no
rule, imports the package ``onnx``.
"""
from __future__ import annotations

from typing import Any, Callable, Protocol, Sequence, Tuple, Union

import numpy as np

from .dims import Size

#: The name of an ONNX value.
Name = str


class NotInOnnx(Exception):
    """An op that ONNX cannot express, for these types and attributes; the text says why."""


class NewerOpset(NotInOnnx):
    """An op that has no form before an opset.  first: that."""

    def __init__(self, first: int) -> None:
        super().__init__(f"there are operators for it from opset {first} on")
        self.first = first


class OnnxWriter(Protocol):
    """Writes nodes into an ONNX graph.

    Operands of a dtype that onnxruntime's kernel of an operator does not take are converted to a wider one, and its result
    back; where there is no wider one, `node` raises `NotInOnnx`.
    """

    #: The version of ONNX's operators.
    opset: int

    def node(self, operator: str, *operands: Name, **attrs: Any) -> Name:
        """The result of one node with one output."""

    def nodes(self, operator: str, operands: Sequence[Name], dtypes: Sequence[Any], **attrs: Any) -> Tuple[Name, ...]:
        """The results of one node with an output of each of the ``dtypes``."""

    def constant(self, value: Any, dtype: Any = None) -> Name:
        """An array, or a number as a 0-d array of a dtype."""

    def like(self, value: Any, x: Name) -> Name:
        """A number as a 0-d array of the dtype of ``x``."""

    def cast(self, x: Name, dtype: Any) -> Name:
        """The value in a dtype; the value itself if it has that."""

    def dtype(self, x: Name) -> np.dtype:
        """The dtype of a value."""

    def takes(self, operator: str, dtype: Any) -> bool:
        """Whether an operator has a kernel for a dtype, or one for a wider dtype."""

    def size(self, n: Size) -> Name:
        """A size as a 0-d array of int64."""

    def shape(self, sizes: Sequence[Size]) -> Name:
        """Sizes as an array of int64 with one axis."""

    def shape_of(self, x: Name) -> Name:
        """The shape of a value, as an array of int64 with one axis."""

    def reduce(self, operator: str, x: Name, axes: Sequence[int], keepdims: bool = False) -> Name:
        """The result of an operator such as ``ReduceMax`` over these axes, in the form that the opset has."""

    def wanted(self, output: int) -> bool:
        """Whether somebody reads an output of the op that is being written."""

    def loop(self, count: Name, state: Sequence[Name], body: Callable[..., Tuple[Sequence[Name], Sequence[Name]]],
             pushed: int = 0) -> Tuple[Name, ...]:
        """The last state, then what was pushed along a new first axis, of so many iterations.

        body: ``body(i, *state)`` writes an iteration and gives the next state and what is pushed.
        """


#: The form of an op: the name of an operator, or a rule.
Form = Union[str, Callable[..., Any]]
