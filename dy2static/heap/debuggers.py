"""Whether somebody steps through the user's code."""
from __future__ import annotations

import bdb
import sys


def is_debugging() -> bool:
    """Whether a debugger traces this thread: one built on `bdb` (pdb, IPython), or that of an IDE (pydevd, debugpy)."""
    trace = sys.gettrace()
    if trace is not None:
        owner = getattr(trace, "__self__", None)
        module = getattr(trace, "__module__", None) or type(owner).__module__
        return isinstance(owner, bdb.Bdb) or module.startswith(("pydevd", "_pydevd", "debugpy"))
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) is not None
