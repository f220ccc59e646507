"""Tables of where the rows of joined sequences are; rows that a loop has pushed, added where they belong."""
from __future__ import annotations

import math
from typing import Dict

from ...ir.c_forms import c_type
from ...ir.graph import Node
from .emitter import Emitter, Rule
from .nests import block, checked_index, zeros


def _sequence_places(emitter: Emitter, node: Node) -> None:
    sizes = node.attrs["sizes"]
    onwards, backwards, runs, places, places_back = map(emitter.name, node.outputs)
    count, moments = len(sizes), node.outputs[0].shape[0]
    lengths, start = emitter.variable("lengths"), emitter.variable("start")
    emitter.line(f"const int64_t {lengths}[] = {{{', '.join(map(str, sizes))}}};")
    emitter.line(f"int64_t {start} = 0;")
    with block(emitter, f"for (int64_t s = 0; s < {count}; ++s) {{"):
        emitter.line(f"const int64_t size = {lengths}[s];")
        with block(emitter, f"for (int64_t t = 0; t < {moments}; ++t) {{"):
            emitter.line(f"const int64_t kept = t < size ? t : size - 1, to = t * {count} + s;")
            emitter.line(f"{onwards}[to] = {start} + kept;")
            emitter.line(f"{backwards}[to] = {start} + size - 1 - kept;")
            emitter.line(f"{runs}[to] = t < size;")
        with block(emitter, "for (int64_t t = 0; t < size; ++t) {"):
            emitter.line(f"{places}[{start} + t] = t * {count} + s;")
            emitter.line(f"{places_back}[{start} + t] = (size - 1 - t) * {count} + s;")
        emitter.line(f"{start} += size;")


def _stack_scatter(emitter: Emitter, node: Node) -> None:
    (value,), (items, numbers) = node.outputs, node.inputs
    source, places, target = emitter.local(items), emitter.local(numbers), zeros(emitter, value)
    inner, type = math.prod(value.shape[1:]), c_type(value.dtype)
    with block(emitter, f"for (int64_t k = 0; k < {source}.count; ++k) {{"):
        checked_index(emitter, "at", f"((const {c_type(numbers.type.elem.dtype)} *){places}.data)[k]", value.shape[0])
        emitter.line("#pragma omp simd")
        emitter.line(f"for (int64_t j = 0; j < {inner}; ++j) "
                     f"{target}[at * {inner} + j] += ((const {type} *){source}.data)[k * {inner} + j];")


#: Ops by name.
SEQUENCES: Dict[str, Rule] = {"sequence_places": _sequence_places, "stack_scatter": _stack_scatter}
