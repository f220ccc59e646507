"""Calls of the arithmetic of Variables."""
import chainer.functions as F
import numpy as np

from .case import Case, binary, unary

CASES = [
    *binary("add", lambda a, b: a + b),
    *binary("sub", lambda a, b: a - b),
    *binary("mul", lambda a, b: a * b),
    *binary("div", lambda a, b: a / b, low=0.5),
    *binary("pow", lambda a, b: a ** b, low=0.5),
    Case("multi_add", lambda a, b, c: F.add(a, b, c), (2, 3), (3,), (2, 1)),
    Case("multi_add one", lambda a: F.add(a), (2, 3)),
    *unary("neg", lambda x: -x),
    *unary("abs", lambda x: abs(x)),
    *unary("add constant", lambda x: x + 1.1),
    *unary("sub constant", lambda x: x - 1.1),
    *unary("sub from constant", lambda x: 1.1 - x),
    *unary("mul constant", lambda x: x * np.float64(1.1)),
    *unary("div constant", lambda x: x / 3),
    *unary("div from constant", lambda x: 1.1 / x, low=0.5),
    *(case for exponent in (2, 3, 0.5, 1, 0, -1, -2.5, np.float32(3))
      for case in unary(f"pow {exponent!r}", lambda x, exponent=exponent: x ** exponent, low=0.5)),
    *unary("constant pow", lambda x: 1.7 ** x),
]

DECLINED = []
