"""Compiled functions for other runtimes than Python."""
from .to_onnx.door import onnx

__all__ = ["onnx"]
