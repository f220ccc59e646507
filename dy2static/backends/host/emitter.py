"""What the rules of nodes are given to write a function of NumPy calls with."""
from __future__ import annotations

from contextlib import contextmanager
from typing import Collection, Dict, Iterator, Mapping, Optional, Sequence, Set, Tuple

from ...ir.graph import Node, Value
from ...ir.types import Tensor
from ..flatten import Block
from ..names import Names
from ..text import Line
from .buffer_coalescing import Placement
from .buffers import plan
from .in_place import InPlaceChanges
from .library import Library
from .reads import Reads
from .templates import Templates
from .text import Text
from .values import Values


class Emitter:
    """The parts of one function while it is written.

    text: the lines so far.  reads: what is read where.  plan: the arena.  values: what each value is called.
    templates: the lines of ops.  changes: lists and arrays that are changed in place.
    rows: names of the arrays of lists that loops let grow.
    library: what the text calls.
    compiled: names of calls of compiled code.
    held: values whose memory somebody outside can hold.  into: results that are made in the memory of inputs.
    symbols: those of the sizes that have their numbers when the function begins.
    """

    def __init__(self, block: Block, returned: Sequence[Value], escaping: Collection[Value], names: Names,
                 library: Library, symbols: Collection[str] = ()):
        self.text, self.names, self.library = Text(), names, library
        self.reads = Reads(block, returned)
        placement = Placement(block, escaping, self.reads.uses, self.reads.operands,
                              symbols if library.plans_sizes else ())
        self.held = placement.held
        self.plan = plan(block, placement, returned, self.reads.overwritable, self.reads.as_view, library)
        self.changes = InPlaceChanges(block, self.plan.places.keys())
        self.values = Values(names, self.plan, library)
        self.templates = Templates(self.reads, self.values, library)
        self.into: Mapping[Value, Value] = {}
        self.rows: Dict[Value, str] = {}
        self.compiled: Set[str] = set()
        self._beside: Tuple[str, Optional[Line]] = ("", None)       # the device of the last lines for another one, and their end

    @contextmanager
    def on_device_of(self, node: Node) -> Iterator[None]:
        """Lines that are written inside run where the node computes, if that is another device than the program's."""
        device = self.library.beside(*node.outputs, *node.inputs)
        if not device:
            yield
            return
        with self.text.aside() as lines:
            yield
        written, (before, end) = self.text.lines, self._beside
        if lines and not (before == device and written and written[-1] is end):
            self.text.line(f"with {self.library.at(device).around(self.names)}:")
        written += lines
        self._beside = device, written[-1] if lines else end

    def copy_to(self, target: str, source: str, node: Optional[Node] = None) -> None:
        """Fill an array with the elements of another one."""
        self.text.line(self.library.text(f"np.copyto({target}, {source})", self.names), node)

    def make(self, value: Value, node: Node) -> None:
        """Let there be memory for a value before the node fills it: its buffer, or a new array."""
        if self.values.is_placed(value):
            self.values.buffer(value)
        else:
            self.text.line(f"{self.values.new(value)} = {self.values.empty(value)}", node)

    def assign(self, node: Node, text: str) -> None:
        """Let the results of a node be what an expression gives."""
        if self.library.of(*node.outputs).gives_numbers and _gives_number(node):
            text = f"{self.names.numpy('np.asarray')}({text})"
        self.text.line(f"{self.values.assigned(node)} = {text}" if node.outputs else text, node)


def _gives_number(node: Node) -> bool:
    """Whether NumPy may give a number where the graph has an array of no dimensions."""
    return (len(node.outputs) == 1 and isinstance(node.outputs[0].type, Tensor) and node.outputs[0].shape == ()
            and node.op.kind not in ("view", "opaque"))
