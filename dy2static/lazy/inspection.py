"""What becomes of a lazy array: its graph, its code, and an explanation line by line."""
from __future__ import annotations

from typing import Any, List, Optional, Tuple

from ..errors import CaptureError
from ..runtime.program import Program
from . import nodes
from .arrays import LazyArray
from .evaluation import chosen_backend
from .sites import site_of
from .structures import Plan, Structure, structures


def planned(array: LazyArray) -> Optional[Tuple[Plan, Structure]]:
    """What would compute a lazy array; None of one that has been computed."""
    node = array._now
    with nodes.lock:
        if node.result is not None:
            return None
        plan = Plan((node,))
        return plan, structures.of(plan.key)


def program_of(array: LazyArray) -> Optional[Program]:
    """The program that would compute a lazy array, compiled if need be; None of one that has been computed.

    Raises `CaptureError` where NumPy would compute it.
    """
    found = planned(array)
    return None if found is None else found[1].compiled(chosen_backend.get()).program(*found[0].leaves)


def _graph(array: LazyArray) -> Any:
    """The graph of the program that would compute the array; None once it has been computed.

    Raises `CaptureError` where NumPy would compute it.
    """
    program = program_of(array)
    return None if program is None else program.graph


def _code(array: LazyArray) -> Optional[str]:
    """The Python function that would compute the array; None once it has been computed.

    Raises `CaptureError` where NumPy would compute it.
    """
    program = program_of(array)
    return None if program is None else program.code


def explain(array: LazyArray) -> str:
    """Return a report of the operations that a lazy array needs: for each, the user's line and how it is compiled."""
    found = planned(array)
    if found is None:
        return "computed already"
    plan, structure = found
    lines: List[str] = structure.source.rstrip().splitlines()
    width = max(map(len, lines)) + 2
    for line, number in structure.lines.items():
        place = site_of(plan.nodes[number])
        lines[line - 1] = f"{lines[line - 1]:{width}}# {place}"
    try:
        program = structure.compiled(chosen_backend.get()).program(*plan.leaves)
    except CaptureError as error:
        return "\n".join([*lines, f"computed by NumPy: {error.args[0]}"])
    counts = ", ".join([f"{count} {name}" for name, count in program.counts.items() if count])
    return "\n".join([*lines, f"compiled: {counts}"])


def install() -> None:
    """Give lazy arrays `graph` and `code`."""
    LazyArray.graph, LazyArray.code = property(_graph), property(_code)     # type: ignore[attr-defined]


install()
