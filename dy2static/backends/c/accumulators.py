"""Lines of C that reduce: where an accumulator starts, and how elements and other accumulators are added to it."""
from __future__ import annotations

import math
from typing import List

import numpy as np

from ...ir.c_forms import c_constant, c_type
from ...ir.graph import Node, Value

SUFFIXES = {"float32": "f32", "float64": "f64"}

#: The C operators of reductions that have one.
COMBINE = {"sum": "+", "prod": "*", "any": "|", "all": "&"}


def sees_nan(node: Node) -> bool:
    """Whether NaN is noted apart: comparisons do not find it."""
    return node.op.name in ("max", "min") and node.outputs[0].dtype.kind == "f"


def accumulator_type(node: Node) -> str:
    """The C type of an accumulator in a register."""
    return "int" if node.op.name in ("any", "all") else c_type(node.outputs[0].dtype)


def start_of(name: str, value: Value) -> str:
    """The result of a reduction of no elements, as a C constant of the type of ``value``."""
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


def accumulated(node: Node, name: str, operand: str) -> str:
    """One element more for an accumulator in a register."""
    op = node.op.name
    if op in ("sum", "prod"):
        return f"{name} {COMBINE[op]}= {operand};"
    if op in ("any", "all"):
        return f"{name} {COMBINE[op]}= ({operand} != 0);"
    test = f"{name} = {operand} {'>' if op == 'max' else '<'} {name} ? {operand} : {name};"
    return f"{test} nan_{name} |= ({operand} != {operand});" if sees_nan(node) else test


def merged(node: Node, name: str, part: str) -> str:
    """One accumulator into another."""
    text = accumulated(node, name, part)
    return f"{text} nan_{name} |= nan_{part};" if sees_nan(node) else text


def combined(node: Node, target: str, operand: str) -> str:
    """One element more for an accumulator in memory."""
    op = node.op.name
    if op in ("any", "all"):
        # of bytes: compilers widen bools to ints, and take several times as long
        return f"*(uint8_t *)&{target} {COMBINE[op]}= ({operand} != 0);"
    if op in ("sum", "prod"):
        return accumulated(node, target, operand)
    sign = ">" if op == "max" else "<"
    unordered = f" || {operand} != {operand}" if sees_nan(node) else ""
    return f"{target} = ({operand} {sign} {target}{unordered}) ? {operand} : {target};"


def joined(node: Node, sums: str, count: int, target: str, local: str) -> List[str]:
    """Add up what ``count`` shares have summed: ``sums``, one after the other.

    target: the array of the result, or "" if a number is all that is wanted.  local: the name of that number, if it has no axes.
    """
    (value,) = node.outputs
    size = math.prod(value.shape)
    if value.ndim == 0:
        lines = [f"{c_type(value.dtype)} {local} = {sums}[0];",
                 f"for (int64_t k = 1; k < {count}; ++k) {combined(node, local, f'{sums}[k]')}"]
        return lines + ([f"{target}[0] = {local};"] if target else [])
    if node.op.name == "sum" and value.dtype.name in SUFFIXES:
        return [f"dy_join_{SUFFIXES[value.dtype.name]}({target}, {sums}, {count}, {size});"]
    return [f"memcpy({target}, {sums}, {size * value.dtype.itemsize});",
            f"for (int64_t b = 1; b < {count}; ++b) {{",
            "    #pragma omp simd",
            f"    for (int64_t k = 0; k < {size}; ++k) {combined(node, f'{target}[k]', f'{sums}[b * {size} + k]')}",
            "}"]


def nan_type(value: Value) -> str:
    """The type of a number that says whether a reduction has met NaN: of the size of its elements."""
    return f"int{8 * value.dtype.itemsize}_t"
