"""The loop IR: one loop nest as data, made by `schedule` and turned into text by the renderer of each language.

A nest runs over all elements of a shape: the loops ``outer`` over rows, and in each row *sweeps* of the loops ``inner`` over
its elements.  Everything is decided here that does not depend on a language: which loops there are, what each sweep
computes, what is stored where, what is kept for a later sweep, and which loop threads share.  Everything is frozen;
``str(nest)`` is for people.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple, Union

from ...ir.dims import Size
from ...ir.graph import Node, Value
from .parallelize import Share


@dataclass(frozen=True)
class Axis:
    """One loop: its variable, how many turns it has, and the axes of the shape that it runs over together."""

    name: str
    size: Size
    axes: Tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """The index along one of the axes that a loop runs over together: ``loop / divisor % modulus``; modulus None: no limit."""

    loop: str
    divisor: Size = 1
    modulus: Optional[Size] = None

    def __str__(self) -> str:
        text = self.loop if self.divisor == 1 else f"{self.loop} / {self.divisor}"
        return f"({text})" if self.modulus is None else f"({text} % {self.modulus})"


@dataclass(frozen=True)
class Address:
    """Which element of an array: ``offset + index * stride + ...``, where an index is a variable, or part of one."""

    offset: Size = 0
    terms: Tuple[Tuple[Union[str, Part], Size], ...] = ()

    def __str__(self) -> str:
        texts = [str(self.offset)] if self.offset else []
        texts += [f"{index} * {stride}" if stride != 1 else str(index) for index, stride in self.terms]
        return " + ".join(texts) or "0"


# Expressions ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Local:
    """A number at hand: a single number, the result of a row, or an element that this sweep has made."""

    value: Value


@dataclass(frozen=True)
class Load:
    """An element of an array in memory."""

    array: Value
    address: Address


@dataclass(frozen=True)
class Kept:
    """An element that an earlier sweep has left in the row buffer of a value."""

    value: Value
    address: Address


@dataclass(frozen=True)
class Apply:
    """The op of an elementwise node on these operands."""

    node: Node
    operands: Tuple["Expression", ...]


Expression = Union[Local, Load, Kept, Apply]


# Statements -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Define:
    """Compute a value.  store: where it also goes in its memory; keep: where it goes in its row buffer."""

    value: Value
    expression: Expression
    store: Optional[Address] = None
    keep: Optional[Address] = None


@dataclass(frozen=True)
class Recall:
    """Get an element again that an earlier sweep has made: load it, or compute it once more."""

    value: Value
    expression: Expression


@dataclass(frozen=True)
class Accumulate:
    """Add an element to the result of a reduction, with the op of the reduction."""

    reduction: "Reduction"
    operand: Expression


Statement = Union[Define, Recall, Accumulate]


@dataclass(frozen=True)
class Reduction:
    """A node that reduces.

    address: where its result is, or where it grows.  is_total: it is ready when the nest is over, not at the end of each row.
    in_register: it grows in a number while the innermost loop runs, not in memory.  stored: its result has memory.
    """

    node: Node
    address: Address
    is_total: bool
    in_register: bool
    stored: bool

    @property
    def value(self) -> Value:
        """What it computes."""
        return self.node.outputs[0]

    @property
    def op(self) -> str:
        """The name of its op."""
        return self.node.op.name


# Loops ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sweep:
    """One run over a row.

    before: what is computed in front of it from results of the row.  body: what is done for each element.  block: 0, or so many
    turns of the innermost loop are summed on their own, and these sums in double precision.
    """

    before: Tuple[Define, ...] = ()
    body: Tuple[Statement, ...] = ()
    reductions: Tuple[Reduction, ...] = ()
    block: int = 0

    @property
    def of_rows(self) -> List[Reduction]:
        """The reductions that are ready at the end of the row."""
        return [reduction for reduction in self.reductions if not reduction.is_total]

    @property
    def totals_in_register(self) -> List[Reduction]:
        """The reductions over the whole nest whose element does not move while the innermost loop runs."""
        return [reduction for reduction in self.reductions if reduction.is_total and reduction.in_register]


@dataclass(frozen=True)
class LoopNest:
    """A loop nest over the elements of ``shape``.

    split: the first axis of a row; None where there are no rows.  totals: the reductions that are ready in the end.
    after: what is computed at the end of each row.  kept: values that have a row buffer.  share: the loop that threads share.
    """

    shape: Tuple[Size, ...]
    split: Optional[int]
    outer: Tuple[Axis, ...]
    inner: Tuple[Axis, ...]
    sweeps: Tuple[Sweep, ...]
    totals: Tuple[Reduction, ...] = ()
    after: Tuple[Define, ...] = ()
    kept: Tuple[Value, ...] = ()
    share: Optional[Share] = None

    def __str__(self) -> str:
        return "\n".join(_Printer(self).lines) + "\n"


class _Printer:
    """The lines of a nest for people."""

    def __init__(self, nest: LoopNest):
        self.names: Dict[Value, str] = {}
        self.lines = [f"nest {nest.shape}" + ("" if nest.split is None else f", rows from axis {nest.split}")]
        if nest.share is not None:
            share, sums = nest.share, ", each with its sums" * nest.share.private
            self.lines.append(f"share {share.name} in {share.shares} parts of {share.step}{sums}")
        self.lines += [f"keep {self.name(value)}: {value.dtype}" for value in nest.kept]
        self.lines += [f"total {self.name(total.value)} = {total.op}" for total in nest.totals]
        depth = self._loops(nest.outer, 0)
        for number, sweep in enumerate(nest.sweeps):
            self._statements(sweep.before, depth)
            if sweep.body:
                self._line(depth, f"sweep {number}" + (f" in blocks of {sweep.block}" if sweep.block else ""))
                self._statements(sweep.body, self._loops(nest.inner, depth + 1))
                for reduction in sweep.of_rows:
                    self._line(depth, f"{self.name(reduction.value)} done{self._store(reduction)}")
        self._statements(nest.after, depth)

    def name(self, value: Value) -> str:
        """The name of a value, the same each time, and of no other."""
        if value not in self.names:
            hint = value.name or "v"
            names, count = set(self.names.values()), 0
            self.names[value] = hint
            while self.names[value] in names:
                count += 1
                self.names[value] = f"{hint}_{count}"
        return self.names[value]

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def _loops(self, axes: Tuple[Axis, ...], depth: int) -> int:
        for axis in axes:
            self._line(depth, f"for {axis.name} in {axis.size}:")
            depth += 1
        return depth

    def _store(self, reduction: Reduction) -> str:
        return f" -> {self.name(reduction.value)}[{reduction.address}]" if reduction.stored else ""

    def _statements(self, statements: Tuple[Statement, ...], depth: int) -> None:
        for statement in statements:
            if isinstance(statement, Accumulate):
                reduction, name = statement.reduction, self.name(statement.reduction.value)
                to = name if reduction.in_register else f"{name}[{reduction.address}]"
                self._line(depth, f"{to} {reduction.op}= {self._text(statement.operand)}")
                continue
            text = f"{self.name(statement.value)} = {self._text(statement.expression)}"
            if isinstance(statement, Recall):
                text += " (again)"
            else:
                text += "" if statement.store is None else f" -> {self.name(statement.value)}[{statement.store}]"
                text += "" if statement.keep is None else f" -> row[{statement.keep}]"
            self._line(depth, text)

    def _text(self, expression: Expression) -> str:
        if isinstance(expression, Local):
            return self.name(expression.value)
        if isinstance(expression, Load):
            return f"{self.name(expression.array)}[{expression.address}]"
        if isinstance(expression, Kept):
            return f"row of {self.name(expression.value)}[{expression.address}]"
        node = expression.node
        attrs = [f"{key}={value}" for key, value in node.attrs.items()]
        return f"{node.op.name}({', '.join([*map(self._text, expression.operands), *attrs])})"
