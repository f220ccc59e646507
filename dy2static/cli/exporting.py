"""``export``: a function or Link as a file for other runtimes."""
from __future__ import annotations

import zipfile
from typing import Optional, Sequence

import chainer
import click

from dy2static.cli.target import named, target_argument
from dy2static.errors import SignatureError
from dy2static.export.captured import exported
from dy2static.export.formats import FORMATS, write_as
from dy2static.input_spec import InputSpec


@click.command()
@target_argument
@click.option("--input", "-i", "inputs", multiple=True, metavar="NAME=SHAPE:DTYPE",
              help="An argument, in their order: image=Nx784:float32; a letter is any size.")
@click.option("-o", "--output", required=True, metavar="PATH", help="The file or folder.")
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), default="onnx", show_default=True)
@click.option("--weights", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
              help="An .npz file for the Link, as chainer.serializers.save_npz writes it.")
@click.option("--training", is_flag=True, help="With chainer.config.train.")
@click.option("--state", is_flag=True, help="State that calls change becomes inputs and outputs.")
def export(target: str, inputs: Sequence[str], output: str, format_: str, weights: Optional[str], training: bool,
           state: bool) -> None:
    """Write a function or Link as an ONNX file, or as C."""
    found = named(target)
    if weights is not None:
        if not zipfile.is_zipfile(weights):
            raise SignatureError(f"{weights} is no .npz file", hint="chainer.serializers.save_npz writes one")
        chainer.serializers.load_npz(weights, found)
    program = exported(found, [InputSpec.from_text(text) for text in inputs], training=training, state=state)
    write_as(program, output, format_)
    click.echo(f"wrote {output}: {', '.join(part.name for part in program.arguments)} -> "
               f"{', '.join(part.name for part in program.results)}")


COMMANDS = (export,)
