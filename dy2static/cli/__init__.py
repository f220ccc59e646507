"""The command line: ``python -m dy2static``, or ``dy2static``; each module here adds its commands to `COMMANDS`."""
from __future__ import annotations

import os
import runpy
import traceback
import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Callable, List, Optional, Sequence

import click

from dy2static.cli import cached, exporting, inspecting, installing, measuring, tuned
from dy2static.errors import CheckWarning, Dy2StaticError, ExportWarning, FallbackWarning, SaveWarning, SettingWarning
from dy2static.threads.replaced import replaced

#: Where the frames are that a traceback of the user's code does not show: the files of this package, of click, and of imports.
_TOOLS = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, os.path.dirname(click.__file__) + os.sep,
          runpy.__file__, "<frozen ")

#: The warnings of this package.
_OWN = (CheckWarning, ExportWarning, FallbackWarning, SaveWarning, SettingWarning)


def _version() -> str:
    try:
        return version("dy2static")
    except PackageNotFoundError:                        # a checkout that is not installed
        return "unknown"


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=True)
@click.version_option(_version(), prog_name="dy2static")
def commands() -> None:
    """See, measure and set up what dy2static compiles.

    A TARGET is a function, method, Link or class of one: package.module:name, or path/to/file.py:name.
    Its arguments are given by --input; see `dy2static explain --help`.
    """


for _module in (installing, inspecting, measuring, exporting, cached, tuned):
    for _command in _module.COMMANDS:
        commands.add_command(_command)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run one command and return the exit status: 0; 1 where it fails; 2 for a wrong command line."""
    with replaced(warnings, "formatwarning", _formatted):
        return _run(arguments)


def _formatted(before: Callable[..., str]) -> Callable[..., str]:
    """Warnings as lines of text: those of this package without the place, which is one of click's."""
    def text(message: Any, category: Any, *place: Any, **more: Any) -> str:
        return f"{category.__name__}: {message}\n" if category in _OWN else before(message, category, *place, **more)
    return text


def _run(arguments: Optional[Sequence[str]]) -> int:
    try:
        return commands.main(args=None if arguments is None else list(arguments), prog_name="dy2static", standalone_mode=False) or 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as mistake:
        mistake.show()
        return mistake.exit_code
    except click.Abort:
        click.echo("stopped", err=True)
        return 1
    except Dy2StaticError as error:
        click.echo(error, err=True)
        return 1
    except Exception as error:                          # of any kind: the user's code raised it, or a file cannot be written
        users = _users(error)
        if not users and not isinstance(error, (OSError, SyntaxError)):
            raise
        lines = ["Traceback (most recent call last):\n", *traceback.format_list(users)] if users else []
        click.echo("".join([*lines, *traceback.format_exception_only(type(error), error)]).rstrip(), err=True)
        return 1


def _users(error: BaseException) -> List[traceback.FrameSummary]:
    """The entries of a traceback without those of the tools."""
    return [entry for entry in traceback.extract_tb(error.__traceback__) if not entry.filename.startswith(_TOOLS)]
