"""Calls of the public functions that the tables of the lowerings do not call.  One module per package of Chainer's."""
from . import activation, array, connection, evaluation, loss, math, noise, normalization, pooling, rnn, util

_MODULES = (activation, array, connection, evaluation, loss, math, noise, normalization, pooling, rnn, util)
CASES = [case for module in _MODULES for case in module.CASES]

__all__ = ["CASES"]
