"""Models of the zoo on arrays of CuPy, or of the stand-in for it: two steps of training, in eager mode and compiled, and what differs."""
import random
import warnings

import chainer
import numpy as np
from models.training import _static_of
from models.zoo import ZOO

import dy2static

cupy = chainer.backends.cuda.cupy


class Sending:
    """A compiled function, or a function, that gets its arrays on the device."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **kwargs):
        return self.function(*sent(args), **sent(kwargs))

    def __getattr__(self, name):
        return getattr(self.function, name)


def sent(item):
    if isinstance(item, np.ndarray):
        return cupy.array(item)
    if type(item) in (tuple, list):
        return type(item)(map(sent, item))
    return {key: sent(part) for key, part in item.items()} if type(item) is dict else item


def sending(target):
    """The target, which is called with arrays of the host, for arrays on the device."""
    if not isinstance(target, chainer.Link):
        return Sending(target)
    cls = type(target)
    target.__class__ = type(cls.__name__, (cls,), {"__call__": lambda self, *args: cls.__call__(self, *sent(args))})
    return target


def numbers(item):
    """All numbers in a result, on the host."""
    if isinstance(item, (tuple, list)):
        return [array for part in item for array in numbers(part)]
    if isinstance(item, chainer.Variable):
        return numbers(item.array)
    if isinstance(item, cupy.ndarray):
        return [item.get()]
    return [np.asarray(item)] if isinstance(item, (np.ndarray, np.generic, int, float)) else []


def observed(entry, compile):
    """The results of two steps of training, and the parameters, gradients and statistics after each."""
    random.seed(3)
    np.random.seed(3)
    cupy.random.seed(3)
    step, roots = entry.make(compile)
    links = [root for root in roots if isinstance(root, chainer.Link)]
    for link in links:
        link.to_device("@cupy:0")
    found = []
    for k in range(2):
        found += numbers(step(k))
        for link in links:
            found += [array for p in link.params() for array in numbers([p.array, p.grad])]
            found += [array for part in link.links() for name in part._persistent for array in numbers(getattr(part, name))]
    return found


def compare(name, **options):
    """Train a model both ways; gives the compiled functions.  options: those of `to_static`."""
    entry, statics = ZOO[name], []

    def compile(target):
        made = dy2static.to_static(target, strict=True, **options)
        statics.append(made if isinstance(made, dy2static.StaticFunction) else _static_of(made))
        return sending(made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eager, compiled = observed(entry, sending), observed(entry, compile)
    assert [(a.shape, a.dtype) for a in eager] == [(a.shape, a.dtype) for a in compiled]
    for one, other in zip(compiled, eager):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3 * max(np.abs(other).max(initial=0), 0.01))
    assert all(static.stats()["programs"] and not static.stats()["cuts"] for static in statics)
    return statics
