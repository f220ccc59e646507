"""A C function while it is written: the `Emitter` that rules of ops are given."""
from __future__ import annotations

import contextlib
import math
from typing import AbstractSet, Any, Collection, ContextManager, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ...ir.c_forms import c_expression
from ...ir.dims import Size
from ...ir.graph import Graph, Node, Value
from ...ir.types import Tensor
from ..loops.layout import Place, Places, place_of
from ..loops.parallelize import Share
from .call_list import Cell
from .emitter import FlowEmitter
from .extents import Sizes
from .lists import is_list
from .memory import Memory
from .names import CNames
from .nests import begin_of, copy
from .outline import Parts
from .scalars import literal, passes_on, scalar_type
from .standalone import Standalone
from .text import Text

#: What stands for the call that frees lists that nothing has; which lists there are is known in the end.
SWEEP = "DY_SWEEP"


class FunctionEmitter(FlowEmitter):
    """Holds the text, the names, the memory and the places of one function.

    parts: the functions of the file.  read_by: what reads each value.  needed: the values that must be in memory at present.
    standalone: None for a function that Python stands behind.  named: values whose memory has been named since this was emptied,
    and their names.  becomes: values in whose place others are made, by those.
    """

    def __init__(self, graph: Graph, parts: Parts, read_by: Mapping[Value, Collection[Optional[Node]]],
                 standalone: Optional[Standalone] = None):
        self.standalone = standalone
        self.parts, self.read_by = parts, read_by
        self.names, self.text = CNames(), Text()
        self.sizes = Sizes(graph)
        self.memory = Memory(self.names, self.text, self.sizes.made)
        self.places = Places(lambda: self.names.fresh("at", "const int64_t"))
        self.needed: AbstractSet[Value] = frozenset()
        self.storages, self.generator = self.names.take("all_lists"), ""
        self.stacks: List[str] = []
        self.lists: List[str] = []                        # variables that hold lists
        self.cells: Dict[str, Cell] = {}                  # by the lines that declare them
        self.named: Dict[Value, str] = {}
        self.becomes: Mapping[Value, Value] = {}
        self._locals: Dict[Value, str] = {}

    # Text

    def begin(self, nodes: Sequence[Node]) -> None:
        """The lines that follow are for these nodes."""
        self.parts.nodes = nodes
        if self.standalone is not None:
            self.standalone.mark(self.text, nodes)

    def line(self, text: str) -> None:
        self.text.line(text)

    def lines(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.text.line(text)

    def indented(self) -> ContextManager[None]:
        return self.text.indented()

    def part(self, lines: Sequence[str], share: Optional[Share] = None) -> None:
        self.line(self.parts.call(lines, self.names.types, self.names.taken, share))

    def body(self, lines: Sequence[str], of_part: bool = False) -> Tuple[str, str]:
        return self.parts.body(lines, self.names.types, self.names.taken, of_part)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Lines that threads share are in functions already."""
        with self.text.apart() as lines:
            yield
        if any("dy_share" in line for line in lines):
            self.lines(lines)
        else:
            self.part(lines)

    @contextlib.contextmanager
    def shared(self, share: Share) -> Iterator[None]:
        """Lines written inside that would bail out say so, and it is done afterwards."""
        with self.text.apart() as lines:
            yield
        bails = any("goto bail;" in line for line in lines)
        if bails:
            status, told = self.variable("status"), self.variable("told", "int *")
            self.line(f"int {status} = 0, *const {told} = &{status};")
            lines = [line.replace("goto bail;", f"{{ __atomic_store_n({told}, 1, __ATOMIC_RELAXED); return; }}") for line in lines]
        self.part(lines, share)
        if bails:
            self.line(f"if ({status}) goto bail;")

    # Names and expressions

    def variable(self, hint: str, type: str = "") -> str:
        return self.names.fresh(hint, type)

    def cell(self, name: str, type: str) -> str:
        """A pointer to a number variable that is declared here, without a value."""
        pointer = self.variable("to", f"{type} *")
        line = f"{type} {name}, *const {pointer} = &{name};"
        self.cells[line] = Cell(name, pointer, type)
        self.line(line)
        return pointer

    def local(self, value: Value) -> str:
        if value in self._locals:
            return self._locals[value]
        if value in self.places.constants:
            name = literal(self.places.constants[value], value.type)
        elif is_list(value):
            name = self.names.fresh(value.name)
            self.lists.append(name)
        elif value.ndim:
            name = self.names.fresh(f"{value.name}_")
        else:
            name = self.names.fresh(value.name, f"const {scalar_type(value.type)}")
        return self._locals.setdefault(value, name)

    def rename(self, value: Value, name: str) -> None:
        self._locals[value] = name

    def same_number(self, node: Node) -> bool:
        """Let the result of a node that only passes a number on be the variable of its operand; whether that can be."""
        (value,) = node.outputs
        if not passes_on(node) or self.stored(value):
            return False
        base = self.place(node.inputs[0]).base if isinstance(node.inputs[0].type, Tensor) else node.inputs[0]
        if base.ndim or base in self.places.constants:
            return False
        self.rename(value, self.local(base))
        return True

    def scalar(self, value: Value) -> str:
        return self.element(self.place(value), []) if isinstance(value.type, Tensor) else self.local(value)

    def element(self, place: Place, terms: Sequence[str]) -> str:
        if place.base.ndim == 0:
            return self.local(place.base)
        return self.read(place.base, " + ".join([*begin_of(place), *terms]) or "0")

    def read(self, value: Value, address: str) -> str:
        """Loops that load C's bool stay scalar (gcc 12): it is loaded as a byte."""
        name = self.name(value)
        return f"(((const uint8_t *){name})[{address}] != 0)" if value.dtype.kind == "b" else f"{name}[{address}]"

    def expression(self, node: Node, operands: Sequence[str]) -> str:
        text = c_expression(node.op, operands, [v.type for v in node.inputs], node.outputs[0].type, node.attrs)
        assert text is not None, f"{node} has no form in C"
        return text

    def declaration(self, value: Value) -> str:
        """Lists are declared at the top."""
        return "" if is_list(value) else f"{scalar_type(value.type)} "

    # Memory

    def place(self, value: Value) -> Place:
        return self.places.of(value)

    def constant(self, number: Any, dtype: Any) -> Value:
        return self.places.constant(number, dtype)

    def number(self, value: Value) -> Any:
        return self.places.constants.get(value)

    def name(self, value: Value) -> str:
        pointer = self.memory.pointer(value)
        if pointer is None and value in self.becomes:
            pointer = self.name(self.becomes[value])
            self.memory.put(value, pointer)
        elif pointer is None:
            buffer = self.memory.buffer(value.name, math.prod(value.shape), value.dtype)
            pointer = buffer.name
            self.memory.put(value, pointer, buffer)
        self.memory.used(pointer)
        self.named[value] = pointer
        return pointer

    def pointer(self, value: Value) -> str:
        place = self.place(value)
        if place.base.ndim and place.compact:
            begin = begin_of(place)
            return f"({' + '.join([self.name(place.base), *begin])})" if begin else self.name(place.base)
        buffer = self.memory.buffer(value.name, math.prod(value.shape), value.dtype)
        self.copy(place_of(value), place, buffer.name)
        return buffer.name

    def stored(self, value: Value) -> bool:
        return value in self.needed and (value.ndim > 0 or self.has_memory(value))

    def is_read(self, value: Value) -> bool:
        return bool(self.read_by.get(value))

    def has_memory(self, value: Value) -> bool:
        return self.memory.pointer(value) is not None

    def put_at(self, value: Value, pointer: str) -> None:
        self.memory.put(value, pointer)

    def scratch(self, count: Size, dtype: Any) -> str:
        return self.memory.buffer("row", count, dtype).name

    def copy(self, target: Place, source: Place, pointer: str) -> None:
        copy(self, target, source, pointer)

    # Sizes, stacks and lists

    def size_is_known(self, symbol: str) -> None:
        for test in self.sizes.known_by(symbol):
            self.line(f"if ({test}) goto bail;")

    def new_stack(self, value: Value) -> str:
        name = self.names.fresh(value.name)
        self.rename(value, name)
        self.stacks.append(name)
        return name

    def sweep_lists(self) -> None:
        if self.lists:
            self.line(SWEEP)
