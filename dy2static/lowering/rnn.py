"""Lowerings of `chainer.functions.rnn`."""
from __future__ import annotations

from typing import Any, Optional, Tuple

from chainer.functions.rnn.lstm import LSTM
from chainer.functions.rnn.slstm import SLSTM
from chainer.functions.rnn.tree_lstm import TreeLSTM

from .. import ops
from ..ir.graph import Value
from .registry import lowers


@lowers(LSTM)
def lstm(node: Any, c_prev: Value, x: Value) -> Tuple[Value, Value]:
    # The four gates lie side by side per unit, not in four blocks; sequences that ended keep their cells.  The gradient
    # of the cells does not depend on them, but Chainer gives them zeros.
    batch, gates, c_prev = x.shape[0], _gates(x), ops.attached(c_prev, c_prev)
    if batch == c_prev.shape[0]:
        c_next, h = _step(c_prev, *gates)
        return c_next, h
    running, ended = ops.split(c_prev, sizes=(batch, c_prev.shape[0] - batch), axis=0)
    c_next, h = _step(running, *gates)
    return ops.concat(c_next, ended, axis=0), h


def _gates(x: Value) -> Tuple[Value, ...]:
    return ops.unstack(ops.reshape(x, shape=(x.shape[0], x.shape[1] // 4, 4) + x.shape[2:]), axis=2)


def _gate(x: Value) -> Value:
    return ops.sigmoid(x, gate=True)


def _step(c_prev: Value, a: Value, i: Value, f: Value, o: Value) -> Tuple[Value, Value]:
    c_next = ops.tanh(a) * _gate(i) + _gate(f) * c_prev
    return c_next, _gate(o) * ops.tanh(c_next)


@lowers(SLSTM)
def slstm(node: Any, c1: Value, c2: Value, x1: Value, x2: Value) -> Tuple[Value, Value]:
    # two cells become one; the output gates are added
    (a1, i1, f1, o1), (a2, i2, f2, o2) = _gates(x1), _gates(x2)
    o = _gate(o1 + o2)
    c = ops.tanh(a1) * _gate(i1) + ops.tanh(a2) * _gate(i2) + _gate(f1) * c1 + _gate(f2) * c2
    return c, o * ops.tanh(c)


@lowers(TreeLSTM)
def tree_lstm(node: Any, *xs: Value) -> Optional[Tuple[Value, Value]]:
    # here the gates are blocks; the forget gates of the children come last
    *cells, x = xs
    units = cells[0].shape[1]
    a, i, o, *fs = ops.split(x, sizes=(units,) * (3 + len(cells)), axis=1)
    kept = 0.0 + _gate(fs[0]) * cells[0]
    for f, c in zip(fs[1:], cells[1:]):
        kept = kept + _gate(f) * c
    c = ops.tanh(a) * _gate(i) + kept
    return c, _gate(o) * ops.tanh(c)
