"""Attributes of libraries and of functions, which a capture must not change."""
from __future__ import annotations

import types
from typing import Any

from ..capture_context import CaptureContext
from .ownership import is_library


def stop_library_writes(capture: CaptureContext, value: Any) -> None:
    """Stop the capture if an attribute that must not change now is about to be set or deleted.

    It is one of a module, class or function of a library, or of a function of the user's that was there before the call.
    It would be set now, and not when the program runs.
    """
    if isinstance(value, types.ModuleType):
        home = name = value.__name__
    elif isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        home, name = value.__module__ or "builtins", value.__qualname__
    else:
        return
    if isinstance(value, types.FunctionType) and (capture.heap.has_met(value) or value in capture.heap.objects.methods):
        capture.abort(f"an attribute of the function {name} is set or deleted")
    if isinstance(home, str) and is_library(home):      # a class may say anything of its module
        capture.abort(f"an attribute of the library object `{name}` is set or deleted",
                      hint="do this outside of the compiled function")
