"""The library of arrays that a generated function calls: NumPy, or one with functions of the same names."""
from __future__ import annotations

from typing import Any, Callable, Hashable, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from ...ir.graph import Graph, Node, Value
from ...ir.op import OpDef
from ...runtime.clocks import Stamps
from ..names import Names
from .special import SPECIAL


class Library:
    """What the text of a function, and its memory, depend on where arrays are not NumPy's.

    titles: what a profile calls it, and native code for its arrays.  stamps: takes times where calls return before they are done.
    warns: whether there are warnings of floating-point errors.  gives_numbers: whether results without axes may be numbers.
    shares_work: whether functions share the memory that they need only while they run.  plans_sizes: whether arrays of sizes that
    only the run knows are in the arena, too.
    place: where calls run that may use the same memory one after the other; None if that does not matter.
    special: faster texts for ops, by their names.  reserved: names that the text gives a meaning.
    """

    titles = "NumPy", "C"
    stamps: Optional[Stamps] = None
    warns = True
    gives_numbers = True
    shares_work = plans_sizes = True
    place: Optional[Callable[[], Hashable]] = None
    special: Mapping[str, Callable[[Node, Sequence[str], str], Optional[str]]] = SPECIAL
    reserved: Tuple[str, ...] = ()

    def __reduce__(self) -> str:
        return "NUMPY_CALLS"            # pickle refuses any other one

    def form(self, op: OpDef) -> Union[str, Callable[..., Any], None]:
        """The meaning of an op, as `OpDef.numpy` has it."""
        return op.numpy

    def text(self, code: str, names: Names) -> str:
        """The code with calls of this library where a template calls ``np``."""
        return names.numpy(code)

    def function(self, function: Callable[..., Any], op: OpDef) -> Callable[..., Any]:
        """What is called for a function that an op computes with on NumPy."""
        return function

    def constant(self, array: np.ndarray) -> Any:
        """A constant that is never written to."""
        array.flags.writeable = False
        return array

    def empty(self, nbytes: int) -> Any:
        """New memory, as an array of bytes."""
        return np.empty(nbytes, np.uint8)

    def address(self, memory: Any) -> int:
        """Where memory begins."""
        return int(memory.ctypes.data)

    def called(self, function: Callable[..., Any], graph: Graph) -> Callable[..., Any]:
        """What is called for the function of a graph."""
        return function

    def around(self, names: Names) -> str:
        """The manager in whose block a function computes, as text; "" for none."""
        return ""

    def placed(self, graph: Graph) -> Library:
        """This library for the device of a graph."""
        return self

    def beside(self, *values: Value) -> str:
        """The device of the first of these values that is on a GPU, if that is another one than this library's; "" if not."""
        return ""

    def at(self, device: str) -> Library:
        """The library of the device that `beside` gives."""
        return self

    def of(self, *values: Value) -> Library:
        """The library of these values' arrays. In a program for a GPU, it is NumPy for arrays on the host."""
        return self


#: NumPy itself.
NUMPY_CALLS = Library()
