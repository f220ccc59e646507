"""The command line: ``python -m dy2static doctor | install-hook | remove-hook | pipelines | build-kernels | export``."""
from __future__ import annotations

import argparse
import os
import pkgutil
import sys
from typing import Any, Optional, Sequence

import chainer

from dy2static.backends.pipelines import pipelines
from dy2static.compat import doctor, hook
from dy2static.errors import BackendError, Dy2StaticError, SignatureError
from dy2static.export.captured import exported
from dy2static.export.formats import FORMATS, write_as
from dy2static.input_spec import InputSpec
from dy2static.native import hotpath, kernels, store


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run one command and return the exit status."""
    parser = argparse.ArgumentParser(prog="dy2static", description="How dy2static is set up in this Python.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, (run, summary) in COMMANDS.items():
        commands.add_parser(name, help=summary, description=summary).set_defaults(run=lambda given, run=run: run())
    _add_export(commands)
    given = parser.parse_args(arguments)
    return given.run(given)


def _doctor() -> int:
    for line in doctor.report():
        print(line)
    return 0


def _install_hook() -> int:
    print(f"wrote {hook.write()}: from now on plain `import chainer` works in this environment")
    return 0


def _remove_hook() -> int:
    print(f"removed {hook.path()}" if hook.remove() else "no hook is installed in this environment")
    return 0


def _pipelines() -> int:
    print(pipelines())
    return 0


def _build_kernels() -> int:
    try:
        compiled, count = kernels.build_all(hotpath.start)
    except BackendError as reason:
        print(f"programs run on NumPy: {reason}")
        return 1
    print(f"compiled {compiled} of {count} libraries of kernels into {store.directory()}")
    return 0


def _add_export(commands: Any) -> None:
    summary = "write a function or Link as an ONNX file, or as C"
    parser = commands.add_parser("export", help=summary, description=summary)
    parser.add_argument("target", help="module:function, module:link, or module:Class of a Link that is made without arguments")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=SHAPE:DTYPE",
                        help="an argument, in their order: image=Nx784:float32; a letter is any size")
    parser.add_argument("-o", "--output", required=True, help="the file or folder")
    parser.add_argument("--format", choices=list(FORMATS), default="onnx")
    parser.add_argument("--weights", help="an .npz file for the Link, as chainer.serializers.save_npz writes it")
    parser.add_argument("--training", action="store_true", help="with chainer.config.train")
    parser.add_argument("--state", action="store_true", help="state that calls change becomes inputs and outputs")
    parser.set_defaults(run=_export)


def _export(given: argparse.Namespace) -> int:
    try:
        target = _found(given.target)
        if given.weights is not None:
            chainer.serializers.load_npz(given.weights, target)
        program = exported(target, [InputSpec.from_text(text) for text in given.input], training=given.training, state=given.state)
        write_as(program, given.output, given.format)
    except Dy2StaticError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"wrote {given.output}: {', '.join(part.name for part in program.arguments)} -> "
          f"{', '.join(part.name for part in program.results)}")
    return 0


def _found(words: str) -> Any:
    """What ``module:name.name`` names; a Link of a class of Links.  Raises `SignatureError`."""
    if not all(words.partition(":")):
        raise SignatureError(f"{words!r} names no function", hint="write module:function")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        target = pkgutil.resolve_name(words)
    except (ImportError, AttributeError, ValueError) as error:
        raise SignatureError(f"there is no {words}: {error}") from error
    return target() if isinstance(target, type) and issubclass(target, chainer.Link) else target


COMMANDS = {
    "doctor": (_doctor, "say which versions run here and what order of imports Chainer needs"),
    "install-hook": (_install_hook, "make `import chainer` work here without dy2static before it"),
    "remove-hook": (_remove_hook, "undo install-hook"),
    "pipelines": (_pipelines, "say which passes graphs go through, and when"),
    "build-kernels": (_build_kernels, "compile the kernels of native code ahead of the first program that needs them"),
}
