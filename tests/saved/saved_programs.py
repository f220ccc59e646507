"""Programs for tests of saved models, and how their results are compared."""
import collections

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np

from dy2static import InputSpec

Pair = collections.namedtuple("Pair", "total parts")
SCALE = 3
TABLE = np.arange(6, dtype=np.float32).reshape(2, 3)


def array(*shape, seed=0):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


def chain(forward, **links):
    """A Chain of these links whose ``forward`` is the function."""
    cls = type("Model", (chainer.Chain,), {"forward": forward})
    np.random.seed(0)
    return cls(**{name: make() for name, make in links.items()})


# The programs --------------------------------------------------------------------------------------------------------


def mlp(self, x):
    return self.l2(F.dropout(F.relu(self.l1(x)), 0.4))


def normalised(self, x):
    h = F.max_pooling_2d(F.relu(self.bn(self.conv(x))), 2)
    return self.l1(h)


def steps(x):
    rows = [F.tanh(x[:, i]) * i for i in range(x.shape[1])]
    return F.stack(rows[::-1]), rows[-1]


def branches(self, x):
    h = self.l1(x)
    if h.array.sum() > 0:
        h = F.tanh(h) * 2
    elif h.array.max() > 0.2:
        return -h
    return h + 1


def doubled(x):
    n = 0
    while F.sum(x * x).array < 10:
        x = x * 2
        n += 1
    return x, n


def collected(self, xs):
    hs = []
    for x in F.separate(xs, axis=0):
        if x.array.sum() > 0:
            hs.append(self.l1(x))
    return F.stack(hs).mean() if hs else F.sum(xs)


def structured(self, batch, scales, flag=True):
    a, b = batch["a"], batch["b"][0]
    y = self.l1(a) * scales[0] + b
    return {"y": y, "pair": Pair(F.sum(y), [y[0], None]), "n": len(scales), "flag": flag, "name": "y"}


def of_globals(x):
    return x * SCALE + TABLE


def by_contents(self, x, t):
    return F.softmax_cross_entropy(self.l2(F.embed_id(x, self.e.W)), t), F.argmax(self.l2(self.e(x)), axis=1)


def twice(self, x):
    return self.l1(F.sigmoid(self.l1(x))) * self.scale


def masked(x):
    y = x.array.copy()
    y[y < 0] = 0
    return F.sum(x * y), np.argsort(y, axis=1), float(y.max())


def linear(inner, outer):
    return lambda: L.Linear(inner, outer)


class Case:
    """A program, its arguments for a seed and a size, and what `save` is given."""

    def __init__(self, make, args, specs=None, sizes=(1, 2, 5)):
        self.make, self.args, self.specs, self.sizes = make, args, specs, sizes


def _with_scale():
    model = chain(twice, l1=linear(4, 4))
    model.scale = 0.5
    return model


CASES = {
    "mlp": Case(lambda: chain(mlp, l1=linear(4, 6), l2=linear(6, 3)), lambda n: (array(n, 4, seed=n),), [InputSpec([None, 4])]),
    "normalised": Case(
        lambda: chain(normalised, conv=lambda: L.Convolution2D(2, 3, 3), bn=lambda: L.BatchNormalization(3), l1=linear(12, 2)),
        lambda n: (array(n, 2, 6, 6, seed=n),), [InputSpec([None, 2, 6, 6])], (2, 5)),
    "branches": Case(lambda: chain(branches, l1=linear(4, 3)), lambda n: (array(n, 4, seed=n),), [InputSpec([None, 4])], (1, 2, 3, 6)),
    "while": Case(lambda: doubled, lambda n: (chainer.Variable(array(n, 3, seed=n)),), [InputSpec([None, 3])]),
    "list": Case(lambda: chain(collected, l1=linear(3, 2)), lambda n: (array(4, n, 3, seed=n),), [InputSpec([4, None, 3])]),
    "structured": Case(
        lambda: chain(structured, l1=linear(4, 3)),
        lambda n: ({"a": array(n, 4, seed=n), "b": [chainer.Variable(array(n, 3))]}, (2.0, 3)),
        [{"a": InputSpec([None, 4]), "b": [InputSpec([None, 3])]}, (2.0, 3)]),
    "globals": Case(lambda: of_globals, lambda n: (chainer.Variable(array(2, 3, seed=n)),), [InputSpec([2, 3])], (1,)),
    "integers": Case(
        lambda: chain(by_contents, e=lambda: L.EmbedID(5, 4), l2=linear(4, 3)),
        lambda n: (np.arange(n, dtype=np.int32) % 5, np.arange(n, dtype=np.int32) % 3),
        [InputSpec([None], "int32"), InputSpec([None], "int32")]),
    "steps": Case(lambda: steps, lambda n: (chainer.Variable(array(2, n, seed=n)),), [InputSpec([2, None])]),
    "shared": Case(_with_scale, lambda n: (array(n, 4, seed=n),), [InputSpec([None, 4])]),
    "numpy": Case(lambda: masked, lambda n: (chainer.Variable(array(n, 3, seed=n)),), [InputSpec([2, 3])], (2,)),
}


def flat(item):
    """The leaves of a result, in order."""
    if isinstance(item, dict):
        return [leaf for part in item.values() for leaf in flat(part)]
    return [leaf for part in item for leaf in flat(part)] if isinstance(item, (tuple, list)) else [item]


def skeleton(item):
    """The types of a result and of its parts; a named tuple by its fields."""
    if isinstance(item, tuple):
        return getattr(item, "_fields", ()), tuple(map(skeleton, item))
    if isinstance(item, list):
        return list(map(skeleton, item))
    return {key: skeleton(part) for key, part in item.items()} if isinstance(item, dict) else type(item)


def run(function, link, args):
    """What a call gives, and the gradients of the sum of what it gives and of its square; the random state is set before."""
    variables = [leaf for leaf in flat(args) if isinstance(leaf, chainer.Variable)]
    for x in variables:
        x.cleargrad()
    if link is not None:
        link.cleargrads()
    np.random.seed(3)
    result = function(*args)
    leaves = flat(result)
    losses = [F.sum(y * y) + F.sum(y) for y in leaves if isinstance(y, chainer.Variable) and y.requires_grad and y.dtype.kind == "f"]
    grads = []
    if losses and chainer.config.enable_backprop:
        sum(losses).backward()
        grads = [x.grad for x in variables] + ([p.grad for _, p in sorted(link.namedparams())] if link is not None else [])
    return result, [leaf.array if isinstance(leaf, chainer.Variable) else leaf for leaf in leaves], grads


def assert_same(found, expected):
    assert skeleton(found[0]) == skeleton(expected[0])
    for a, b in zip(found[1] + found[2], expected[1] + expected[2]):
        if isinstance(b, (np.ndarray, np.generic)):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
        else:
            assert type(a) is type(b) and a == b
