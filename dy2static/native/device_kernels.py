"""Kernels for GPUs, which are named by what they do: kernels of one text are one kernel, in all regions and all programs."""
from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Iterable

#: The headers of this package that the text of a kernel may use.
_PRELUDE = '#include "dy2static_math.h"\n#include "dy2static_philox.h"\n\n'


@dataclass(frozen=True)
class Kernel:
    """A kernel, whose parameters are pointers, and behind them numbers."""

    name: str
    text: str


def kernel_of(kind: str, threads: int, text: str) -> Kernel:
    """A kernel for blocks of at most so many threads.  kind: how its name begins.  text: its parameters and its body."""
    name = f"{kind}_{hashlib.sha256(f'{threads} {text}'.encode()).hexdigest()[:16]}"
    return Kernel(name, f'extern "C" __global__ void __launch_bounds__({threads}) {name}{text}')


def text_of(kernels: Iterable[Kernel]) -> str:
    """The CUDA C of kernels, each of them once."""
    return _PRELUDE + "\n".join({kernel.name: kernel.text for kernel in kernels}.values())
