"""A loop nest as lines of C: all that is said in this language, and nothing that is decided."""
from __future__ import annotations

import math
from types import MappingProxyType
from typing import Container, Dict, List, Mapping, Sequence, Tuple

from ...ir.c_forms import c_type
from ...ir.dims import is_known
from ...ir.graph import Value
from ..loops.ir import Axis, Load, LoopNest, Reduction, Sweep
from .accumulators import COMBINE, SUFFIXES, accumulator_type, combined, joined, merged, nan_type, sees_nan, start_of
from .addresses import address_text
from .distribution import distribute, types_of
from .emitter import Emitter, NestText
from .jamming import may_jam
from .lanes import VectorSpan, in_vectors, lanes_of
from .turned_loads import HEIGHT, WIDTH, corner, turned_loads
from .vector_loops import VectorLoops

#: So many turns of a loop are done together where that saves memory traffic.
_JAMMED = 4


def render(nest: LoopNest, emitter: Emitter, spans: Mapping[str, Tuple[str, str]] = MappingProxyType({}),
           whole: Container[str] = ()) -> NestText:
    """The C text of a nest.

    spans: where loops begin and end, by name, if only a part of the nest is wanted, by several threads at a time.  whole: those of
    them that have whole vectors.
    """
    renderer = _Renderer(nest, emitter, spans, whole)
    renderer.write()
    after: List[str] = []
    for total in nest.totals:
        value = total.value
        if value in renderer.sums:
            assert nest.share is not None
            target = emitter.name(value) if value.ndim or total.stored else ""
            after += joined(total.node, renderer.sums[value], nest.share.shares, target, "" if value.ndim else emitter.local(value))
    return NestText(renderer.before, renderer.lines, after)


