"""Calls of chainer.functions.activation."""
import chainer.functions as F
from lowering_cases.case import Case, unary

CASES = [
    *unary("relu6", F.relu6, low=-4.0, high=8.0),
    *unary("selu", F.selu),
    *unary("selu of other numbers", lambda x: F.selu(x, alpha=1.5, scale=0.5)),
    *(Case(f"maxout {shape} {size} {axis}", lambda x, size=size, axis=axis: F.maxout(x, size, axis), shape)
      for shape, size, axis in (((4, 6), 3, 1), ((2, 4, 3), 2, -2), ((3, 2), 1, 1), ((0, 4), 2, 1))),
    *unary("rrelu", F.rrelu),
    *unary("rrelu of other bounds", lambda x: F.rrelu(x, l=0.3, u=0.5)),
    *unary("rrelu in a test", F.rrelu, train=False),
    Case("rrelu gives its slopes", lambda x: F.rrelu(x, return_r=True), (4, 3)),
    Case("rrelu of given slopes", lambda x, r: F.rrelu(x, r=r.array), (4, 3), (4, 3)),
]
