"""What the rooms below `capture` may ask of the capture that runs.

Calls go up through these protocols only: `tests/doors/test_layering.py` refuses attributes that are not here.  `context` is the
capture; the other files are its parts, by what they are about.
"""
from .context import Calls, CaptureContext, Heap

__all__ = ["Calls", "CaptureContext", "Heap"]
