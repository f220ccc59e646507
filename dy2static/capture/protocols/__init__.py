"""What the parts of a capture ask of it, and of each other.

The parts stand below `capture.Capture`, which holds them, and know it by these protocols.  `capture` is the capture itself; the
other files are its parts, by what they are about.
"""
from .capture import Calls, Capture, Gradients

__all__ = ["Calls", "Capture", "Gradients"]
