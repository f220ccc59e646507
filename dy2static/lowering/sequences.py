"""Lowerings of what `chainer.functions.array` does to sequences of different lengths.

All sequences are joined, and their rows picked in another order by an index that is known now.
"""
from __future__ import annotations

from typing import Any, List, Optional, Tuple

import chainer
import numpy as np
from chainer.functions.array.pad_sequence import PadSequence
from chainer.functions.array.permutate import Permutate
from chainer.functions.array.transpose_sequence import TransposeSequence

from .. import ops
from ..ir.building import constant
from ..ir.graph import Value
from .registry import are_fixed, are_there, array_in, is_number, known_array, lowers


def _starts(xs: Tuple[Value, ...]) -> List[int]:
    """Where each sequence begins in all of them joined."""
    return [0, *np.cumsum([x.shape[0] for x in xs]).tolist()]


@lowers(TransposeSequence)
def transpose_sequence(node: Any, *xs: Value) -> Optional[Tuple[Value, ...]]:
    # sequences come longest first, so the rows of one moment are those of the first few
    length = xs[0].shape[0] if xs else 0
    if length == 0 or any(x.dtype != xs[0].dtype for x in xs):
        return None
    starts = _starts(xs)
    moments = [[starts[i] + t for i, x in enumerate(xs) if t < x.shape[0]] for t in range(length)]
    rows = ops.take(ops.concat(*xs, axis=0), constant(sum(moments, [])), axis=0)
    parts = ops.split(rows, sizes=tuple(map(len, moments)), axis=0)
    return parts if isinstance(parts, tuple) else (parts,)


@lowers(PadSequence)
def pad_sequence(node: Any, *xs: Value) -> Optional[Value]:
    # the padding is one more row, which gets the gradients that are never read
    if not is_number(node.padding):
        return None
    if not are_fixed([x.shape[0] for x in xs]):
        return _padded(node, xs)
    length = max(x.shape[0] for x in xs) if node.length is None else node.length
    row = ops.full(shape=(1,) + xs[0].shape[1:], value=node.padding, dtype=xs[0].dtype)
    starts = _starts(xs)
    index = [[start + t if t < x.shape[0] else starts[-1] for t in range(length)] for start, x in zip(starts, xs)]
    return ops.take(ops.concat(*xs, row, axis=0), constant(np.array(index, np.intp).reshape(len(xs), length)), axis=0)


def _padded(node: Any, xs: Tuple[Value, ...]) -> Optional[Value]:
    """The same where only the run knows the lengths."""
    if node.length is not None or not are_there(*xs):
        return None
    sizes = tuple([x.shape[0] for x in xs])
    table, _, runs, *_ = ops.sequence_places(sizes=sizes)
    row = ops.full(shape=(1,) + xs[0].shape[1:], value=node.padding, dtype=xs[0].dtype)
    padding = ops.broadcast_to(ops.scalar_to_tensor(ops.dimension(size=sum(sizes)), dtype=table.dtype), shape=table.shape)
    index = ops.where(ops.reshape(runs, shape=table.shape), table, padding)
    return ops.take(ops.concat(*xs, row, axis=0), ops.transpose(index, axes=(1, 0)), axis=0)


@lowers(Permutate)
def permutate(node: Any, x: Value) -> Optional[Value]:
    # Debug mode checks the indices.  A negative axis is read as the first one.
    if chainer.is_debug():
        return None
    known = known_array(node.indices)
    if known is not None:
        indices = constant(np.argsort(known) if node.inv else known)
    else:
        indices = None if node.inv else array_in(node.indices)
    if indices is None:
        return None
    return ops.take(x, indices, axis=max(node.axis, 0))
