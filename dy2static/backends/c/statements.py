"""Statements of loop nests as lines of C."""
from __future__ import annotations

from typing import Dict, List, Optional, Sequence

from ...ir.c_forms import c_type
from ...ir.graph import Value
from ..loops.ir import Accumulate, Address, Define, Expression, Kept, Load, Local, Recall, Reduction, Statement
from .accumulators import accumulated, combined
from .addresses import address_text
from .emitter import Emitter


class Statements:
    """Collects lines, and knows where the elements are that statements read."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.lines: List[str] = []
        self.depth = 0
        self.number = 0                                     # of the sweep at hand
        self.names: Dict[Value, str] = {}                   # of elements that the sweep at hand has got again
        self.own: Dict[Value, str] = {}                     # the memory of totals that belongs to one share
        self.running: Dict[Value, str] = {}                 # what grows instead of an accumulator: a total's element, or a lane
        self.fetched: Dict[Expression, str] = {}            # where elements are that were turned, or put into whole vectors
        self.rows: Dict[Value, str] = {}                    # row buffers

    def _line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def _close(self, count: int) -> None:
        for _ in range(count):
            self.depth -= 1
            self._line("}")

    def _statements(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            if isinstance(statement, Define):
                self._define(statement.value, self._text(statement.expression), statement.store)
                if statement.keep is not None:
                    place = f"{self.rows[statement.value]}[{address_text(statement.keep)}]"
                    self._line(f"{place} = {self.emitter.local(statement.value)};")
            elif isinstance(statement, Recall):
                self._recall(statement)
            else:
                self._accumulate(statement)

    def _define(self, value: Value, text: str, store: Optional[Address]) -> None:
        local = self.emitter.local(value)
        self._line(f"const {c_type(value.dtype)} {local} = {text};")
        if store is not None:
            name = self.emitter.name(value)
            target = f"((uint8_t *){name})" if value.dtype.kind == "b" else name   # gcc 12 has no vectors for some stores of bool
            self._line(f"{target}[{address_text(store)}] = {local};")

    def _recall(self, statement: Recall) -> None:
        value, text = statement.value, self._text(statement.expression)
        name = self.names[value] = self.emitter.variable(f"{self.emitter.local(value)}_in_{self.number}")
        self._line(f"const {c_type(value.dtype)} {name} = {text};")

    def _accumulate(self, statement: Accumulate) -> None:
        reduction, operand = statement.reduction, self._text(statement.operand)
        running = self.running.get(reduction.value)
        if running is not None:
            self._line(accumulated(reduction.node, running, operand))
        elif reduction.in_register:
            self._line(accumulated(reduction.node, f"sum_{self.emitter.local(reduction.value)}", operand))
        else:
            self._line(combined(reduction.node, self._target(reduction), operand))

    def _text(self, expression: Expression) -> str:
        if isinstance(expression, Local):
            return self.names.get(expression.value) or self.emitter.local(expression.value)
        if expression in self.fetched:
            return self.fetched[expression]
        if isinstance(expression, Load):
            return self.emitter.read(expression.array, address_text(expression.address))
        if isinstance(expression, Kept):
            return f"{self.rows[expression.value]}[{address_text(expression.address)}]"
        return self.emitter.expression(expression.node, [self._text(operand) for operand in expression.operands])

    def _target(self, reduction: Reduction) -> str:
        """Where the result of a reduction grows."""
        value = reduction.value
        if value not in self.own and value.ndim == 0:
            return self.emitter.local(value)
        return f"{self.own.get(value) or self.emitter.name(value)}[{address_text(reduction.address)}]"
