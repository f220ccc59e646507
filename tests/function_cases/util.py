"""Calls of chainer.functions.util."""
import chainer.functions as F
from lowering_cases.case import Case

CASES = [
    Case("forget", lambda x: F.forget(lambda h: F.tanh(h) * 2, x), (4, 3), twice=False),
    Case("forget of two", lambda a, b: F.forget(lambda a, b: (a * b, a + b), a, b), (4, 3), (4, 3), twice=False),
    Case("forget of a function", lambda x: F.forget(F.sin, x), (4, 3), twice=False),
    Case("forget, differentiated twice", lambda x: F.forget(F.tanh, x), (4, 3)),
    Case("forget draws", lambda x: F.forget(lambda h: F.dropout(h, 0.4), x), (4, 3), twice=False),
]
