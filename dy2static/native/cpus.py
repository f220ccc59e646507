"""The CPU that native code is for, and what it has."""
from __future__ import annotations

import functools
import os
import platform
from typing import Dict

from .. import config

#: What a CPU has that runs code for each level of x86-64, in the words of /proc/cpuinfo.
_LEVELS = {"x86-64": "sse2", "x86-64-v2": "ssse3 sse4_2 popcnt", "x86-64-v3": "avx2 fma bmi2 f16c movbe",
           "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl"}
_CPU_FIELDS = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags",
               "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def has_long_vectors() -> bool:
    """Whether native code has vectors of 512 bits, and 32 registers for them."""
    return _runs("x86-64-v4", "avx512f")


def has_masked_loads() -> bool:
    """Whether native code has vectors of 256 bits, of which some elements can be loaded."""
    return _runs("x86-64-v3", "avx2") or has_long_vectors()


def is_intel() -> bool:
    """Whether native code is for this CPU, which is one of Intel's."""
    return march() == "native" and fields().get("vendor_id") == "GenuineIntel"


def _runs(level: str, flag: str) -> bool:
    """Whether native code is for CPUs of this level, or for this one, which has the flag."""
    wanted = march()
    return wanted == level or wanted == "native" and flag in fields().get("flags", "").split()


def march() -> str:
    """The CPU that native code is for, as the C compiler names it in ``-march=``."""
    return str(config.MARCH.value).strip() or "native"


def lacking() -> str:
    """What this CPU lacks of the level of x86-64 in ``DY2STATIC_MARCH``; empty for other names, and where the CPU is unknown."""
    has = fields().get("flags", "").split()
    return ", ".join([flag for flag in _LEVELS.get(march(), "").split() if has and flag not in has])


def identity() -> str:
    """The CPU that libraries are for: that of ``DY2STATIC_MARCH``, or the model and the instruction sets of this one."""
    kind = f"{platform.system()} {platform.machine()}"
    return f"{kind} {sorted(fields().items())}" if march() == "native" else f"{kind} {march()}"


@functools.lru_cache(maxsize=None)
def fields() -> Dict[str, str]:
    """What /proc/cpuinfo says of the CPU, as far as it decides what ``-march=native`` means."""
    found = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if not line.strip():
                    break               # the first processor stands for all
                if name.strip() in _CPU_FIELDS:
                    found[name.strip()] = value.strip()
    except OSError:
        found["processor"] = platform.processor()
    return found
