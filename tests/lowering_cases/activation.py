"""Calls of chainer.functions.activation."""
import chainer.functions as F

from .case import Case, unary

CASES = [
    *unary("relu", F.relu),
    *unary("tanh", F.tanh),
    *unary("sigmoid", F.sigmoid),
    *unary("leaky_relu", F.leaky_relu),
    *unary("leaky_relu negative", lambda x: F.leaky_relu(x, -0.5)),
    *unary("elu", F.elu, exact=False),
    *unary("elu negative", lambda x: F.elu(x, -0.7), exact=False),
    *unary("softplus", F.softplus, exact=False),
    *unary("softplus 2", lambda x: F.softplus(x, 2), exact=False),
    *unary("clipped_relu", lambda x: F.clipped_relu(x, 0.75)),
    Case("crelu", F.crelu, (4, 3)),
    Case("prelu", F.prelu, (4, 3), (3,)),
    Case("prelu of one", F.prelu, (4, 3), ()),
    Case("prelu of images", F.prelu, (2, 3, 2), (3,)),
    Case("swish", F.swish, (2, 3, 2), (3,)),
    *unary("hard_sigmoid", F.hard_sigmoid, low=-4.0, high=4.0),
    *(Case(f"{f.__name__} {shape} {axis}", lambda x, f=f, axis=axis: f(x, axis=axis), shape)
      for f in (F.softmax, F.log_softmax)
      for shape, axis in (((4, 3), 1), ((2, 3, 4), -1), ((3,), 0), ((0, 3), 1), ((5, 1), 1))),
]

DECLINED = []
