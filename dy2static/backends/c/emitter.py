"""What the rules of ops may ask of the C function that is being written."""
from __future__ import annotations

from typing import Any, Callable, ContextManager, List, NamedTuple, Optional, Protocol, Sequence, Tuple

from ...ir.dims import Size
from ...ir.graph import Node, Value
from ..loops.layout import Place
from ..loops.parallelize import Share
from .memory import Memory
from .standalone import Standalone


class NestText(NamedTuple):
    """Lines of a nest: those in front of its function, those of the function, and those that add up what shares have summed."""

    before: List[str]
    lines: List[str]
    joined: List[str]


class Emitter(Protocol):
    """A function in C to which a rule adds the lines of one node.

    storages: the variable that knows the memory of all lists.  generator: the pointer to the state of NumPy's generator.
    standalone: None where Python stands behind the function.
    """

    standalone: Optional[Standalone]

    storages: str
    generator: str

    # Text

    def line(self, text: str) -> None:
        """Add a line to the function."""

    def lines(self, texts: Sequence[str]) -> None:
        """Add several lines."""

    def indented(self) -> ContextManager[None]:
        """Lines that are written inside stand one step to the right."""

    def shared(self, share: Share) -> ContextManager[None]:
        """Lines that are written inside run from ``begin`` to ``end`` and are a function for threads."""

    def alone(self) -> ContextManager[None]:
        """Lines that are written inside only fill memory, or bail out, and are a function of their own, as in `part`."""

    def part(self, lines: Sequence[str], share: Any = None) -> None:
        """Call a function of its own, made of lines that only fill memory; with a share, from ``begin`` to ``end``."""

    def body(self, lines: Sequence[str], of_part: bool = False) -> Tuple[str, str]:
        """The function that these lines make, which run from ``begin`` to ``end``, and a pointer to what it is given.

        of_part: they run from ``left`` to ``right``, too, over the columns of a matrix.
        """

    # Names and expressions

    def variable(self, hint: str, type: str = "") -> str:
        """A new name.  type: of a variable that functions of loops may be given."""

    def local(self, value: Value) -> str:
        """The C variable of one element, of a number, a list or a stack; the literal of a constant."""

    def scalar(self, value: Value) -> str:
        """A value of no dimensions as an expression."""

    def element(self, place: Place, terms: Sequence[str]) -> str:
        """One element of a place as an expression; terms: what is added to the address of the first."""

    def read(self, value: Value, address: str) -> str:
        """One element of memory as an expression."""

    def expression(self, node: Node, operands: Sequence[str]) -> str:
        """The C form of an elementwise node."""

    def declaration(self, value: Value) -> str:
        """What stands in front of the name of a variable where it is defined."""

    # Memory

    def place(self, value: Value) -> Place:
        """Where the elements of a value are."""

    def constant(self, number: Any, dtype: Any) -> Value:
        """A number as a value of no dimensions."""

    def number(self, value: Value) -> Any:
        """The number that a value of no dimensions is; None if it is not known."""

    def name(self, value: Value) -> str:
        """The pointer to the memory of a value, which it gets now if it has none."""

    def pointer(self, value: Value) -> str:
        """A pointer to all elements in the order of memory: a copy of them where they do not stand so."""

    def stored(self, value: Value) -> bool:
        """Whether a value must be in memory."""

    def is_read(self, value: Value) -> bool:
        """Whether anything reads a value."""

    def has_memory(self, value: Value) -> bool:
        """Whether it is settled where a value is."""

    def put_at(self, value: Value, pointer: str) -> None:
        """Let a value be made where this pointer points."""

    def scratch(self, count: Size, dtype: Any) -> str:
        """A pointer to memory for the lines at hand."""

    def copy(self, target: Place, source: Place, pointer: str) -> None:
        """Write the elements of one place to another of the same shape; pointer: to the memory of the target."""

    # Sizes

    def size_is_known(self, symbol: str) -> None:
        """Say that from here on the variable of a symbol has its number."""


class FlowEmitter(Emitter, Protocol):
    """What control flow asks besides: when memory is in use, and names that go from one value to another."""

    memory: Memory

    def rename(self, value: Value, name: str) -> None:
        """Let a value be the C variable of this name."""

    def new_stack(self, value: Value) -> str:
        """The variable of a new stack."""

    def sweep_lists(self) -> None:
        """Free lists that nothing has any more."""


#: What writes the lines of a node.
Rule = Callable[[Emitter, Node], None]
