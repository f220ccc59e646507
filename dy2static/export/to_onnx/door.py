"""`dy2static.export.onnx`: a function or Link as an ONNX file."""
from __future__ import annotations

import os
from typing import Any, Dict, Optional, Sequence, Tuple, Union

from ...errors import ExportError, SignatureError
from ...ir.dims import Dim
from ...ir.onnx_forms import NewerOpset
from ...ir.types import Tensor
from ..captured import exported
from ..program import ExportedProgram
from . import proto
from .model import Axis, model_of
from .writer import NEWEST, Options

#: The first opset that has all operators that are written.
OLDEST = 17
#: What becomes of code that raises.
CHECKS = ("refuse", "fail", "leave out")


def onnx(f_or_link: Any, args_or_input_spec: Sequence[Any], path: Union[str, "os.PathLike[str]"], *, opset: Optional[int] = None,
         training: bool = False, state: bool = False, gradients: Union[bool, Sequence[str]] = False, random: bool = False,
         checks: str = "refuse", external_above: Optional[int] = None) -> None:
    """Write one kind of call as an ONNX file.  onnxruntime then computes the same values as eager mode.

    f_or_link: a function, a method or a Link, compiled or not, or a model that was loaded.
    args_or_input_spec: for each positional argument an `InputSpec`, an array or a Variable, in lists, tuples and dicts as the
        arguments are; None in a shape is any size, and becomes a named axis.
    path: of the file.  Parameters of ``external_above`` bytes or more, 2 GB by default, are in ``path.data`` beside it.
    opset: the version of ONNX's operators, 17 to 24; without it, 17, or the first that has all operators that are needed.
    training: the value of ``chainer.config.train``.
    state: attributes and arrays that calls read and change become inputs ``state/lstm/h`` and outputs ``next/lstm/h``.
    gradients: True, or names of parameters and arguments: the gradients of the first result are results, too (``grad/l1/W``).
    random: whether draws become operators of ONNX, whose numbers are others than NumPy's.
    checks: ``"refuse"``: code that raises is an `ExportError`.  ``"fail"``: the run fails in a node that is named after the
        exception and the user's line.  ``"leave out"``: the model goes on as if nothing were raised, and takes sizes that it is not
        for; otherwise the run fails for those.

    Raises `ExportError`, with the user's line, for what cannot be expressed, before anything is written; `SignatureError` for
    wrong arguments; `BackendError` where the package ``onnx`` is missing.
    """
    options = checked_options(opset, random, checks)
    program = exported(f_or_link, args_or_input_spec, training=training, state=state, gradients=gradients)
    proto.write(model_of_program(program, options), path, external_above)


def write_program(program: ExportedProgram, path: Union[str, "os.PathLike[str]"]) -> None:
    """Write a closed program as an ONNX file, as `onnx` does by default."""
    proto.write(model_of_program(program, Options(OLDEST)), path)


def checked_options(opset: Optional[int], random: bool, checks: str) -> Options:
    """The options of the writer.  Raises `SignatureError`."""
    if opset is None:
        return checked_options(OLDEST, random, checks)._replace(is_fixed=False)
    if not OLDEST <= opset <= NEWEST:
        raise SignatureError(f"opset is a number from {OLDEST} to {NEWEST}, not {opset!r}")
    if checks not in CHECKS:
        raise SignatureError(f"checks is one of {', '.join(map(repr, CHECKS))}, not {checks!r}")
    return Options(opset, random, checks, is_fixed=True)


def model_of_program(program: ExportedProgram, options: Options) -> Any:
    """The model of a closed program.  Raises `ExportError`."""
    try:
        return _model(program, options)
    except ExportError as error:
        newer = error.__cause__
        if options.is_fixed or not isinstance(newer, NewerOpset):
            raise
    return _model(program, options._replace(opset=newer.first))


def _model(program: ExportedProgram, options: Options) -> Any:
    sizes = {Dim(symbol) * size.factor: size.name for symbol, size in program.sizes.items()}
    has_limits = [size for size in program.sizes.values() if size.least > 0 or size.most is not None or size.factor > 1]
    limited = [(program.arguments[size.argument].name, size) for size in has_limits if options.checks != "leave out"]
    tied = _tied(program) if options.checks != "leave out" else ()
    model = model_of(program.graph, [(a.value, a.name) for a in program.arguments],
                     [(p.value, p.name, p.array) for p in program.parameters],
                     list(zip(program.graph.outputs, [r.name for r in program.results])), sizes, options, program.name,
                     limited=limited, tied=tied)
    for size in program.sizes.values():
        if size.least > 0:
            model.metadata_props.add(key=f"least {size.name}", value=str(size.least))
        if size.most is not None:
            model.metadata_props.add(key=f"most {size.name}", value=str(size.most))
        if size.factor > 1:
            model.metadata_props.add(key=f"factor {size.name}", value=str(size.factor))
    for name, value in program.fixed.items():
        model.metadata_props.add(key=f"result {name}", value=repr(value))
    return model


def _tied(program: ExportedProgram) -> Sequence[Tuple[Axis, Axis]]:
    """Axes without a name for which the program takes the length of other ones, each with the first of these."""
    first: Dict[Dim, Axis] = {}
    found = []
    for argument in program.arguments:
        for axis, size in enumerate(argument.value.type.shape if isinstance(argument.value.type, Tensor) else ()):
            if isinstance(size, Dim):
                here = argument.name, axis
                known = first.setdefault(size, here)
                if known != here and not any(argument.size_names[axis:axis + 1]):
                    found.append((known, here))
    return found
