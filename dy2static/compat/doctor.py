"""What ``python -m dy2static doctor`` says: the versions, how Chainer is edited, what order imports need."""
from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Iterator

from dy2static.compat import cuda, hook
from dy2static.compat.patches import PATCHES, apply

DISTRIBUTIONS = ("dy2static", "chainer", "numpy", "gast", "astor", *cuda.WHEELS[:2], "onnx")


def report() -> Iterator[str]:
    """Yield the lines of the report."""
    yield f"{'Python':<12} {platform.python_version()}  {sys.executable}"
    for name in DISTRIBUTIONS:
        yield f"{name:<12} {_version(name)}"
    yield from ("", *cuda.report())
    yield "\nedits of Chainer's modules, made in memory while they are imported:"
    yield from (f"  {name:<45} {_fit(name)}" for name in PATCHES)
    yield f"\n`import dy2static`, then `import chainer`: {_outcome('import dy2static, chainer')}"
    outcome = _outcome("import chainer")
    yield f"`import chainer` alone: {outcome}"
    if outcome != "works":
        yield from (
            "  Chainer 7.8.1 is older than this Python or NumPy.  dy2static edits the few lines concerned",
            "  while they are imported, so write `import dy2static` above `import chainer` in the file that",
            "  your program starts with.  Where that cannot be done, `python -m dy2static install-hook`",
            "  makes plain `import chainer` work in this environment.",
        )
    yield f"start-up hook: {hook.path() if os.path.exists(hook.path()) else 'not installed'}"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _fit(name: str) -> str:
    """Whether the installed source of a module is the one that its edit knows."""
    chainer = importlib.util.find_spec("chainer")
    if chainer is None or chainer.origin is None:
        return "Chainer is not installed"
    try:
        apply(name, source_file(Path(chainer.origin).parent.parent, name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as reason:
        return f"does not fit: {reason}"
    return "fits"


def source_file(site: Path, name: str) -> Path:
    """The source of a module, or of a package, below a folder that Python imports from."""
    place = site.joinpath(*name.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _outcome(statement: str) -> str:
    """What a fresh Python says to an import: ``works``, or the last line of the traceback."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", statement], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, universal_newlines=True)
    return "works" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]
