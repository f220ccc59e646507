"""Sorting in C: a call is declined in which equal elements can be told apart, since NumPy does not say in which order they are."""
from __future__ import annotations

import math
from typing import Dict

from ...ir.c_forms import c_suffix
from ...ir.graph import Node
from .emitter import Emitter, Rule
from .nests import loops

#: Nanoseconds for each element that is sorted.
_SORTED = 8


def _argsort(emitter: Emitter, node: Node) -> None:
    (value,), (x,) = node.outputs, node.inputs
    source, target, count = emitter.pointer(x), emitter.name(value), x.shape[-1]
    spare = emitter.scratch(count, value.dtype)
    rows = math.prod(x.shape[:-1])
    refused = "> 1" if node.attrs["stable"] else "!= 0"
    emitter.line(f"for (int64_t o = 0; o < {rows}; ++o)")
    call = f"dy_argsort_{c_suffix(x.dtype)}({source} + o * {count}, {count}, {target} + o * {count}, {spare})"
    emitter.line(f"    if ({call} {refused}) goto bail;")


def _sort(emitter: Emitter, node: Node) -> None:
    (value,), (x,) = node.outputs, node.inputs
    source, target, count = emitter.pointer(x), emitter.name(value), x.shape[-1]
    rows = math.prod(x.shape[:-1])
    spare = emitter.scratch(rows * count, value.dtype)
    with loops(emitter, "a", (rows,), _SORTED * count) as (o,):
        where = f" + {o} * {count}" if o != "0" else ""
        call = f"dy_sort_{c_suffix(x.dtype)}({source}{where}, {count}, {target}{where}, {spare}{where})"
        emitter.line(f"if ({call}) goto bail;")


def _select(emitter: Emitter, node: Node) -> None:
    (value,), (x,) = node.outputs, node.inputs
    begin, end, count = node.attrs["begin"], node.attrs["end"], x.shape[0]
    which = "smallest" if begin == 0 else "largest"
    source, target = emitter.pointer(x), emitter.name(value)
    emitter.line(f"if (dy_{which}_{c_suffix(x.dtype)}({source}, {count}, {end - begin}, {target} + {begin})) goto bail;")


#: Ops by name.
ORDERS: Dict[str, Rule] = {"sort": _sort, "argsort": _argsort, "select": _select}


def headers(text: str) -> str:
    """The lines of C in front of a text with such calls."""
    is_used = any(f"dy_{name}_" in text for name in ("sort", "argsort", "smallest", "largest"))
    return '#include "dy2static_orders.h"\n' if is_used else ""
