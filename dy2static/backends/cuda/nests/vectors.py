"""What threads compute at a time: one element, or several that stand side by side along the last loop of a nest."""
from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence, Set, Tuple

from ....ir.dims import Size
from ....ir.graph import Value
from ...loops.ir import Accumulate, Address, Apply, Axis, Define, Expression, Kept, Load, LoopNest, Part, Statement
from ..text.dtypes import loaded, memory_type, register_type
from ..text.function import FunctionText
from .statements import NestText, address_of

#: Bytes of one load, and most elements of a thread.
_BYTES, _MOST = 16, 8

#: What is loaded: an array, and the index of its element.
Key = Tuple[Value, Address]


class VectorText(NestText):
    """Threads compute ``width`` elements at a time, which they load and store together where they are aligned: kernels test that.

    The statements of an element are the same for each width.  last: the loop along which elements stand side by side.
    """

    def __init__(self, nest: LoopNest, function: FunctionText, width: int, last: Optional[Axis]):
        super().__init__(nest, function)
        self.width, self.last = width, last
        self.loads: Dict[Key, str] = {}                     # the elements that a thread has at hand
        self.stores: List[Tuple[Value, Address, str]] = []
        self.count = "1"                                    # how many elements are left from the first on, at least one

    @property
    def element(self) -> str:
        """The number of the element that a statement is about."""
        return "e" if self.width > 1 else "0"

    def elements(self, body: Sequence[Statement]) -> None:
        """Write what is done for the elements of a thread, from the place on that the variables of loops say."""
        kernel = self.kernel
        if self.width == 1:
            self.statements(body)
            return
        self.stores = []
        before, kernel.lines, there = kernel.lines, [], dict(self.loads)
        kernel.depth += 1
        self.statements(body)
        kernel.depth -= 1
        lines, kernel.lines = kernel.lines, before
        for key, name in self.loads.items():
            if key not in there:
                kernel.line(f"{memory_type(key[0].dtype)} {name}[{self.width}];")
                self.load(key, name)
        self.loads = there
        for value, _, name in self.stores:
            kernel.line(f"{memory_type(value.dtype)} {name}[{self.width}];")
        kernel.line("#pragma unroll")
        kernel.open(f"for (int e = 0; e < {self.width}; ++e) {{")
        kernel.lines += lines
        kernel.close()
        for value, address, name in self.stores:
            kernel.line(f"dy_store({kernel.memory(value, True)} + {address_of(address)}, {name}, {self.count});")

    def load(self, key: Key, name: str) -> None:
        """Load what stands at a place, into an array of registers."""
        (array, address), kernel = key, self.kernel
        if self.width == 1:
            kernel.line(f"{name}[0] = {kernel.memory(array)}[{address_of(address)}];")
        else:
            kernel.line(f"dy_load({name}, {kernel.memory(array)} + {address_of(address)}, {self.count});")

    def define(self, value: Value, text: str, statement: Define, once: str) -> None:
        """Compute a value; if it is stored, put it where the thread collects what it stores."""
        if once or self.width == 1 or statement.store is None:
            super().define(value, text, statement, once)
            return
        local, name = self.kernel.local(value), self.kernel.variable()
        self.stores.append((value, statement.store, name))
        self.kernel.line(f"const {register_type(value.dtype)} {local} = {text};")
        self.kernel.line(f"{name}[e] = {local};")
        if statement.keep is not None:
            self.kernel.line(f"{self.kept[value]} = {local};")

    def text(self, expression: Expression) -> str:
        """An expression in CUDA: what is loaded together is at hand."""
        if not isinstance(expression, Load) or self.last is None:
            return super().text(expression)
        key = expression.array, expression.address
        step = step_of(expression.address, self.last.name)
        if key not in self.loads and (self.width == 1 or step != 1 or expression.array in self.function.inline):
            more = f" + e * {step}" if step and self.width > 1 else ""
            return self.kernel.read(expression.array, address_of(expression.address) + more)
        if key not in self.loads:
            self.loads[key] = self.kernel.variable()
        return loaded(f"{self.loads[key]}[{self.element}]", expression.array.dtype)


def width_of(nest: LoopNest, last: Axis, function: FunctionText) -> int:
    """How many elements along a loop a thread takes at a time; 1 where arrays do not have them side by side."""
    widest = 0
    for value, address, is_store in accesses(nest):
        step = step_of(address, last.name)
        if step is None or is_store and step != 1:
            return 1
        if step == 1 and value not in function.inline:
            widest = max(widest, value.dtype.itemsize)
    return min(_MOST, _BYTES // widest) if widest else 1


def is_multiple(size: Size, width: int) -> bool:
    """Whether a size is known to be so many times a width."""
    return isinstance(size, int) and size % width == 0


def step_of(address: Address, name: str) -> Optional[int]:
    """How far apart in memory neighbours along a loop are; None where no stride says it."""
    if any(isinstance(index, Part) and index.loop == name for index, _ in address.terms):
        return None
    strides = [stride for index, stride in address.terms if index == name]
    known = [stride for stride in strides if isinstance(stride, int)]
    return sum(known) if len(known) == len(strides) else None


def accesses(nest: LoopNest) -> Iterator[Tuple[Value, Address, bool]]:
    """What the sweeps of a nest load and store: arrays, where, and whether they store."""
    for sweep in nest.sweeps:
        for statement in sweep.body:
            for load in loads_of(statement):
                yield load.array, load.address, False
            if isinstance(statement, Define) and statement.store is not None:
                yield statement.value, statement.store, True


def loads_of(statement: Statement) -> Iterator[Load]:
    """The loads of a statement."""
    return (leaf for leaf in _leaves_of(statement) if isinstance(leaf, Load))


def recalls(statement: Statement, value: Value) -> bool:
    """Whether a statement reads an element of a value that an earlier sweep has kept."""
    return any(isinstance(leaf, Kept) and leaf.value is value for leaf in _leaves_of(statement))


def keys_of(nest: LoopNest, last: Axis, width: int, function: FunctionText) -> List[Set[Key]]:
    """What each sweep loads that a thread can hold in registers: ``width`` elements at a time, other ones in each turn."""
    def is_held(load: Load) -> bool:
        step = step_of(load.address, last.name)
        return load.array not in function.inline and (step != 0 if width == 1 else step == 1)
    return [{(load.array, load.address) for statement in sweep.body for load in loads_of(statement) if is_held(load)}
            for sweep in nest.sweeps]


def _leaves_of(statement: Statement) -> Iterator[Expression]:
    """What a statement reads."""
    return _leaves(statement.operand if isinstance(statement, Accumulate) else statement.expression)


def _leaves(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Apply):
        for operand in expression.operands:
            yield from _leaves(operand)
    else:
        yield expression
