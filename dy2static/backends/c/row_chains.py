"""Two stacks of products with a loop nest over rows between them, as attention is, block by block of rows.

So the matrices between the products are never in memory as a whole: a block of rows stays in the cache until the second product
has read it.  Each number is computed as it would be without that, except those that a mask drops (`masked_rows`).
"""
from __future__ import annotations

import dataclasses
import math
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...ir.c_forms import c_type
from ...ir.dims import Size, is_known
from ...ir.graph import Node, Value
from ..loops.fuse import Run
from ..loops.groups import Group, nodes_of
from ..loops.ir import LoopNest
from ..loops.layout import Place, compact_strides
from ..loops.parallelize import Share
from ..loops.schedule import OWN_BYTES, schedule
from .emitter import Emitter
from .kernels_products import Head, Matrix, common_size, matrix, stack_at, suffix
from .masked_rows import Span, is_moderate, kept_columns, mask_of, zeros_beside
from .render_c import render

#: A block has so many rows at most, and at least if they have more bytes than wanted; columns of a panel of the kernel of products,
#: which packs rows of the first matrix in panels.
_MOST, _LEAST, _BYTES, _TILE = 192, 96, 1 << 19, 16

#: A block of which a mask drops columns has so many rows at most: fewer rows keep fewer columns.
_MASKED = 64

#: Shares of threads, each of which has memory for a block.
_SHARES = 16

#: Bytes of the matrices between two products that stay in the cache by themselves.
_SMALL = 1 << 18


class Chain(NamedTuple):
    """A product, what is done with its rows, and the product that reads these.

    scores, weights: what the first product makes, and what the second one reads.  passing: whether nothing else reads these.
    """

    first: Node
    group: Group
    second: Node
    nest: LoopNest
    scores: Value
    weights: Value
    passing: bool


def chain_at(emitter: Emitter, fused: Run, index: int) -> Optional[Chain]:
    """The chain that begins with this part, if one does and its nest can run block by block."""
    parts = fused.parts[index:index + 3]
    if len(parts) < 3 or not isinstance(parts[1], Group) or not all(
            isinstance(part, Node) and part.op.name == "matmul" for part in parts[::2]):
        return None
    first, group, second = parts
    assert isinstance(first, Node) and isinstance(group, Group) and isinstance(second, Node)
    (scores,), (result,), read = first.outputs, second.outputs, emitter.place(second.inputs[0])
    shape, weights = scores.shape, read.base
    if not all(map(is_known, (*shape, *result.shape, common_size(first)))) or len(shape) < 3 or not result.shape[-1] \
            or math.prod(shape) * scores.dtype.itemsize <= _SMALL or group.shape != shape or group.split != len(shape) - 1 \
            or group.totals or weights not in group.elements or weights.type != scores.type \
            or second.attrs["transa"] or not read.whole or read.shape != shape:
        return None
    if scores in fused.kept or emitter.has_memory(scores) or fused.is_read_behind(scores, index + 1) \
            or group.makes(emitter.place(second.inputs[1]).base) or not all(
            place.whole and place.shape == shape for place in _places(emitter, group) if place.base is scores):
        return None
    nest = schedule(group, emitter.place, emitter.stored)
    if sum(value.dtype.itemsize for value in nest.kept) * shape[-1] > OWN_BYTES:
        return None
    passing = not emitter.has_memory(weights) and weights not in fused.kept and not fused.is_read_behind(weights, index + 2)
    return Chain(first, group, second, nest, scores, weights, passing)


def _places(emitter: Emitter, part: object) -> List[Place]:
    return [emitter.place(v) for node in nodes_of(part) for v in node.inputs]


