"""Loops over neighbouring elements, vector by vector, as lines of C."""
from __future__ import annotations

import re
from dataclasses import replace
from typing import Mapping, Sequence

from ...ir.c_forms import c_type
from ..loops.ir import Accumulate, Define, Local, Reduction, Statement
from .accumulators import accumulated, nan_type, sees_nan, start_of
from .addresses import address_text
from .emitter import Emitter
from .lanes import VectorSpan, is_kept, reads_of_tail, value_of
from .statements import Statements


class VectorLoops(Statements):
    """Writes loops with an accumulator for each lane of a vector, and with one vector more for what is left of a row."""

    emitter: Emitter

    def _body(self, places: Mapping[str, str], body: Sequence[Statement]) -> None:
        """Statements, and in front of them those variables of places that are read, by them or by another one."""
        self.depth += 1
        begun, self.lines = self.lines, []
        self._statements(body)
        for name, text in reversed(tuple(places.items())):
            if re.search(rf"\b{name}\b", "\n".join(self.lines)):
                self.lines.insert(0, "    " * self.depth + f"const int64_t {name} = {text};")
        self.lines = begun + self.lines
        self.depth -= 1

    def _in_lanes(self, body: Sequence[Statement], reductions: Sequence[Reduction], span: VectorSpan, lanes: str) -> None:
        """A loop vector by vector, where it reduces with an accumulator for each lane; what is left is one vector more."""
        count, around = f"DY_LANES_{lanes}", self.running
        first, lane, whole = self.emitter.variable(f"{span.loop}_of"), self.emitter.variable("lane"), span.end
        self.running = {**around, **{r.value: f"lanes_{self.emitter.local(r.value)}[{lane}]" for r in reductions}}
        for reduction in reductions:
            local, start = f"lanes_{self.emitter.local(reduction.value)}", start_of(reduction.op, reduction.value)
            grown = [(c_type(reduction.value.dtype), local, start)]
            grown += [(nan_type(reduction.value), f"nan_{local}", "0")] if sees_nan(reduction.node) else []
            for type, name, value in grown:
                self._vector(type, name, lanes)
                self._line(f"for (int {lane} = 0; {lane} < {count}; ++{lane}) {name}[{lane}] = {value};")
        if not span.is_whole:
            whole = self.emitter.variable("whole")
            self._line(f"const int64_t {whole} = {span.begin} + ({span.end} - {span.begin}) / {count} * {count};")
        self._line(f"for (int64_t {first} = {span.begin}; {first} < {whole}; {first} += {count}) {{")
        self.depth += 1
        self._open_lanes(lane, count)
        self.depth -= 1
        self._body({span.loop: f"{first} + {lane}", span.place: span.loop}, body)
        self.depth += 1
        self._close(2)
        if not span.is_whole:
            self._line(f"if ({whole} < {span.end}) {{")
            self.depth += 1
            self._tail(body, span._replace(begin=whole), lane, lanes)
            self._close(1)
        for reduction in reductions:
            local = self.emitter.local(reduction.value)
            self._line(f"sum_{local} = dy_joined_{reduction.op}_{lanes}(lanes_{local});")
            if sees_nan(reduction.node):
                self._line(f"nan_sum_{local} = dy_joined_nan_{lanes}(nan_lanes_{local});")
        self.running = around

    def _tail(self, body: Sequence[Statement], span: VectorSpan, lane: str, lanes: str) -> None:
        """The last elements of a row, fewer than a vector, as a whole vector, whose other lanes have the first of these elements.

        So no lane computes what the row does not, such as a quotient of zeros.  All is read before anything is written.
        """
        count, rest = f"DY_LANES_{lanes}", self.emitter.variable("rest")
        self._line(f"const int {rest} = (int)({span.end} - {span.begin});")
        for read in reads_of_tail(body, span) or []:
            name, at = self.emitter.variable("last"), self._text(replace(read, address=span.elsewhere(read.address, span.begin)))
            self._vector(c_type(value_of(read).dtype), name, lanes)
            self._line(f"dy_last_{lanes}({name}, &{at}, {rest});")
            self.fetched[read] = f"{name}[{lane}]"
        made = {statement: self.emitter.variable("made") for statement in body if is_kept(statement)}
        for statement, name in made.items():
            self._vector(c_type(value_of(statement).dtype), name, lanes)
        self._open_lanes(lane, count)
        self.names = {}
        for statement in body:
            if not isinstance(statement, Accumulate):
                self._statements((replace(statement, store=None, keep=None) if isinstance(statement, Define) else statement,))
            if statement in made:
                text = self._text(statement.operand if isinstance(statement, Accumulate) else Local(statement.value))
                self._line(f"{made[statement]}[{lane}] = {text};")
        self._close(1)
        self.fetched = {}
        for statement, name in made.items():
            if isinstance(statement, Accumulate):
                node = statement.reduction.node
                self._line(f"dy_only_{lanes}({name}, {rest}, {start_of(node.op.name, node.outputs[0])});")
                self._open_lanes(lane, count)
                self._line(accumulated(node, self.running[node.outputs[0]], f"{name}[{lane}]"))
                self._close(1)
            elif isinstance(statement, Define):
                for target, address in ((self.emitter.name(statement.value) if statement.store else "", statement.store),
                                        (self.rows.get(statement.value, ""), statement.keep)):
                    if address is not None:
                        place = address_text(span.elsewhere(address, f"({span.begin} + {lane})"))
                        self._line(f"for (int {lane} = 0; {lane} < {rest}; ++{lane}) {target}[{place}] = {name}[{lane}];")

    def _vector(self, type: str, name: str, lanes: str) -> None:
        self._line(f"{type} {name}[DY_LANES_{lanes}] __attribute__((aligned(64)));")

    def _open_lanes(self, lane: str, count: str) -> None:
        """A loop over the elements of a vector."""
        self._line("#pragma omp simd")
        self._line(f"for (int {lane} = 0; {lane} < {count}; ++{lane}) {{")
        self.depth += 1
