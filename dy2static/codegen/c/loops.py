"""The C text of a group: loops over rows, and sweeps over each row."""
from __future__ import annotations

import math
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ...ir.c_forms import c_constant, c_type
from ...ir.graph import Node, Value
from .extents import is_known, may_exceed
from .groups import REDUCTIONS, Group, total_place
from .places import Place, broadcast, compact_strides, place_of
from .shares import Level, Share, cut, image_by_image

#: Longer sums of floats are made of sums of so many elements, which are added up in double precision.
BLOCK = 4096

#: The work of one element, in operations, up to which it is computed again in a later sweep instead of being kept.
_CHEAP = 4
_DEAR = frozenset("exp log tanh sigmoid sin cos tan log1p expm1 power softplus sqrt div elu".split())

#: Nanoseconds for one element: a byte of memory, an operation, one that is dear.  They decide what threads share.
_BYTE, _OPERATION, _DEAR_OPERATION = 0.05, 0.03, 0.3

#: Bytes of rows that a function may have on its own stack.
_OWN_BYTES = 32768

_SUFFIXES = {"float32": "f32", "float64": "f64"}

_COMBINE = {"sum": "+", "prod": "*", "any": "|", "all": "&"}


class LoopWriter:
    """Writes one group.

    memory: gives names of values and places, which values need memory, and the C expression of a node.  images: of what
    comes one after the other; its share is to be the outermost loop, however little work that is.
    """

    def __init__(self, memory: Any, group: Group, images: int = 0):
        self.memory, self.group = memory, group
        self.makers = {node.outputs[0]: node for node in group.nodes}
        split = len(group.shape) if group.split is None else group.split
        self.rowwise = group.split is not None
        outer = range(split) if self.rowwise else range(0)
        inner = range(split, len(group.shape)) if self.rowwise else range(len(group.shape))
        self.places = self._places()
        self.outer = self._merged([a for a in outer if group.shape[a] != 1])
        self.inner = self._merged([a for a in inner if group.shape[a] != 1])
        self.lines: List[str] = []
        self.depth = 0
        kept = list(dict.fromkeys(self._wanted_later()))
        self.share: Optional[Share] = self._cut(kept, images)
        self.sums: Dict[Value, str] = {}                    # the memory of totals that each share sums for itself
        self.before: List[str] = []                         # what comes in front of the shares
        self._own_sums: Dict[Value, str] = {}               # the part of it that belongs to one share
        self.buffered: Dict[Value, str] = {value: self._row_buffer(value) for value in kept}

    # What is where

    def _places(self) -> List[Place]:
        """Every place that is read or written element by element."""
        group, memory, found = self.group, self.memory, []
        for node in group.nodes:
            for value in node.inputs:
                place = memory.place(value)
                if place.base not in group.values() and math.prod(value.shape) == math.prod(group.shape):
                    found.append(self._over_elements(place))
            (value,) = node.outputs
            if value in group.totals:
                found.append(total_place(node, value))
            elif value in group.elements and memory.stored(value):
                found.append(place_of(value))
        return [place for place in found if len(place.shape) == len(group.shape)]

    def _over_elements(self, place: Place) -> Place:
        return broadcast(place, self.group.shape)

    def _merged(self, axes: Sequence[int]) -> List[List[int]]:
        """The axes, with those together over which all places go in one stride."""
        merged: List[List[int]] = []
        for axis in axes:
            if merged and all(self._stride(p, merged[-1][-1]) == self._stride(p, axis) * self.group.shape[axis]
                              for p in self.places):
                merged[-1].append(axis)
            else:
                merged.append([axis])
        return merged

    @staticmethod
    def _stride(place: Place, axis: int) -> int:
        return place.strides[axis]

    def _sizes(self, merged: Sequence[Sequence[int]]) -> List[int]:
        return [math.prod(self.group.shape[a] for a in axes) for axes in merged]

    # Shares of threads

    def _cut(self, kept: Sequence[Value], images: int) -> Optional[Share]:
        """The loop that threads share, if any."""
        group, sizes = self.group, self._sizes(self.inner)
        elements = math.prod(group.shape)
        if not elements or not is_known(elements) or math.prod(sizes) * sum(v.dtype.itemsize for v in kept) > _OWN_BYTES:
            return None
        totals = [total_place(node, v) for node in group.nodes for v in node.outputs if v in group.totals]
        levels = []
        for letter, merged in (("i", self.outer), ("j", () if self.rowwise else self.inner)):
            for k, (axes, size) in enumerate(zip(merged, self._sizes(merged))):
                apart = all(place.strides[axes[-1]] for place in totals)
                summed = 0 if apart else sum(math.prod(place.base.shape) for place in totals)
                levels.append(Level(f"{letter}{k}", size, letter == "j" and k == len(merged) - 1, summed))
        if images:
            return image_by_image(levels[0], images, elements) if levels else None
        return cut(levels, elements, elements * self._nanoseconds())

    def _nanoseconds(self) -> float:
        """What one element takes, about."""
        moved = {(place.base, place.strides): place.base.dtype.itemsize for place in self.places if any(place.strides)}
        wide = max(node.inputs[0].dtype.itemsize for node in self.group.nodes if node.inputs) / 4
        return _BYTE * sum(moved.values()) + wide * sum(
            _DEAR_OPERATION if node.op.name in _DEAR else _OPERATION for node in self.group.nodes)

    def _row_buffer(self, value: Value) -> str:
        """Memory for a row: threads have their own."""
        size = math.prod(self._sizes(self.inner))
        if self.share is None:
            return self.memory.scratch(size, value.dtype)
        name = self.memory.variable("row")
        self._line(f"{c_type(value.dtype)} {name}[{size}] __attribute__((aligned(64)));")
        return name

    def _span(self, name: str, size: int) -> Tuple[str, str]:
        """Where a loop begins and ends."""
        return ("begin", "end") if self.share is not None and self.share.name == name else ("0", str(size))

    def _for(self, name: str, size: int) -> None:
        begin, end = self._span(name, size)
        self._line(f"for (int64_t {name} = {begin}; {name} < {end}; ++{name}) {{")
        self.depth += 1

    def joined(self) -> List[str]:
        """Lines that add up what the shares have summed."""
        self.lines, self.depth = [], 0
        for node in self.group.nodes:
            (value,) = node.outputs
            if value in self.sums:
                self._join(node, value)
        return self.lines

    def _join(self, node: Node, value: Value) -> None:
        assert self.share is not None
        sums, count, size = self.sums[value], self.share.shares, math.prod(value.shape)
        if value.ndim == 0:
            target = self.memory.local(value)
            self._line(f"{c_type(value.dtype)} {target} = {sums}[0];")
            self._line(f"for (int64_t k = 1; k < {count}; ++k) {_combined(node, target, f'{sums}[k]')}")
            if self.memory.stored(value):
                self._line(f"{self.memory.name(value)}[0] = {target};")
            return
        target = self.memory.name(value)
        if node.op.name == "sum" and value.dtype.name in _SUFFIXES:
            self._line(f"dy_join_{_SUFFIXES[value.dtype.name]}({target}, {sums}, {count}, {size});")
            return
        self._line(f"memcpy({target}, {sums}, {size * value.dtype.itemsize});")
        self._line(f"for (int64_t b = 1; b < {count}; ++b) {{")
        self._line("    #pragma omp simd")
        self._line(f"    for (int64_t k = 0; k < {size}; ++k) {_combined(node, f'{target}[k]', f'{sums}[b * {size} + k]')}")
        self._line("}")

    # Later sweeps

    def _wanted_later(self) -> List[Value]:
        """Elements that a later sweep reads, which are neither in memory nor cheap to compute again."""
        found: List[Value] = []
        for node in self.group.nodes:
            sweep = self._sweep_of(node)
            if sweep is None:
                continue
            for operand in node.inputs:
                found += self._kept(self.memory.place(operand).base, sweep)
        return found

    def _kept(self, value: Value, sweep: int) -> List[Value]:
        group = self.group
        if value not in group.elements or group.sweep[value] >= sweep or self.memory.stored(value):
            return []
        if self._work(value) > _CHEAP:
            return [value]
        return [item for v in self.makers[value].inputs for item in self._kept(self.memory.place(v).base, sweep)]

    def _work(self, value: Value) -> int:
        node = self.makers[value]
        if node.op.name in _DEAR:
            return _CHEAP + 1
        return 1 + sum(self._work(base) for base in (self.memory.place(v).base for v in node.inputs)
                       if base in self.group.elements and not self.memory.stored(base))

    def _sweep_of(self, node: Node) -> Optional[int]:
        """The sweep in which a node runs; None for one between sweeps."""
        (value,) = node.outputs
        if value in self.group.rows:
            return self.group.sweep[value] - 1 if node.op.name in REDUCTIONS else None
        return self.group.sweep[value]

    # Text

    def write(self) -> List[str]:
        """The lines of the group."""
        group = self.group
        for node in group.nodes:
            if node.outputs[0] in group.totals:
                self._start_total(node)
        for k, size in enumerate(self._sizes(self.outer)):
            self._for(f"i{k}", size)
        for sweep in range(group.sweeps):
            self._row_nodes(sweep)
            self._sweep(sweep)
        self._row_nodes(group.sweeps)
        for _ in self.outer:
            self.depth -= 1
            self._line("}")
        for value in [v for node in group.nodes for v in node.outputs if v in group.totals]:
            if value.ndim == 0 and value not in self.sums and self.memory.stored(value):
                self._line(f"{self.memory.name(value)}[0] = {self.memory.local(value)};")
        return self.lines

    def _line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def _start_total(self, node: Node) -> None:
        (value,) = node.outputs
        start = _start(node.op.name, value)
        if self.share is not None and self.share.private:
            size, type = math.prod(value.shape), c_type(value.dtype)
            sums = self.memory.scratch(size * self.share.shares, value.dtype)
            own = self._own_sums[value] = self.memory.variable("mine")
            self.sums[value] = sums
            self._line(f"{type} *const {own} = {sums} + begin / {self.share.step} * {size};")
            self._line(f"for (int64_t k = 0; k < {size}; ++k) {own}[k] = {start};")
        elif value.ndim == 0:
            self._line(f"{c_type(value.dtype)} {self.memory.local(value)} = {start};")
        else:
            text = f"for (int64_t k = 0; k < {math.prod(value.shape)}; ++k) {self.memory.name(value)}[k] = {start};"
            if self.share is None:
                self._line(text)
            else:
                self.before.append(text)

    def _row_nodes(self, sweep: int) -> None:
        for node in self.group.nodes:
            (value,) = node.outputs
            if value in self.group.rows and node.op.name not in REDUCTIONS and self.group.sweep[value] == sweep:
                operands = [self._row_operand(v, value) for v in node.inputs]
                self._define(value, self.memory.expression(node, operands), self._row_address)

    def _row_operand(self, operand: Value, result: Value) -> str:
        place = self.memory.place(operand)
        if place.base in self.group.rows:
            return self.memory.local(place.base)
        place = place if operand.shape == result.shape else broadcast(place, result.shape)
        return self._load_row(place, result)

    def _load_row(self, place: Place, result: Value) -> str:
        """An element outside the group for each row: its index has the axes of the result."""
        axes = [a for a, n in enumerate(self.group.row_shape) if n != 1]
        strides = dict(zip(axes, (s for s, n in zip(place.strides, result.shape) if n != 1)))
        return self.memory.element(place, [f"({self._axis(a)}) * {s}" for a, s in strides.items() if s])

    def _axis(self, axis: int) -> str:
        """The index along one axis of the group, from the variable of the loop that it is merged into."""
        for letter, merged in (("i", self.outer), ("j", self.inner)):
            for k, axes in enumerate(merged):
                if axis in axes:
                    after = math.prod(self.group.shape[a] for a in axes if a > axis)
                    text = f"{letter}{k}" if after == 1 else f"{letter}{k} / {after}"
                    return text if axis == axes[0] else f"({text}) % {self.group.shape[axis]}"
        return "0"

    def _row_address(self, value: Value) -> str:
        sizes = self._sizes(self.outer)
        terms = [f"i{k} * {step}" if step != 1 else f"i{k}" for k, step in enumerate(compact_strides(sizes))]
        return " + ".join(terms) or "0"

    def _element_address(self, value: Value) -> str:
        return self._address(place_of(value))

    def _address(self, place: Place) -> str:
        terms = self._terms(place)
        return " + ".join(terms) or "0"

    def _terms(self, place: Place) -> List[str]:
        """What the loops add to the place of the first element."""
        terms = []
        for letter, merged in (("i", self.outer), ("j", self.inner)):
            for k, axes in enumerate(merged):
                stride = place.strides[axes[-1]]
                if stride:
                    terms.append(f"{letter}{k} * {stride}" if stride != 1 else f"{letter}{k}")
        return terms

    def _define(self, value: Value, text: str, address: Any) -> None:
        """``const float v = text;`` and its store, if it has memory."""
        memory = self.memory
        local = memory.local(value)
        self._line(f"const {c_type(value.dtype)} {local} = {text};")
        if memory.stored(value):
            self._line(f"{memory.name(value)}[{address(value)}] = {local};")

    # One sweep

    def _sweep(self, sweep: int) -> None:
        group = self.group
        nodes = [node for node in group.nodes if self._sweep_of(node) == sweep]
        if not nodes:
            return
        reductions = [node for node in nodes if node.op.name in REDUCTIONS]
        in_rows = [node for node in reductions if node.outputs[0] in group.rows]
        sizes = self._sizes(self.inner)
        blocked = bool(sizes) and may_exceed(sizes[-1], BLOCK) and any(
            node.op.name == "sum" and node.outputs[0].dtype.kind == "f" for node in in_rows)
        for node in in_rows:
            self._declare(node, "all_" if blocked or len(sizes) > 1 else "sum_", wide=blocked or len(sizes) > 1)
        for k, size in enumerate(sizes[:-1]):
            self._for(f"j{k}", size)
        self._innermost(sweep, nodes, in_rows, sizes, blocked)
        for _ in sizes[:-1]:
            self.depth -= 1
            self._line("}")
        for node in in_rows:
            (value,) = node.outputs
            prefix = "all_" if blocked or len(sizes) > 1 else "sum_"
            self._define(value, _finish(node, prefix + self.memory.local(value)), self._row_address)

    def _innermost(self, sweep: int, nodes: Sequence[Node], in_rows: Sequence[Node], sizes: Sequence[int],
                   blocked: bool) -> None:
        group = self.group
        last = len(sizes) - 1
        totals = [node for node in nodes if node.outputs[0] in group.totals]
        near = [node for node in totals if not sizes or not total_place(node, node.outputs[0]).strides[self.inner[-1][-1]]]
        nested = blocked or len(sizes) > 1
        if blocked:
            self._line(f"for (int64_t b = 0; b < {sizes[-1]}; b += {BLOCK}) {{")
            self.depth += 1
        for node in near + (list(in_rows) if nested else []):
            self._declare(node, "sum_")
        if sizes:
            accumulated = near + list(in_rows)
            self._line(f"#pragma omp simd{_clauses(accumulated, self.memory)}")
            begin, end = (("b", f"(b + {BLOCK} < {sizes[-1]} ? b + {BLOCK} : {sizes[-1]})") if blocked else
                          self._span(f"j{last}", sizes[-1]))
            self._line(f"for (int64_t j{last} = {begin}; j{last} < {end}; ++j{last}) {{")
            self.depth += 1
        self._body(sweep, nodes, near)
        if sizes:
            self.depth -= 1
            self._line("}")
        for node in near:
            (value,) = node.outputs
            target = self._target(node, self._address_outside(total_place(node, value)))
            self._line(_combined(node, target, _finish(node, "sum_" + self.memory.local(value))))
        if nested:
            for node in in_rows:
                local = self.memory.local(node.outputs[0])
                self._line(_merge(node, f"all_{local}", f"sum_{local}"))
        if blocked:
            self.depth -= 1
            self._line("}")

    def _target(self, node: Node, address: str) -> str:
        """Where the result of a reduction grows."""
        (value,) = node.outputs
        if value in self._own_sums:
            return f"{self._own_sums[value]}[{address}]"
        return f"{self.memory.name(value)}[{address}]" if value.ndim else self.memory.local(value)

    def _address_outside(self, place: Place) -> str:
        """The same, without the innermost loop."""
        kept, self.inner = self.inner, self.inner[:-1]
        try:
            return self._address(place)
        finally:
            self.inner = kept

    def _body(self, sweep: int, nodes: Sequence[Node], near: Sequence[Node]) -> None:
        self.here: Dict[Value, str] = {}
        for node in nodes:
            (value,) = node.outputs
            operands = [self._operand(v, sweep) for v in node.inputs]
            if node.op.name not in REDUCTIONS:
                self._define(value, self.memory.expression(node, operands), self._element_address)
                self.here[value] = self.memory.local(value)
                if value in self.buffered:
                    self._line(f"{self.buffered[value]}[{self._inner_index()}] = {self.memory.local(value)};")
            elif value in self.group.rows or node in near:
                self._line(_accumulate(node, f"sum_{self.memory.local(value)}", operands[0]))
            else:
                target = self._target(node, self._address(total_place(node, value)))
                self._line(_combined(node, target, operands[0]))

    def _operand(self, value: Value, sweep: int) -> str:
        place = self.memory.place(value)
        base = place.base
        if base in self.group.rows:
            return self.memory.local(base)
        if base in self.group.elements:
            return self._element(base, sweep)
        return self.memory.element(place, self._terms(self._over_elements(place)))

    def _element(self, value: Value, sweep: int) -> str:
        """An element of this group: made in this sweep, kept by an earlier one, or computed again."""
        if value in self.here:
            return self.here[value]
        if self.memory.stored(value):
            text = self.memory.read(value, self._element_address(value))
        elif value in self.buffered:
            text = f"{self.buffered[value]}[{self._inner_index()}]"
        else:
            node = self.makers[value]
            text = self.memory.expression(node, [self._operand(v, sweep) for v in node.inputs])
        self.here[value] = name = self.memory.given.fresh(f"{self.memory.local(value)}_in_{sweep}")
        self._line(f"const {c_type(value.dtype)} {name} = {text};")
        return name

    def _inner_index(self) -> str:
        sizes = self._sizes(self.inner)
        return " + ".join(f"j{k} * {step}" if step != 1 else f"j{k}"
                          for k, step in enumerate(compact_strides(sizes))) or "0"

    def _declare(self, node: Node, prefix: str, wide: bool = False) -> None:
        (value,) = node.outputs
        local = self.memory.local(value)
        type = "double" if wide and node.op.name == "sum" and value.dtype.kind == "f" else _accumulator_type(node)
        self._line(f"{type} {prefix}{local} = {_start(node.op.name, value)};")
        if _sees_nan(node):
            self._line(f"int{8 * value.dtype.itemsize}_t nan_{prefix}{local} = 0;")


