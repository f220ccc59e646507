"""Calls of Chainer functions: those that are lowered, and those that stay whole.  One module per package of Chainer's."""
from . import activation, array, basic_math, connection, evaluation, loss, math, noise, normalization, pooling, rnn
from .case import Case

_MODULES = (activation, array, basic_math, connection, evaluation, loss, math, noise, normalization, pooling, rnn)
CASES = [case for module in _MODULES for case in module.CASES]
DECLINED = [case for module in _MODULES for case in module.DECLINED]

__all__ = ["CASES", "DECLINED", "Case"]