class _Renderer(VectorLoops):
    """Collects the lines of one nest."""

    def __init__(self, nest: LoopNest, emitter: Emitter, spans: Mapping[str, Tuple[str, str]], whole: Container[str]):
        super().__init__(emitter)
        self.nest, self.spans, self.whole = nest, spans, whole
        self.before: List[str] = []
        self.sums: Dict[Value, str] = {}                    # the memory of totals that each share sums for itself
        self.rows = {value: self._row_buffer(value) for value in nest.kept}

    def write(self) -> None:
        for total in self.nest.totals:
            self._start_total(total)
        self._open(self.nest.outer)
        for number, sweep in enumerate(self.nest.sweeps):
            self._statements(sweep.before)
            if sweep.body:
                self._sweep(number, sweep)
        self._statements(self.nest.after)
        self._close(len(self.nest.outer))
        for total in self.nest.totals:
            value = total.value
            if value.ndim == 0 and value not in self.sums and total.stored:
                self._line(f"{self.emitter.name(value)}[0] = {self.emitter.local(value)};")

    # Loops

    def _span(self, axis: Axis) -> Tuple[str, str]:
        """Where a loop begins and ends."""
        share = self.nest.share
        if axis.name in self.spans:
            return self.spans[axis.name]
        return ("begin", "end") if share is not None and share.name == axis.name else ("0", str(axis.size))

    def _open(self, axes: Sequence[Axis]) -> None:
        for axis in axes:
            begin, end = self._span(axis)
            self._line(f"for (int64_t {axis.name} = {begin}; {axis.name} < {end}; ++{axis.name}) {{")
            self.depth += 1

    def _row_buffer(self, value: Value) -> str:
        """Memory for a row: threads have their own."""
        size = math.prod(axis.size for axis in self.nest.inner)
        if self.nest.share is None and not self.spans:
            return self.emitter.scratch(size, value.dtype)
        name = self.emitter.variable("row")
        self._line(f"{c_type(value.dtype)} {name}[{size}] __attribute__((aligned(64)));")
        return name

    def _sweep(self, number: int, sweep: Sweep) -> None:
        self.names, self.number = {}, number
        inner, of_rows = self.nest.inner, sweep.of_rows
        nested = bool(sweep.block) or len(inner) > 1            # sums of sums, these in double precision
        prefix = "all_" if nested else "sum_"
        for reduction in of_rows:
            self._declare(reduction, prefix, nested)
        if may_jam(self.nest, sweep):
            self._jammed(sweep)
            return
        turned = turned_loads(self.nest, sweep)
        if turned:
            self._in_squares(sweep, turned)
            return
        self._open(inner[:-1])
        if sweep.block:
            begin, end = self._span(inner[-1])
            self._line(f"for (int64_t b = {begin}; b < {end}; b += {sweep.block}) {{")
            self.depth += 1
        self._innermost(sweep, nested)
        self._close(bool(sweep.block))
        self._close(len(inner[:-1]))
        for reduction in of_rows:
            text = self._finished(reduction, prefix)
            self._define(reduction.value, text, reduction.address if reduction.stored else None)

    def _innermost(self, sweep: Sweep, nested: bool) -> None:
        """The loop over neighbouring elements, with what grows in registers declared before and put away behind."""
        totals, of_rows, inner = sweep.totals_in_register, sweep.of_rows, self.nest.inner
        for reduction in totals + (of_rows if nested else []):
            self._declare(reduction, "sum_")
        if inner:
            self._elements(sweep, inner[-1])
        else:
            self._statements(sweep.body)
        for reduction in totals:
            self._line(combined(reduction.node, self._target(reduction), self._finished(reduction, "sum_")))
        if nested:
            for reduction in of_rows:
                local = self.emitter.local(reduction.value)
                self._line(merged(reduction.node, f"all_{local}", f"sum_{local}"))

    def _elements(self, sweep: Sweep, axis: Axis) -> None:
        """The loop itself, or one for each of its stages."""
        begin, end = self._span(axis)
        if sweep.block:
            begin, end = "b", f"(b + {sweep.block} < {end} ? b + {sweep.block} : {end})"
        place = self.emitter.variable("at")
        bodies, buffers, strip = distribute(sweep, axis.size, place)
        in_strips = len(bodies) > 1 and not (is_known(axis.size) and strip >= axis.size)
        places = {place: axis.name}
        if in_strips:
            first, count = self._open_strips(axis, begin, end, strip)
            places = {axis.name: f"{first} + {place}"}
        around = self.rows
        self.rows = {**around, **{value: self._strip_buffer(value, strip) for value in buffers}}
        for body in bodies:
            self.names = {}
            reductions = sweep.totals_in_register + sweep.of_rows if body is bodies[-1] else []
            is_whole = axis.name in self.whole if axis.name in self.spans else self._span(axis) == ("0", str(axis.size))
            span = VectorSpan(axis.name, place, begin, end, is_whole and in_vectors(axis))
            apart = len(reductions) != len(sweep.reductions) or not (reductions or self._in_rows(axis))
            lanes = "" if in_strips or apart else lanes_of(body, reductions, axis, span, self.emitter.standalone is None)
            if lanes:
                self._in_lanes(body, reductions, span, lanes)
                continue
            self._line(f"#pragma omp simd{''.join(map(self._clause, reductions))}")
            name, start, behind = (place, "0", count) if in_strips else (axis.name, begin, end)
            self._line(f"for (int64_t {name} = {start}; {name} < {behind}; ++{name}) {{")
            self._body(places, body)
            self._line("}")
        self.rows = around
        self._close(int(in_strips))

    def _in_rows(self, axis: Axis) -> bool:
        """Whether the innermost loop runs many times."""
        return bool(self.nest.outer) or self.nest.inner[0] is not axis

    def _open_strips(self, axis: Axis, begin: str, end: str, strip: int) -> Tuple[str, str]:
        """Open a loop over strips of a loop; gives the variables of where one begins, and of how many turns it has."""
        first, count = self.emitter.variable(f"{axis.name}_of"), self.emitter.variable("count")
        self._line(f"for (int64_t {first} = {begin}; {first} < {end}; {first} += {strip}) {{")
        self.depth += 1
        equal = begin == "0" and end == str(axis.size) and is_known(axis.size) and axis.size % strip == 0
        length = strip if equal else f"{first} + {strip} < {end} ? {strip} : {end} - {first}"
        self._line(f"const int64_t {count} = {length};")
        return first, count

    def _strip_buffer(self, value: Value, strip: int) -> str:
        name = self.emitter.variable("strip")
        self._line(f"{c_type(value.dtype)} {name}[{strip}] __attribute__((aligned(64)));")
        return name

    def _jammed(self, sweep: Sweep) -> None:
        """A sweep whose totals grow in memory: several turns of the loop around the innermost one are done together, in their
        order, so that each element of a total is read and written once for all of them.
        """
        *outer, axis, inner = self.nest.inner
        self._open(outer)
        begin, end = self._span(axis)
        first = self.emitter.variable(f"{axis.name}_of")
        self._line(f"int64_t {first} = {begin};")
        self._line(f"for (; {first} + {_JAMMED} <= {end}; {first} += {_JAMMED}) {{")
        self.depth += 1
        self._line("#pragma omp simd")
        self._open((inner,))
        for total in sweep.reductions:
            name = self.running[total.value] = f"all_{self.emitter.local(total.value)}"
            self._line(f"{accumulator_type(total.node)} {name} = {self._target(total)};")
        for turn in range(_JAMMED):
            self._line("{")
            self.depth += 1
            self._line(f"const int64_t {axis.name} = {first} + {turn};")
            self._statements(sweep.body)
            self._close(1)
        for total in sweep.reductions:
            self._line(f"{self._target(total)} = {self.running.pop(total.value)};")
        self._close(2)
        if begin == "0" and isinstance(axis.size, int) and axis.size % _JAMMED == 0:
            self._close(len(outer))                              # no turns are left
            return
        self._line(f"for (int64_t {axis.name} = {first}; {axis.name} < {end}; ++{axis.name}) {{")
        self.depth += 1
        self._innermost(sweep, False)
        self._close(1 + len(outer))

    def _in_squares(self, sweep: Sweep, turned: Sequence[Load]) -> None:
        """The two innermost loops square by square, with these loads turned in front of each square."""
        *outer, axis, inner = self.nest.inner
        self._open(outer)
        row, rows = self._open_strips(axis, *self._span(axis), HEIGHT)
        column, columns = self._open_strips(inner, *self._span(inner), WIDTH)
        for load in turned:
            name, type, apart = self.emitter.variable("square"), load.array.dtype, dict(load.address.terms)[inner.name]
            source = f"{self.emitter.name(load.array)} + {address_text(corner(load, {axis.name: row, inner.name: column}))}"
            self._line(f"{c_type(type)} {name}[{HEIGHT * WIDTH}] __attribute__((aligned(64)));")
            self._line(f"dy_turn_{type.itemsize}({source}, {apart}, {columns}, {rows}, {name}, {WIDTH});")
            self.fetched[load] = f"{name}[({axis.name} - {row}) * {WIDTH} + {inner.name} - {column}]"
        spans = self.spans
        self.spans = {**spans, axis.name: (row, f"{row} + {rows}"), inner.name: (column, f"{column} + {columns}")}
        self._open((axis,))
        self._innermost(sweep, False)
        self._close(3 + len(outer))
        self.spans, self.fetched = spans, {}

    # Statements

    # Reductions

    def _start_total(self, total: Reduction) -> None:
        value, share = total.value, self.nest.share
        start, size, type = start_of(total.op, value), math.prod(value.shape), c_type(value.dtype)
        if share is not None and share.private:
            sums = self.sums[value] = self.emitter.scratch(size * share.shares, value.dtype)
            own = self.own[value] = self.emitter.variable("mine")
            self._line(f"{type} *const {own} = {sums} + begin / {share.step} * {size};")
            self._line(f"for (int64_t k = 0; k < {size}; ++k) {own}[k] = {start};")
        elif value.ndim == 0:
            self._line(f"{type} {self.emitter.local(value)} = {start};")
        else:
            (self.lines if share is None else self.before).append(
                f"for (int64_t k = 0; k < {size}; ++k) {self.emitter.name(value)}[k] = {start};")

    def _declare(self, reduction: Reduction, prefix: str, wide: bool = False) -> None:
        value, local = reduction.value, self.emitter.local(reduction.value)
        type = "double" if wide and reduction.op == "sum" and value.dtype.kind == "f" else accumulator_type(reduction.node)
        if type == "int" and all(found.kind == "b" for found in types_of(self.nest.sweeps[self.number].body)):
            type = "uint8_t"                                    # a vector has as many elements as bytes
        self._line(f"{type} {prefix}{local} = {start_of(reduction.op, value)};")
        if sees_nan(reduction.node):
            self._line(f"{nan_type(reduction.value)} nan_{prefix}{local} = 0;")

    def _clause(self, reduction: Reduction) -> str:
        local = f"sum_{self.emitter.local(reduction.value)}"
        text = f" reduction({COMBINE.get(reduction.op, reduction.op)}:{local})"
        return text + (f" reduction(|:nan_{local})" if sees_nan(reduction.node) else "")

    def _finished(self, reduction: Reduction, prefix: str) -> str:
        """What an accumulator in a register comes to."""
        name = prefix + self.emitter.local(reduction.value)
        if reduction.op == "sum" and reduction.value.dtype.name in SUFFIXES:
            return f"summed_{SUFFIXES[reduction.value.dtype.name]}({name})"
        return f"(nan_{name} ? NAN : {name})" if sees_nan(reduction.node) else name
