"""The opt-in start-up hook: one line in site-packages that makes plain ``import chainer`` work.

Python runs that line whenever it starts; the line runs this file, but not the rest of the package, which
would import Chainer into every process.
"""
from __future__ import annotations

import importlib
import os
import sys
import sysconfig
import types

RUN_NAME = "dy2static_startup"
PACKAGE = "dy2static_hook"
FOLDER = os.path.dirname(os.path.abspath(__file__))


def path() -> str:
    """Where the hook is, or would be, in the running environment."""
    return os.path.join(sysconfig.get_paths()["purelib"], "dy2static.pth")


def line() -> str:
    """The hook.  It does nothing if this file does not exist."""
    file = os.path.join(FOLDER, "hook.py")
    return f"import os, runpy; os.path.exists({file!r}) and runpy.run_path({file!r}, run_name={RUN_NAME!r})\n"


def write() -> str:
    """Install the hook and return its path."""
    with open(path(), "w", encoding="utf-8") as file:
        file.write(line())
    return path()


def remove() -> bool:
    """Remove the hook; return whether there was one."""
    if not os.path.exists(path()):
        return False
    os.remove(path())
    return True


def activate() -> None:
    """Have Chainer edited in this process, from this folder alone under a package name of its own."""
    package = types.ModuleType(PACKAGE)
    package.__path__ = [FOLDER]
    sys.modules[PACKAGE] = package
    importlib.import_module(f"{PACKAGE}.loader").insert(ImportError)


if __name__ == RUN_NAME:
    activate()
