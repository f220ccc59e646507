"""Compiled functions for other runtimes than Python."""
from .to_c.folder import ExportedC, c
from .to_onnx.door import onnx

__all__ = ["ExportedC", "c", "onnx"]
