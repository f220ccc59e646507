"""The lines of a function in which the arrays of its arena, and of the memory that it shares with others, get their names."""
from __future__ import annotations

from typing import List, Sequence

from ...ir.dims import Dim
from ...ir.template import attr_source
from ..memory_planner import ALIGNMENT, aligned
from ..names import Names
from .buffers import BufferPlan, Slot
from .function import tuple_text


def unpacked(plan: BufferPlan, arrays: Sequence[str], names: Names, holder: str) -> List[str]:
    """Lines for the arrays of a plan.

    holder: the name of what holds them: a tuple of them, or what `runtime.workspace` has where sizes are free.
    """
    if not arrays:
        return []
    if not plan.symbols:
        return [f"{tuple_text(arrays)} = {holder}"]
    sizes, arrays_text, memory = _tuple(plan.symbols), _tuple(arrays), names.fresh("memory")
    lines, begins, end = [f"if {holder}.sizes != {sizes}:"], [], ""
    for size in plan.sizes:
        begins.append(end or "0")
        before = f"{end} + " if end else ""
        if isinstance(size, Dim):
            end = names.fresh("end")
            lines.append(f"    {end} = {before}({size} + {ALIGNMENT - 1}) // {ALIGNMENT} * {ALIGNMENT}")
        else:
            end = f"{before}{aligned(size)}"
    lines.append(f"    {memory} = {holder}.room({end})")
    lines += [f"    {name} = {_array(slot, arrays, names, memory, begins)}" for name, slot in zip(arrays, plan.slots)]
    return [*lines, f"    {holder}.keep({sizes}, {arrays_text})", "else:", f"    {tuple_text(arrays)} = {holder}.arrays"]


def _tuple(names: Sequence[str]) -> str:
    text = tuple_text(names)
    return text if len(names) == 1 else f"({text})"


def _array(slot: Slot, arrays: Sequence[str], names: Names, memory: str, begins: Sequence[str]) -> str:
    if slot.view is not None:
        base, method, args = slot.view
        return f"{arrays[base]}.{method}({', '.join(map(attr_source, args))})"
    return names.numpy(f"np.ndarray({attr_source(slot.shape)}, {attr_source(slot.dtype)}, {memory}, {begins[slot.storage]})")
