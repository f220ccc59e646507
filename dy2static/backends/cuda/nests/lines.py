"""How threads go over a line of elements side by side, such as a row; what they read again stays in registers."""
from __future__ import annotations

from typing import Any, Dict, List, Sequence

from ....ir.dims import Size
from ...loops.ir import Axis, Define, LoopNest, Sweep
from ..program.sizes import Number, ceiling, settled
from ..text.dtypes import computed, memory_type, register_type
from ..text.function import FunctionText
from ..text.indices import split_index
from .statements import count_of, sizes_and_names
from .vectors import Key, VectorText, accesses, keys_of, recalls

#: Most elements of a line that registers hold for a thread.
_TURNS = 32

#: Registers for what a thread reads again: more of them would leave place for fewer threads.
_WORDS = 32


class LineText(VectorText):
    """Threads share lines: each takes ``width`` elements in a turn, and the threads of a line stand side by side.

    axes: the loops of a line.  threads: of a line.  lane: the text of the number of a thread among them.
    turns: how often a thread comes to elements of a line that registers hold: always, if it has few; else not at all, or in the
    first turns.  is_more: whether it comes to others after these.
    """

    def __init__(self, nest: LoopNest, function: FunctionText, width: int, axes: Sequence[Axis], threads: Number, lane: str):
        super().__init__(nest, function, width, axes[-1] if axes else None)
        self.axes, self.size, self.threads, self.lane = axes, count_of(axes), threads, lane
        self.turns, self.is_more = self._turns(), False
        self.early = self._early() if self.turns else []
        self.count = str(width)

    @property
    def at(self) -> str:
        """The number of an element of the line."""
        return f"k + {self.element}" if self.width > 1 else "k"

    def _turns(self) -> int:
        """How often a thread comes to elements of its row, if registers hold what it reads again; else 0."""
        size: Size = self.size
        if not isinstance(size, int) or not isinstance(self.threads, int) or self.last is None:
            return 0
        turns = ceiling(size, self.threads * self.width)
        return turns if turns * self.width <= _TURNS and self._words_lasting(turns) <= _WORDS else 0

    def hold_first_turns(self) -> None:
        """Have registers hold what a thread reads again of the first elements of a line; nothing of it is kept."""
        if self.turns or self.last is None or not isinstance(self.size, int) or not isinstance(self.threads, int):
            return
        words = self._words_lasting(1)
        most = _WORDS if all(array.dtype.itemsize < 8 for array, _, _ in accesses(self.nest)) else _WORDS // 2
        self.turns = min(self.size // (self.threads * self.width), most // words) if words else 0
        self.is_more = self.turns > 0
        self.early = self._early() if self.turns else []

    def _words_lasting(self, turns: int) -> int:
        """The registers that a thread needs between two sweeps, at most, for what has been read or kept and is read again."""
        assert self.last is not None
        keys, sweeps = keys_of(self.nest, self.last, self.width, self.function), self.nest.sweeps
        most = 0
        for number in range(1, len(sweeps)):
            before, behind = ([statement for sweep in part for statement in sweep.body]
                              for part in (sweeps[:number], sweeps[number:]))
            dtypes = [array.dtype for array, _ in set().union(*keys[:number]).intersection(set().union(*keys[number:]))]
            dtypes += [computed(statement.value.dtype) for statement in before if isinstance(statement, Define)
                       and statement.keep is not None and any(recalls(later, statement.value) for later in behind)]
            most = max(most, sum(self._words(turns, dtype.itemsize) for dtype in dtypes))
        return most

    def _words(self, turns: int, itemsize: int) -> int:
        """The registers for an array of so many elements of a thread."""
        return turns * ceiling(self.width * itemsize, 4)

    def _early(self) -> List[List[Key]]:
        """What a thread loads before each sweep, all at once: what later sweeps also read, and the rest if registers suffice.

        If they suffice for what all sweeps read, it is loaded before the first one: memory is waited for once.  What the nest
        itself stores is loaded later.
        """
        assert self.last is not None
        keys = keys_of(self.nest, self.last, self.width, self.function)
        order = {(value, at): None for value, at, _ in accesses(self.nest)}
        stored = {value for value, _, is_store in accesses(self.nest) if is_store}
        first = [key for key in order if key[0] not in stored and any(key in here for here in keys)]
        if sum(self._words(self.turns, array.dtype.itemsize) for array, _ in first) > _WORDS:
            first = []
        found: List[List[Key]] = []
        held: Dict[Key, None] = dict.fromkeys(first)
        for number, here in enumerate(keys):
            lasting = [key for key in order if key in here and key not in held and any(key in later for later in keys[number + 1:])]
            once = [key for key in order if key in here and key not in held and key not in lasting]
            held.update(dict.fromkeys(lasting))
            words = sum(self._words(self.turns, array.dtype.itemsize) for array, _ in (*held, *once))
            found.append([*lasting, *(once if words <= _WORDS else ())])
        return [[*first, *found[0]], *found[1:]]

    def hold(self, name: str, dtype: Any) -> str:
        """Declare registers for the elements of a thread; gives the one of the element at hand.  Only with ``turns``."""
        self.kernel.line(f"{register_type(dtype)} {name}[{self.turns}][{self.width}];")
        return f"{name}[t][{self.element}]"

    def line(self, sweep: Sweep) -> None:
        """One run of a thread over its elements of a line."""
        if self.turns:
            self.load_early(self.early[self.nest.sweeps.index(sweep)])
            self.turn()
            self.body(sweep)
        if self.is_more or not self.turns:
            held, self.loads = self.loads, {}
            scale = f" * {self.width}" if self.width > 1 else ""
            threads = self.threads if isinstance(self.threads, int) else "blockDim.x"
            first = f"{self.turns * settled(self.threads) * self.width} + " if self.turns else ""
            self.kernel.open(f"for (dy_index k = {first}{self.lane}{scale}; k < {self.size}; k += {threads}{scale}) {{")
            self.body(sweep)
            self.loads = held

    def body(self, sweep: Sweep) -> None:
        """What a thread does in a turn; ends the loop."""
        split_index(self.kernel, "k", *sizes_and_names(self.axes))
        self.elements(sweep.body)
        self.kernel.close()

    def turn(self) -> None:
        """Begin the loop of a thread over its elements of the row."""
        kernel = self.kernel
        kernel.line("#pragma unroll")
        kernel.open(f"for (int t = 0; t < {self.turns}; ++t) {{")
        scale = f" * {self.width}" if self.width > 1 else ""
        kernel.line(f"const dy_index k = (t * {self.threads} + {self.lane}){scale};")
        if not self.is_more and settled(self.size) % (settled(self.threads) * self.width):
            kernel.line(f"if (k >= {self.size}) continue;")

    def load_early(self, keys: Sequence[Key]) -> None:
        """Load elements of the row, all of them before the first is read."""
        if not keys:
            return
        kernel = self.kernel
        for array, address in keys:
            name = kernel.variable()
            self.loads[array, address] = f"{name}[t]"
            kernel.line(f"{memory_type(array.dtype)} {name}[{self.turns}][{self.width}];")
        self.turn()
        split_index(kernel, "k", *sizes_and_names(self.axes))
        for key in keys:
            self.load(key, self.loads[key])
        kernel.close()
