"""A backend for arrays of the stand-in for CuPy that is NumPy's behind its doors: tests of captures and guards need no other."""
from dataclasses import replace

import chainer
import numpy as np

from dy2static.backends.base import Done, HostArrays
from dy2static.backends.host.backend import NumpyBackend
from dy2static.backends.registry import register
from dy2static.ir.devices import HOST
from dy2static.ir.types import Tensor

cupy = chainer.backends.cuda.cupy


class _Arrays(HostArrays):
    device = "cupy"


class NumpyOnDouble(NumpyBackend):
    """Inputs come to the host, results go to the device."""

    name, arrays, has_updates = "numpy_on_double", _Arrays(), False

    def start(self, graph, *, saved=(), **options):
        made = super().start(graph, saved=saved, **options).finish()
        types = [v.type for v in (*graph.outputs, *saved)]

        def call(arena, *inputs):
            results = made.call(arena, *[x.get() if type(x) is cupy.ndarray else x for x in inputs])
            return tuple([cupy.array(x) if _is_on_device(t) else x for x, t in zip(results, types)])
        return Done(replace(made, call=call))


def _is_on_device(type_):
    return isinstance(type_, Tensor) and type_.device != HOST


def use():
    """Let programs on arrays of the stand-in run so."""
    register(NumpyOnDouble())


def array(*shape, dtype=np.float32, seed=0):
    """Random numbers on the device."""
    return cupy.array(np.random.RandomState(seed).uniform(-1, 1, shape).astype(dtype))
