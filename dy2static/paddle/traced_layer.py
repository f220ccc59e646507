"""A Link that was called once, as a program: Paddle's `TracedLayer`."""
from __future__ import annotations

import os
import types
from typing import Any, List, Optional, Sequence, Tuple, Union

import chainer
import numpy as np

from ..call_specs import normal
from ..errors import SignatureError
from ..export.formats import write_as
from ..options import Options
from ..saved.layer import TranslatedLayer
from ..static_function import BoundStaticFunction, StaticFunction, entry_point
from .concrete_program import concrete_program
from .models import Part, exported_part, save_part
from .named_program import NamedProgram


class TracedLayer:
    """A Link with the mode (``chainer.config.train``) in which it was traced; made by `TracedLayer.trace`.

    The program contains decisions and loops, uses the parameters of the Link, and accepts inputs of other sizes.

    Raises `SignatureError` for arguments that no `InputSpec` can describe.
    """

    def __init__(self, method: BoundStaticFunction, args: Sequence[Any], program: NamedProgram):
        self._method, self._program = method, program
        self._specs = [_spec(arg) for arg in args]

    @staticmethod
    def trace(layer: chainer.Link, inputs: Any) -> Tuple[Any, "TracedLayer"]:
        """Call a Link once.  Returns (its result for these inputs, the traced layer).

        inputs: an array or Variable, or a list of them: the arguments of the Link.

        Raises `CaptureError` if the call cannot be compiled, and `SignatureError` for an object that is not a Link.
        """
        if not isinstance(layer, chainer.Link):
            raise SignatureError(f"TracedLayer.trace takes a Link, not {type(layer).__name__}")
        method = _compiled(layer)
        args = _listed(inputs)
        outputs = method(*args)                         # comes first: it may initialise parameters
        program = concrete_program(method, method.program(*args)).main_program
        program.train = bool(chainer.config.train)
        return outputs, TracedLayer(method, args, program)

    def __call__(self, inputs: Any) -> List[Any]:
        """The Variables, arrays and numbers that the Link gives, in one list, with the same graph for gradients as in eager mode.

        inputs: as in `trace`.
        """
        with chainer.using_config("train", self._program.train):
            result = self._method(*_listed(inputs))
        return [target.of(result) for target in self._program.fetch_targets]

    @property
    def program(self) -> NamedProgram:
        """The program, for an `Executor`."""
        return self._program

    def set_strategy(self, build_strategy: Any = None, exec_strategy: Any = None) -> None:
        """Do nothing: the optimizations that such strategies turn on are always done."""

    def save_inference_model(self, path: Union[str, os.PathLike], feed: Optional[Sequence[int]] = None,
                             fetch: Optional[Sequence[int]] = None, input_spec: Optional[Sequence[Any]] = None,
                             format: Optional[str] = None) -> None:
        """Save the program, in the mode in which it was traced, for `load_inference_model` and `load`.

        path: the folder.
        feed: the numbers of the inputs to keep, in this order; None keeps all that hold arrays.
        fetch: the numbers of the results to keep (``program.fetch_targets``), in this order; None keeps the result of the Link.
        input_spec: as for `save`, for all inputs.  None takes the traced shapes with first axes of any size.  If that is not
            possible, the first axes keep their sizes, with a `SaveWarning`.
        format: ``"onnx"`` writes an ONNX file to ``path`` instead.  It runs without Python, and `load` cannot read it.

        Raises `SignatureError` where something that is fetched needs an input that is not fed, and `SaveError` as `save` does;
        `ExportError` for what a format cannot express, and `RunError` where arrays in the Link do not fit the program.
        """
        if format is not None:
            write_as(exported_part(self._method, self._program, input_spec or self._specs, feed, fetch), path, format)
            return
        save_part(Part(self._method, self._program, self._specs, feed, fetch), path, input_spec)

    def __repr__(self) -> str:
        return f"<traced {self._program!r}>"


def _compiled(layer: chainer.Link) -> BoundStaticFunction:
    """The method that a call of the Link runs, compiled; the Link itself stays as it is."""
    if isinstance(layer, TranslatedLayer):
        return BoundStaticFunction(layer.function, layer)
    method = getattr(layer, entry_point(type(layer)))
    if isinstance(method, BoundStaticFunction):
        return method
    if isinstance(method, types.MethodType) and isinstance(method.__func__, types.FunctionType):
        return BoundStaticFunction(StaticFunction(method.__func__, Options(strict=True)), layer)
    raise SignatureError(f"the method that {type(layer).__name__} calls is no method of its own")


def _listed(inputs: Any) -> Sequence[Any]:
    return inputs if isinstance(inputs, (list, tuple)) else [inputs]


def _spec(arg: Any) -> Any:
    """What an argument is like; other values than arrays and Variables stand for themselves."""
    if isinstance(arg, (list, tuple)):
        return type(arg)([_spec(part) for part in arg])
    if isinstance(arg, dict):
        return {key: _spec(part) for key, part in arg.items()}
    return normal(arg) if isinstance(arg, (chainer.Variable, np.ndarray)) else arg
