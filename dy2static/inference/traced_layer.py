"""A Link that was called once, as a program: Paddle's `TracedLayer`."""
from __future__ import annotations

import types
from typing import Any, List, Sequence, Tuple

import chainer

from ..concrete.concrete_program import concrete_program
from ..concrete.named_program import NamedProgram
from ..errors import SignatureError
from ..options import Options
from ..static_function import BoundStaticFunction, StaticFunction, entry_point


class TracedLayer:
    """A Link with the mode (``chainer.config.train``) in which it was traced; made by `TracedLayer.trace`.

    Decisions and loops are part of the program, its parameters are those of the Link, and inputs of other sizes are taken as well.
    """

    def __init__(self, method: BoundStaticFunction, train: bool, program: NamedProgram):
        self._method, self._train, self._program = method, train, program

    @staticmethod
    def trace(layer: chainer.Link, inputs: Any) -> Tuple[Any, "TracedLayer"]:
        """(what the Link gives for these inputs, the traced layer).

        inputs: an array or Variable, or a list of them: the arguments of the Link.

        Raises `CaptureError` where such a call cannot be compiled.
        """
        if not isinstance(layer, chainer.Link):
            raise SignatureError(f"TracedLayer.trace takes a Link, not {type(layer).__name__}")
        method = _compiled(layer)
        args = _listed(inputs)
        outputs = method(*args)                         # comes first: it may initialise parameters
        program = concrete_program(method, method.program(*args)).main_program
        program.train = bool(chainer.config.train)
        return outputs, TracedLayer(method, program.train, program)

    def __call__(self, inputs: Any) -> List[Any]:
        """The Variables, arrays and numbers that the Link gives, in one list, with a graph behind them as ever.

        inputs: as in `trace`.
        """
        with chainer.using_config("train", self._train):
            result = self._method(*_listed(inputs))
        return [target.of(result) for target in self._program.fetch_targets]

    @property
    def program(self) -> NamedProgram:
        """What an `Executor` runs."""
        return self._program

    def set_strategy(self, build_strategy: Any = None, exec_strategy: Any = None) -> None:
        """Nothing: what such strategies turn on is done in any case."""

    def __repr__(self) -> str:
        return f"<traced {self._program!r}>"


def _compiled(layer: chainer.Link) -> BoundStaticFunction:
    """The method that a call of the Link runs, compiled; the Link itself stays as it is."""
    method = getattr(layer, entry_point(type(layer)))
    if isinstance(method, BoundStaticFunction):
        return method
    if isinstance(method, types.MethodType) and isinstance(method.__func__, types.FunctionType):
        return BoundStaticFunction(StaticFunction(method.__func__, Options(strict=True)), layer)
    raise SignatureError(f"the method that {type(layer).__name__} calls is no method of its own")


def _listed(inputs: Any) -> Sequence[Any]:
    return inputs if isinstance(inputs, (list, tuple)) else [inputs]