def write_chain(emitter: Emitter, chain: Chain, head: Optional[Head]) -> None:
    """Write both products and the nest as one loop over blocks of rows, which threads share.

    head: what the second one is made as, if not as itself.
    """
    first, group, second, nest, scores, weights, passing = chain
    (result,) = second.outputs
    row, count, batch = scores.shape[-1], scores.shape[-2], math.prod(scores.shape[:-2])
    mask = mask_of(emitter, group, scores, weights)
    rows = _block_rows(count, row * scores.dtype.itemsize, mask is not None)
    blocks = -(-count // rows)
    share = Share("unit", batch * blocks, -(-batch * blocks // _SHARES))
    in_place = passing and group.nodes[-1].outputs[0] is weights and group.sweep[weights] == group.sweeps - 1
    own = [scores] if in_place or not passing else [scores, weights]
    memory = emitter.scratch(share.shares * len(own) * rows * row, scores.dtype)
    left, right = (matrix(emitter, v, first.attrs[turn]) for v, turn in zip(first.inputs, ("transa", "transb")))
    last = matrix(emitter, second.inputs[1], second.attrs["transb"])
    target = stack_at(emitter, result, result.shape, compact_strides(result.shape)) if head is None else head.target

    unit, m, begin, some, at = (emitter.variable(hint) for hint in ("unit", "m", "first", "rows", "at"))
    type, end = c_type(scores.dtype), suffix(scores)
    lines = [f"for (int64_t {unit} = begin; {unit} < end; ++{unit}) {{",
             f"    const int64_t {m} = {unit} / {blocks}, {begin} = {unit} % {blocks} * {rows};",
             f"    const int64_t {some} = {begin} + {rows} < {count} ? {rows} : {count} - {begin}, {at} = {m} * {count} + {begin};"]
    for number, value in enumerate(own):                # pointers to whole matrices of which this block is
        name = emitter.variable(value.name)
        lines.append(f"    {type} *const {name} = ({type} *)((uintptr_t)({memory} + (begin / {share.step} * {len(own)} + {number})"
                     f" * {rows * row}) - {at} * {row * scores.dtype.itemsize});")
        emitter.put_at(value, name)
    if in_place:
        emitter.put_at(weights, emitter.name(scores))

    span = Span(row) if mask is None else Span(row, emitter.variable("columns"), emitter.variable("moderate"))
    at_block = {value: f"{emitter.name(value)} + {at} * {value.shape[-1]}" for value in (scores, weights)}

    def product(a: str, turned: int, b: str, operand: Matrix, sizes: str, to: str, distance: Size) -> str:
        return f"dy_gemm_{end}({turned}, {operand.turned}, {some}, {sizes}, 1, {a}, {b}, {operand.distance}, 0, {to}, {distance});"

    spans = {**_spans(nest, scores.shape, m, begin, some), nest.inner[-1].name: span.loop}
    whole = (nest.inner[-1].name,) if span.is_whole else ()
    text = render(dataclasses.replace(nest, share=None), emitter, spans, whole)
    made = [product(f"{left.at(m, begin)}, {left.distance}", left.turned, right.at(m, column=span.left), right,
                    f"{span.width}, {common_size(first)}", span.of(at_block[scores]), row), *text.lines]
    if mask is not None:
        lines.insert(0, f"int {span.moderate} = -1;")
        lines.append(f"    if ({begin} == 0) {span.moderate} = -1;")
        operands = [(left, (count, common_size(first))), (right, (common_size(first), row)), (last, (row, result.shape[-1]))]
        moderate = " && ".join(is_moderate(operand, shape, m, end) for operand, shape in operands)
        made = kept_columns(made, span, mask, mask.matrix(emitter).at(m, begin), some, moderate, at_block[weights], end)
        made += [] if passing else zeros_beside(span, some, at_block[weights], type)
    made.append(product(f"{span.of(at_block[weights])}, {row}", 0, last.at(m, span.left), last,
                        f"{result.shape[-1]}, {span.width}", target.at(m, begin), target.distance))
    emitter.part(["    " + line for line in (*lines, *("    " + line for line in made), "}")], share)


def _block_rows(count: int, nbytes: int, is_masked: bool) -> int:
    """How many rows a block has: about equal blocks, of whole tiles."""
    most = _MASKED if is_masked else min(_MOST, max(_LEAST, _BYTES // nbytes))
    each = -(-count // -(-count // most))
    return min(count, -(-each // _TILE) * _TILE)


def _spans(nest: LoopNest, shape: Sequence[int], m: str, begin: str, some: str) -> Dict[str, Tuple[str, str]]:
    """Where the outer loops begin and end for ``some`` rows of matrix ``m``, from ``begin`` on."""
    of_rows, spans = len(shape) - 2, {}
    for axis in nest.outer:
        stack = [a for a in axis.axes if a != of_rows]
        behind = math.prod(shape[stack[-1] + 1:of_rows]) if stack else 1
        index = f"{m} / {behind} % {math.prod(shape[a] for a in stack)}" if stack else "0"
        if of_rows in axis.axes:
            index = f"{index} * {shape[of_rows]} + {begin}"
        spans[axis.name] = (index, f"{index} + {some if of_rows in axis.axes else 1}")
    return spans
