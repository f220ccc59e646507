"""Lowerings of `chainer.functions.connection`."""
from __future__ import annotations

from typing import Any, Optional

import chainer
from chainer.functions.connection.embed_id import EmbedIDFunction
from chainer.functions.connection.linear import LinearFunction

from .. import ops
from ..ir.building import constant
from ..ir.graph import Value
from .registry import lowers


@lowers(LinearFunction)
def linear(node: Any, x: Value, W: Value, *b: Value) -> Optional[Value]:
    # W may be of another dtype than x; the product is then cast, in place
    if x.dtype != W.dtype:
        return None
    y = ops.matmul(x, W, transb=True)
    return y + b[0] if b else y


@lowers(EmbedIDFunction)
def embed_id(node: Any, x: Value, W: Value) -> Optional[Value]:
    # in debug mode ids are checked; where an id is to be ignored, row 0 is read, and masked afterwards
    if chainer.is_debug():
        return None
    if node.ignore_label is None:
        return ops.take(W, x, axis=0)
    label = node.ignore_label
    if not isinstance(label, int) or x.dtype.type(label) != label:
        return None
    ignored = ops.equal(x, constant(label, x.dtype))
    rows = ops.take(W, ops.where(ignored, constant(0, x.dtype), x), axis=0)
    return ops.where(ops.reshape(ignored, shape=x.shape + (1,)), constant(0, W.dtype), rows)
