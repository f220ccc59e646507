"""The command line of the checks: ``python -m dy2static.check_gpu [--emulated] [--quick]``."""
from __future__ import annotations

import argparse
import re
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence

import chainer
import numpy as np

from ..compat import cuda
from ..errors import BackendError
from ..native import cudnn, nvrtc
from ..native.device import CupyDevice
from ..native.device_kernels import Kernel, text_of
from ..native.emulated import EmulatedDevice, emulated_cudnn, missing
from . import calls, launches, models, open_sizes, products, samples, speed
from .checks import Checks

#: Architectures for which kernels are compiled where there is no GPU: Turing to Blackwell.
_ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")
_CONVOLUTIONS = ("conv", "conv_transpose", "conv_grad_weight")
_DTYPES = (None, "float16", "float64", "int32", "bool")


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run all checks; gives the exit status.  The last line that is printed is ``N passed, M failed``."""
    parser = argparse.ArgumentParser(prog="python -m dy2static.check_gpu", description=__doc__)
    parser.add_argument("--emulated", action="store_true", help="run kernels on the processor: values, orders of threads, no speed")
    parser.add_argument("--quick", action="store_true", help="two samples of each op, one architecture")
    parser.add_argument("--only", action="append", choices=list(SECTIONS), help="run this section only; can be given several times")
    given = parser.parse_args(arguments)
    checks = Checks()
    try:
        task = Task(checks, given.emulated, given.quick)
    except BackendError as error:
        checks.check("the checks", str(error))
    else:
        for name in given.only or SECTIONS:
            with checks.guarded(name), chainer.using_config("cudnn_deterministic", True):
                SECTIONS[name](task)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return int(checks.failed > 0)


class Task:
    """What is to be checked, and on which devices."""

    def __init__(self, checks: Checks, emulated: bool, quick: bool):
        self.checks, self.emulated, self.quick = checks, emulated, quick
        if emulated and missing():
            raise BackendError(missing())
        if not emulated and not cuda.devices():
            raise BackendError("CuPy finds no device", hint="`--emulated` runs what needs none")
        self.devices: Sequence[Any] = ([EmulatedDevice(order, emulated_cudnn()) for order in (0, 1, 2)] if emulated
                                       else [CupyDevice()] * 2)
        self.architectures = () if not (emulated and nvrtc.available()) else _ARCHITECTURES[2:3] if quick else _ARCHITECTURES
        print("\n".join([
            *cuda.report(),
            f"NVRTC {'.'.join(map(str, nvrtc.version())) if nvrtc.available() else 'is not installed'}",
            f"cuDNN {'.'.join(map(str, cudnn.version())) or 'is not installed'}",
            "kernels run in emulation" if emulated else f"kernels are for {self.devices[0].architecture}"]), flush=True)


def _ops(task: Task) -> None:
    """The kernels of the samples of ops."""
    for dtype in _DTYPES[:1] if task.quick else _DTYPES:
        found = samples.cases(dtype, 2 if task.quick else 100 if dtype is None else 3)
        _values(task.checks, f"samples of ops, {dtype or 'their own dtypes'}", found, task.devices)
        for architecture in task.architectures:
            _compiled(task.checks, samples.kernels_of(found), architecture)


def _convolutions(task: Task) -> None:
    """Convolutions by cuDNN."""
    for dtype in ("float16", "float32", "float64"):
        found = samples.cases(dtype, 100, _CONVOLUTIONS, task.devices[0].plan)
        _values(task.checks, f"convolutions by cuDNN, {dtype}", found, task.devices)


def _open_sizes(task: Task) -> None:
    """Kernels for sizes that only the run knows."""
    for dtype in ("float32",) if task.quick else ("float32", "float16", "float64"):
        failed = task.checks.failed
        sizes = (*open_sizes.SIZES, *(() if task.emulated else open_sizes.LARGE))
        cases = open_sizes.check(task.devices, task.checks.check, dtype, sizes)
        kernels = [kernel for case in cases for kernel in case.kernels]
        print(f"open sizes, {dtype}: {len(cases)} graphs, {len(kernels)} kernels, {task.checks.failed - failed} failed", flush=True)
        for architecture in task.architectures:
            _compiled(task.checks, kernels, architecture)


def _calls(task: Task) -> None:
    """Programs on CuPy arrays."""
    (calls.emulated if task.emulated else calls.check)(task.checks, task.quick)


def _regions(task: Task) -> None:
    """The forward and backward regions of small models."""
    for name in models.MODELS:
        found = models.regions(name)
        task.checks.check(f"regions of {name}", "" if found else "there is none")
        _values(task.checks, f"regions of {name}", found, task.devices)


def _launches(task: Task) -> None:
    """Launches and CUDA graphs."""
    launches.check(task.devices[0], task.checks.check, () if task.emulated else speed.streams())
    products.check(task.devices[0], task.checks.check, None if task.emulated else speed.seconds)


def _speed(task: Task) -> None:
    """How fast kernels are on a GPU."""
    if not task.emulated:
        speed.report(task.devices[0], task.checks.check)


#: The checks, by what `--only` calls them.
SECTIONS: Dict[str, Callable[[Task], None]] = {
    "ops": _ops, "convolutions": _convolutions, "open-sizes": _open_sizes, "calls": _calls, "regions": _regions,
    "launches": _launches, "speed": _speed}


def _values(checks: Checks, title: str, cases: List[samples.Case], devices: Sequence[Any]) -> None:
    """Values against NumPy's, and the same bits each time."""
    kernels = samples.kernels_of(cases)
    module, failed = devices[0].load(kernels), checks.failed
    for case in cases:
        with checks.guarded(case.name):
            results = [case.run(device, module) for device in devices]
            checks.check(case.name, case.difference(results[0]))
            same = all(a.tobytes() == b.tobytes() for other in results[1:] for a, b in zip(results[0], other))
            checks.check(f"{case.name}, once more", "" if same else "other bits")
    print(f"{title}: {len(cases)} graphs, {len(kernels)} kernels, {checks.failed - failed} failed", flush=True)


def _compiled(checks: Checks, kernels: Sequence[Kernel], architecture: str) -> None:
    """What NVRTC makes of all kernels."""
    try:
        made = nvrtc.machine_code(text_of(kernels), architecture, ["--ptxas-options=-v"])
    except nvrtc.NvrtcRefused as error:
        checks.check(architecture, error.log[:2000])
        return
    registers = list(map(int, re.findall(r"Used (\d+) registers", made.log)))
    spilled = sum(map(int, re.findall(r"(\d+) bytes spill stores", made.log)))
    checks.check(architecture, "" if made.cubin else "no machine code")
    print(f"  {architecture}: {len(registers)} kernels, at most {max(registers)} registers, half of them at most "
          f"{int(np.median(registers))}, {spilled} bytes of registers in memory, {len(made.cubin) // 1024} KiB", flush=True)


if __name__ == "__main__":
    sys.exit(main())
