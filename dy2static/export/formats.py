"""The formats in which closed programs are written, by name: for doors that are given one."""
from __future__ import annotations

from typing import Any, Callable, Dict

from ..errors import SignatureError
from .program import ExportedProgram
from .to_c.folder import write_program as write_c
from .to_onnx.door import write_program as write_onnx

#: ``write(program, path)``: of a file, or a folder.
FORMATS: Dict[str, Callable[[ExportedProgram, Any], None]] = {
    "onnx": write_onnx,
    "c": write_c,
}


def write_as(program: ExportedProgram, path: Any, format: str) -> None:
    """Write a program in the format of this name.  Raises `SignatureError` for one that is not known, and `ExportError`."""
    if format not in FORMATS:
        raise SignatureError(f"there is no format {format!r}", hint=f"there are {', '.join(FORMATS)}")
    FORMATS[format](program, path)
