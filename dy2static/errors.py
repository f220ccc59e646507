"""Every error raised on purpose: what happened, where in the user's file, and what to do about it."""
from __future__ import annotations

import linecache
from typing import Any, NamedTuple, Optional, Tuple


class Location(NamedTuple):
    """A place in the user's source: file, line (from 1), column (from 0) and the function it is in.

    callers: the user's lines that called that function, outermost first, where they are known.
    """

    file: str
    line: int
    col: int = 0
    function: str = ""
    callers: Tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def same_line(self, other: Optional["Location"]) -> bool:
        """Whether the other place is on the same line, whoever called the function."""
        return other is not None and (self.file, self.line) == (other.file, other.line)

    def text(self) -> str:
        """The source line, without its end; empty when the file cannot be read."""
        return linecache.getline(self.file, self.line).rstrip()


class Dy2StaticError(Exception):
    """Base class of the errors of dy2static.  The message says what failed, at which line, and what to do."""

    code = "D2S000"

    def __init__(self, message: str, at: Optional[Location] = None, hint: Optional[str] = None):
        super().__init__(message)
        self.at, self.hint = at, hint

    def __str__(self) -> str:
        lines = [f"{self.code}: {self.args[0]}"]
        if self.at is not None:
            lines += [f"  {self.at}"]
            text = self.at.text()
            if text:
                shown = text.lstrip()
                lines += [f"    {shown}", "    " + " " * max(self.at.col - (len(text) - len(shown)), 0) + "^"]
        if self.hint:
            lines += [f"  hint: {self.hint}"]
        return "\n".join(lines)


class UnsupportedSyntaxError(Dy2StaticError, SyntaxError):
    """The source holds something that cannot be compiled; every such place is reported at once."""

    code = "D2S101"

    def __init__(self, message: str, at: Optional[Location] = None, hint: Optional[str] = None):
        Dy2StaticError.__init__(self, message, at, hint)

    __str__ = Dy2StaticError.__str__


class SourceNotFoundError(Dy2StaticError, OSError):
    """The source of a function cannot be fetched (REPL, ``exec``, C function, file gone)."""

    code = "D2S102"

    __str__ = Dy2StaticError.__str__


class CaptureError(Dy2StaticError, RuntimeError):
    """A call cannot be captured, and ``strict=True`` forbids that it runs in eager mode."""

    code = "D2S201"


class SignatureError(Dy2StaticError, TypeError):
    """``to_static`` was applied to, or called with, something it cannot take."""

    code = "D2S202"


class RunError(Dy2StaticError, RuntimeError):
    """A compiled program met values that its capture had promised could not come."""

    code = "D2S301"


class DivergenceError(Dy2StaticError, AssertionError):
    """With ``check=N``: the compiled call and the eager call gave different results or effects."""

    code = "D2S302"


class BackendError(Dy2StaticError, RuntimeError):
    """Chainer, NumPy or CuPy could not be set up as we need them."""

    code = "D2S401"


class SaveError(Dy2StaticError, ValueError):
    """A function cannot be saved; the message names the user's line."""

    code = "D2S501"

    @property
    def reason(self) -> str:
        """The message in one line, with the place."""
        return f"{self.args[0]}{f' ({self.at})' if self.at is not None else ''}"


class LoadError(Dy2StaticError, ValueError):
    """A folder holds no valid saved model: it is damaged, or has an unknown version.  No code of it was run."""

    code = "D2S502"


class ExportError(Dy2StaticError, ValueError):
    """A function cannot be written in the language of another runtime; names the user's line that cannot."""

    code = "D2S503"


class InternalError(Dy2StaticError, RuntimeError):
    """A mistake of ours.  Says how to get a dump for a report."""

    code = "D2S900"

    def __init__(self, message: str, at: Optional[Location] = None, hint: Optional[str] = None):
        super().__init__(message, at, hint or "this is a bug in dy2static; run with DY2STATIC_VERBOSITY=4 and report the output")


class VerifyError(InternalError):
    """A graph breaks a rule of the IR."""

    code = "D2S901"


class FallbackWarning(UserWarning):
    """A compiled function, or a line of it, runs in eager mode; the message names the line and the reason."""


class SettingWarning(UserWarning):
    """An environment variable ``DY2STATIC_…`` is unknown or has an invalid value; the message says what is used instead."""


class SaveWarning(UserWarning):
    """A model is saved without one of its modes; the message says which one, and why."""


class ExportWarning(UserWarning):
    """A model is exported, but not for all that it takes here; the text says for what not."""


class CheckWarning(UserWarning):
    """``check=N`` cannot compare a call with its eager run."""
