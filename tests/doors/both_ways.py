"""The same call of a compiled function and of the function itself."""
import chainer
import chainer.functions as F
import numpy as np


def x_(*shape):
    return chainer.Variable(np.random.RandomState(0).uniform(-1, 1, shape or (2, 3)).astype(np.float32))


def same_as_eager(static, function, *args):
    """Whether both give the same array and gradients."""
    arrays = []
    for f in (static, function):
        variables = [chainer.Variable(np.array(a.array)) for a in args]
        y = f(*variables)
        F.sum(y * y).backward()
        arrays.append([y.array] + [v.grad for v in variables])
    return all(np.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(*arrays))
