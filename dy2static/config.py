"""The environment variables and switches of the package; the only module that reads the environment.

What the environment says wrongly is ignored with a `SettingWarning`: it may be meant for another version, and an import is no
place to end a program.  What a program asks for wrongly is an error (`options`).
"""
from __future__ import annotations

import contextlib
import difflib
import os
import sys
import warnings
from typing import Any, Callable, ClassVar, Dict, Iterable, Iterator, NamedTuple, Sequence

from .errors import SettingWarning

PREFIX = "DY2STATIC_"
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Kind(NamedTuple):
    """What a setting may be: in words, and what a text stands for (``read`` raises ValueError for another one)."""

    words: str
    read: Callable[[str], Any]


def words(known: Sequence[str]) -> Kind:
    """One of these words."""
    def read(text: str) -> str:
        return known[known.index(text.strip())]
    return Kind(f"one of {', '.join(known)}", read)


def number(least: int, most: float = float("inf")) -> Kind:
    """A whole number in these limits."""
    def read(text: str) -> int:
        if not least <= int(text) <= most:
            raise ValueError(text)
        return int(text)
    return Kind(f"a whole number from {least} on" if most == float("inf") else
                f"{least} or {most}" if most == least + 1 else f"a whole number from {least} to {most}", read)


def _seconds(text: str) -> float:
    if not 0 < float(text) < float("inf"):
        raise ValueError(text)
    return float(text)


def recompute(option: Any) -> Any:
    """What ``recompute`` may be, from an option or a text.  Raises ValueError."""
    if isinstance(option, str) and option.strip().isdigit():
        option = int(option)
    if option in ("auto", "none", "cheap", "sublinear") or type(option) is int and option >= 0:
        return option
    raise ValueError(option)


def _warn(message: str) -> None:
    """A warning at the line that imports the package."""
    frame, depth = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_OURS, "<frozen importlib")):
        depth += frame.f_code.co_filename.startswith(_OURS)         # those of importlib are not counted
        frame = frame.f_back
    warnings.warn(message, SettingWarning, stacklevel=depth)


#: What the option ``backend`` may be; `backends.registry` adds those that are registered later.
BACKENDS = ["auto", "c", "numpy"]
TEXT, SWITCH, COUNT, SECONDS = Kind("a text", str), number(0, 1), number(0), Kind("a number of seconds", _seconds)
RECOMPUTES = Kind("auto, none, cheap, sublinear or a number of bytes", recompute)


class Flag:
    """One setting: the environment variable it starts from, its value now, and its meaning."""

    table: ClassVar[Dict[str, "Flag"]] = {}

    def __init__(self, name: str, default: Any, kind: Kind, doc: str):
        self.name, self.default, self.doc = name, default, doc
        self.value = default
        Flag.table[name] = self
        text = os.environ.get(name)
        try:
            self.value = kind.read(text) if text else default
        except ValueError:
            self.ignore(f"{name}={text} is ignored, since it is to be {kind.words}")

    def ignore(self, why: str) -> None:
        """Say that the default holds, and why."""
        self.value = self.default
        _warn(f"{why}; {self.default!r} holds")

    @contextlib.contextmanager
    def set(self, value: Any) -> Iterator[None]:
        """Have another value inside a ``with`` block."""
        old, self.value = self.value, value
        try:
            yield
        finally:
            self.value = old


CODE_LEVEL = Flag("DY2STATIC_CODE_LEVEL", "", TEXT,
                  "log the source after these transformers: `all`, a name, a number, or several with commas; `diff`: what changed")
PASS_LEVEL = Flag("DY2STATIC_PASS_LEVEL", "", TEXT,
                  "log the graph after these passes: `all`, `last`, a name, that of a pipeline, or several with commas")
VERBOSITY = Flag("DY2STATIC_VERBOSITY", 0, COUNT,
                 "0 warnings only · 1 captures and cache misses · 2 converted functions · 3 graphs · 4 generated code")
VERIFY = Flag("DY2STATIC_VERIFY", 0, SWITCH, "1 checks every graph after every pass (always on in the tests)")
ENABLED = Flag("DY2STATIC_ENABLED", 1, SWITCH, "0 runs every decorated function eagerly")
BACKEND = Flag("DY2STATIC_BACKEND", "auto", words(BACKENDS),
               "what programs run on: `numpy`; `c`, native code where there is a C compiler; `auto`, NumPy at first, then C")
NATIVE_AFTER = Flag("DY2STATIC_NATIVE_AFTER", 10, COUNT, "with `auto`, the calls of a program after which it becomes native code")
BACKGROUND = Flag("DY2STATIC_BACKGROUND", 1, SWITCH,
                  "with `auto`, calls go on with NumPy while the C compiler runs; 0: they wait for it")