def _sees_nan(node: Node) -> bool:
    return node.op.name in ("max", "min") and node.outputs[0].dtype.kind == "f"


def _accumulator_type(node: Node) -> str:
    return "int" if node.op.name in ("any", "all") else c_type(node.outputs[0].dtype)


def _start(name: str, value: Value) -> str:
    if name in ("sum", "any"):
        return "0"
    if name in ("prod", "all"):
        return "1"
    if value.dtype.kind == "f":
        return "-INFINITY" if name == "max" else "INFINITY"
    if value.dtype.kind == "b":
        return "0" if name == "max" else "1"
    limits = np.iinfo(value.dtype)
    return c_constant(limits.min if name == "max" else limits.max, value.dtype)


def _clauses(nodes: Sequence[Node], memory: Any) -> str:
    text = ""
    for node in nodes:
        local = f"sum_{memory.local(node.outputs[0])}"
        text += f" reduction({_COMBINE.get(node.op.name, node.op.name)}:{local})"
        if _sees_nan(node):
            text += f" reduction(|:nan_{local})"
    return text


def _accumulate(node: Node, name: str, operand: str) -> str:
    """One element more for an accumulator in a register."""
    op = node.op.name
    if op in ("sum", "prod"):
        return f"{name} {_COMBINE[op]}= {operand};"
    if op in ("any", "all"):
        return f"{name} {_COMBINE[op]}= ({operand} != 0);"
    test = f"{name} = {operand} {'>' if op == 'max' else '<'} {name} ? {operand} : {name};"
    return f"{test} nan_{name} |= ({operand} != {operand});" if _sees_nan(node) else test


def _merge(node: Node, name: str, part: str) -> str:
    """One accumulator into another."""
    text = _accumulate(node, name, part)
    return f"{text} nan_{name} |= nan_{part};" if _sees_nan(node) else text


def _finish(node: Node, name: str) -> str:
    if node.op.name == "sum" and node.outputs[0].dtype.name in _SUFFIXES:
        return f"summed_{_SUFFIXES[node.outputs[0].dtype.name]}({name})"
    return f"(nan_{name} ? NAN : {name})" if _sees_nan(node) else name


def _combined(node: Node, target: str, operand: str) -> str:
    """One element more for an accumulator in memory."""
    op = node.op.name
    if op in ("sum", "prod"):
        return f"{target} {_COMBINE[op]}= {operand};"
    if op in ("any", "all"):
        return f"{target} {_COMBINE[op]}= ({operand} != 0);"
    sign = ">" if op == "max" else "<"
    unordered = f" || {operand} != {operand}" if _sees_nan(node) else ""
    return f"{target} = ({operand} {sign} {target}{unordered}) ? {operand} : {target};"
