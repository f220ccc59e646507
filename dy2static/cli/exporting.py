"""``export``: a function or Link as a file for other runtimes."""
from __future__ import annotations

import zipfile
import zlib
from typing import Any, Optional, Sequence

import chainer
import click
import numpy as np

from dy2static.cli.target import named, target_argument
from dy2static.errors import SignatureError
from dy2static.export.captured import exported
from dy2static.export.formats import FORMATS, write_as
from dy2static.input_spec import InputSpec
from dy2static.pyast.source import by_position
from dy2static.static_function import entry_point


@click.command()
@target_argument
@click.option("--input", "-i", "inputs", multiple=True, metavar="NAME=SHAPE:DTYPE",
              help="An argument, by its name, else the next in order: image=Nx784:float32; a letter is any size.")
@click.option("-o", "--output", required=True, metavar="PATH", help="The file or folder.")
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), default="onnx", show_default=True)
@click.option("--weights", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
              help="An .npz file for the Link, as chainer.serializers.save_npz writes it.")
@click.option("--training", is_flag=True, help="With chainer.config.train.")
@click.option("--state", is_flag=True, help="State that calls change becomes inputs and outputs.")
def export(target: str, inputs: Sequence[str], output: str, format_: str, weights: Optional[str], training: bool,
           state: bool) -> None:
    """Write a function or Link as an ONNX file, or as C."""
    if not output:
        raise click.BadParameter("the path is empty", param_hint="--output")
    found = named(target)
    if weights is not None:
        _read_weights(target, found, weights)
    specs = _in_order(target, found, [InputSpec.from_text(text) for text in inputs])
    program = exported(found, specs, training=training, state=state)
    write_as(program, output, format_)
    click.echo(f"wrote {output}: {', '.join(part.name for part in program.arguments)} -> "
               f"{', '.join(part.name for part in program.results)}")


def _read_weights(target: str, found: Any, path: str) -> None:
    """Read the parameters of a Link, or of that whose method is exported.  Raises `SignatureError` where they do not fit."""
    link = found if isinstance(found, chainer.Link) else getattr(found, "__self__", None)
    if not isinstance(link, chainer.Link):
        raise SignatureError(f"--weights are for a Link or its methods, and {target} is none of them")
    if not zipfile.is_zipfile(path):
        raise SignatureError(f"{path} is no .npz file", hint="chainer.serializers.save_npz writes one")
    try:
        with np.load(path) as arrays:
            for name, parameter in link.namedparams():
                there = None if parameter.array is None else arrays[name[1:]].shape
                if there is not None and there != parameter.shape:      # `load_npz` would repeat an array with fewer elements
                    raise ValueError(f"{name[1:]} has the shape {there} in the file, and {parameter.shape} in the Link")
        chainer.serializers.load_npz(path, link)
    except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        said = error.args[0] if isinstance(error, KeyError) else error
        raise SignatureError(f"{path} does not hold the weights of {target}: {said}",
                             hint="chainer.serializers.save_npz writes those of the same Link") from None


def _in_order(target: str, found: Any, specs: Sequence[InputSpec]) -> Sequence[Any]:
    """The specs as positional arguments: those that have the name of an argument are this one.  Raises `SignatureError`."""
    method = getattr(found, entry_point(type(found))) if isinstance(found, chainer.Link) else found
    function = getattr(method, "python_function", method)
    if not callable(function):
        return specs                                    # `exported` says what is wrong
    try:
        return by_position(function, [(spec.name, spec) for spec in specs])
    except TypeError as error:
        raise SignatureError(f"{target} cannot be called with these inputs: {error}",
                             hint="give its arguments by --input, by name or in their order") from None


COMMANDS = (export,)