PACE = Flag("DY2STATIC_PACE", 1, SWITCH,
            "1: functions, and parts of functions, that call nothing of Chainer's are measured beside Python, and the faster way "
            "stays; 0: they stay compiled")
RECOMPUTE = Flag("DY2STATIC_RECOMPUTE", "auto", RECOMPUTES,
                 "what backwards compute again instead of keeping it: `auto`, `none`, `cheap`, `sublinear`, or how many bytes may "
                 "be kept")
GPU_GRAPHS = Flag("DY2STATIC_GPU_GRAPHS", 1, SWITCH,
                  "0: kernels on GPUs are always launched one by one, never replayed as CUDA graphs")
CC = Flag("DY2STATIC_CC", "", TEXT,
          "the C compiler of native programs, with flags of its own if it needs any; empty: the first of cc, gcc, clang")
CC_SECONDS = Flag("DY2STATIC_CC_SECONDS", 120, SECONDS,
                  "how many seconds the C compiler may take for one text; then it is ended, and programs run on NumPy")
MARCH = Flag("DY2STATIC_MARCH", "native", TEXT,
             "the CPU that native programs are made for, as the C compiler names it in `-march=`: `x86-64-v2`, `x86-64-v3`, "
             "`armv8-a`; `native`: the one they are made on")
FULL_TRACEBACK = Flag("DY2STATIC_FULL_TRACEBACK", 0, SWITCH,
                      "1: tracebacks of compiled calls show the lines of dy2static and of generated code, too; what is "
                      "compiled then has no lines of yours")
PROGRESS = Flag("DY2STATIC_PROGRESS", 1, SWITCH,
                "0: no line in a terminal while a compilation takes more than two seconds (other outputs never show it)")
STRICT_BUILD = Flag("DY2STATIC_STRICT_BUILD", 0, SWITCH,
                    "1: code that the C compiler rejects is an error; 0: its program runs on NumPy, with one warning")
CACHE_DIR = Flag("DY2STATIC_CACHE_DIR", "", TEXT,
                 "where compiled libraries and generated code are kept, in a folder closed to other users; empty: `dy2static` in "
                 "the user's cache")
CACHE_MB = Flag("DY2STATIC_CACHE_MB", 256, COUNT,
                "how many MiB of compiled libraries and generated code are kept; those used least recently go")
TUNE = Flag("DY2STATIC_TUNE", 0, SWITCH,
            "1: where native code has several algorithms for a shape, each is measured once per machine, and the fastest is "
            "used from then on; 0: rules choose, and nothing is measured or read")
KEEP = Flag("DY2STATIC_KEEP", 1, SWITCH,
            "1: the code of converted functions, captured graphs, and which algorithms were measured to be the fastest on a GPU "
            "are kept in the cache directory for later processes; 0: only compiled libraries are")
THREADS = Flag("DY2STATIC_THREADS", 0, COUNT,
               "how many threads native programs use; 0: `OMP_NUM_THREADS`, if that is less than there are cores, or one for each")


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like another one; empty where none is."""
    by_lower = {other.lower(): other for other in known}
    found = difflib.get_close_matches(name.lower(), by_lower, 1)
    return by_lower[found[0]] if found else ""


def _say_unknown() -> None:
    for name in os.environ:
        if name.startswith(PREFIX) and name not in Flag.table:
            other = nearest(name[len(PREFIX):], [known[len(PREFIX):] for known in Flag.table])
            _warn(f"there is no setting {name}{f'; is it {PREFIX}{other}?' if other else ''}")


_say_unknown()


def is_dumb_terminal() -> bool:
    """Whether the terminal, by its name, cannot erase a line."""
    return os.environ.get("TERM", "dumb") == "dumb"


def openmp_threads() -> int:
    """The number of threads in OMP_NUM_THREADS, the first if there is a list; 0 where there is none."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() else 0


def gpu_graphs() -> bool:
    """Whether kernels on GPUs are replayed as CUDA graphs: not if CUDA_LAUNCH_BLOCKING lets each launch wait for its kernel."""
    return bool(GPU_GRAPHS.value) and os.environ.get("CUDA_LAUNCH_BLOCKING", "0") in ("", "0")


def tf32_override() -> str:
    """NVIDIA_TF32_OVERRIDE, by which cuBLAS may round float32 to TF32 against what it is asked for; "" where it is not set."""
    return os.environ.get("NVIDIA_TF32_OVERRIDE", "")


def cache_home() -> str:
    """The directory for what may be made again: DY2STATIC_CACHE_DIR, or ours in the user's cache (XDG)."""
    if CACHE_DIR.value:
        return os.path.abspath(os.path.expanduser(CACHE_DIR.value))
    home = os.environ.get("XDG_CACHE_HOME", "")
    # the standard says that a relative path is to be ignored
    return os.path.join(home if os.path.isabs(home) else os.path.expanduser("~/.cache"), "dy2static")
