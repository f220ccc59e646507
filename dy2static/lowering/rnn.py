"""Lowerings of `chainer.functions.rnn`."""
from __future__ import annotations

from typing import Any, Tuple

from chainer.functions.rnn.lstm import LSTM

from .. import ops
from ..ir.graph import Value
from .registry import lowers


@lowers(LSTM)
def lstm(node: Any, c_prev: Value, x: Value) -> Tuple[Value, Value]:
    # the four gates lie side by side per unit, not in four blocks; sequences that ended keep their cells
    batch, units = x.shape[0], x.shape[1] // 4
    gates = ops.unstack(ops.reshape(x, shape=(batch, units, 4) + x.shape[2:]), axis=2)
    if batch == c_prev.shape[0]:
        c_next, h = _step(c_prev, *gates)
        return c_next, h
    running, ended = ops.split(c_prev, sizes=(batch, c_prev.shape[0] - batch), axis=0)
    c_next, h = _step(running, *gates)
    return ops.concat(c_next, ended, axis=0), h


def _step(c_prev: Value, a: Value, i: Value, f: Value, o: Value) -> Tuple[Value, Value]:
    c_next = ops.tanh(a) * ops.sigmoid(i) + ops.sigmoid(f) * c_prev
    return c_next, ops.sigmoid(o) * ops.tanh(c_next)
