"""What users write, for type checkers: `reveal_type` behind a line's `# is:`, and its expected error behind `# error:`."""
from __future__ import annotations

from typing import Optional

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np

import dy2static
from dy2static import ignore_module, not_to_static, register_lowering, to_static


@to_static
def scaled(x: np.ndarray, factor: float = 2.0, *, bias: Optional[float] = None) -> chainer.Variable:
    return F.sum(x * factor + (bias or 0.0))


scaled(np.ones(3), 3.0, bias=1.0)
reveal_type(scaled(np.ones(3)))                         # is: chainer.variable.Variable
scaled("x")                                             # error: arg-type
scaled(np.ones(3), factr=3.0)                           # error: call-arg
scaled()                                                # error: call-arg
scaled.code.splitlines()
scaled.cache_info().programs + 1
scaled.cod                                              # error: attr-defined


@to_static(strict=True, cache_limit=4, rng="fast", recompute="auto", grads="drop")
def doubled(x: int) -> int:
    return 2 * x


reveal_type(doubled(1))                                 # is: int
doubled("1")                                            # error: arg-type
to_static(doubled.python_function, rng="slow")          # error: call-overload
to_static(stric=True)                                   # error: call-overload
reveal_type(to_static(lambda: 3)())                     # is: int
reveal_type(to_static(scaled)(np.ones(3)))              # is: chainer.variable.Variable


class Model(chainer.Chain):
    def __init__(self, units: int) -> None:
        super().__init__()
        with self.init_scope():
            self.linear = L.Linear(None, units)

    @to_static
    def forward(self, x: np.ndarray, train: bool = True) -> chainer.Variable:
        return self.linear(x)

    @to_static(check=1)
    def loss(self, x: np.ndarray, t: np.ndarray) -> float:
        return float(F.softmax_cross_entropy(self.forward(x), t).array)     # pyright: ignore[reportArgumentType]

    @to_static
    @staticmethod
    def halved(x: int) -> float:
        return x / 2

    quartered = staticmethod(to_static(lambda: 0.25))

    @property
    @to_static
    def units(self) -> int:
        return 3

    def plain(self, x: np.ndarray) -> int:
        return len(x)


model = Model(3)
reveal_type(model.forward(np.ones((2, 3)), train=False))    # is: chainer.variable.Variable
reveal_type(model.loss(np.ones((2, 3)), np.ones(2)))        # is: float
reveal_type(Model.loss(model, np.ones((2, 3)), np.ones(2)))     # is: float
model.loss(np.ones((2, 3)))                             # error: call-arg
model.forward("x")                                      # error: arg-type
model.forward.explain(np.ones((2, 3))).reason
reveal_type(model.quartered())                          # is: float
reveal_type(model.units)                                # is: int
reveal_type(Model.halved(1))                            # is: float
reveal_type(to_static(model.plain)(np.ones(3)))         # is: int


@to_static
class Whole(chainer.Chain):
    def __call__(self, x: np.ndarray) -> int:
        return len(x)


@to_static(backend="c")
class WithOptions(Whole):
    pass


class Called(chainer.Chain):
    @to_static
    def __call__(self, x: np.ndarray) -> str:
        return str(x)


reveal_type(Whole()(np.ones(3)))                        # is: int
reveal_type(WithOptions())                              # is: typing_sample.WithOptions
WithOptions()("x")                                      # error: arg-type
reveal_type(Called()(np.ones(3)))                       # is: str
Called()("x")                                           # error: arg-type
reveal_type(to_static(model))                           # is: typing_sample.Model
reveal_type(to_static(backend="numpy")(model))          # is: typing_sample.Model


def trained(updater: chainer.training.updaters.StandardUpdater) -> int:
    reveal_type(to_static(updater))                     # is: chainer.training.updaters.standard_updater.StandardUpdater
    return to_static(updater).iteration


class Cosine:
    def __call__(self, x: float) -> float:
        return float(np.cos(x))


reveal_type(to_static(Cosine())(1.0))                   # is: float
to_static(3)                                            # error: call-overload


@not_to_static
def logged(x: float) -> str:
    return str(x)


reveal_type(logged(1.0))                                # is: str
logged("x")                                             # error: arg-type
ignore_module(np)
ignore_module(["json", np])
ignore_module(3)                                        # error: arg-type


@register_lowering(logged)
def lowered(x: float) -> str:
    return "x"


lowered("x")                                            # error: arg-type
dy2static.to_statik                                     # error: attr-defined
