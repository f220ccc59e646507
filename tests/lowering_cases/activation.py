"""Calls of chainer.functions.activation."""
import chainer
import chainer.functions as F
import numpy as np

from .case import Case, unary

_R = np.array([[0.5, -1.5, 1.0], [0.25, 0.0, 2.0]], "f")


def _tested(x):
    with chainer.using_config("train", False):
        return F.rrelu(x)


CASES = [
    *(Case(f"rrelu {shape}", F.rrelu, shape) for shape in ((4, 3), (0, 3), (1,))),
    Case("rrelu reused", lambda x: F.rrelu(x * x, r=F.rrelu(x, 0.1, 0.4, return_r=True)[1]), (4, 3)),
    Case("rrelu given", lambda x: F.rrelu(x, r=_R), (2, 3), dtypes="f"),
    Case("rrelu tested", _tested, (4, 3)),
    Case("maxout", lambda x: F.maxout(x, 2), (3, 4)),
    Case("maxout axis", lambda x: F.maxout(x, 3, axis=2), (2, 2, 6, 2)),
    *unary("relu", F.relu),
    *unary("tanh", F.tanh),
    *unary("sigmoid", F.sigmoid),
    *unary("leaky_relu", F.leaky_relu),
    *unary("leaky_relu negative", lambda x: F.leaky_relu(x, -0.5)),
    *unary("leaky_relu zero", lambda x: F.leaky_relu(x, 0.0)),
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
