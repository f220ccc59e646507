"""The command line of the checks: ``python -m dy2static.check_gpu [--emulated] [--quick]``."""
from __future__ import annotations

import argparse
import re
import sys
from typing import Any, List, Optional, Sequence

import numpy as np

from ..backends.cuda.program import text_of
from ..compat import cuda
from ..errors import BackendError
from ..native import cudnn, nvrtc
from ..native.device import CupyDevice
from ..native.emulated import EmulatedDevice, emulated_cudnn, missing
from . import calls, launches, models, open_sizes, samples, speed
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
    given = parser.parse_args(arguments)
    checks = Checks()
    try:
        _run(checks, given.emulated, given.quick)
    except BackendError as error:
        checks.check("the checks", str(error))
    print(f"{checks.passed} passed, {checks.failed} failed")
    return int(checks.failed > 0)


def _run(checks: Checks, emulated: bool, quick: bool) -> None:
    """All checks."""
    if emulated and missing():
        raise BackendError(missing())
    if not emulated and not cuda.devices():
        raise BackendError("CuPy finds no device", hint="`--emulated` runs what needs none")
    devices = [EmulatedDevice(order, emulated_cudnn()) for order in (0, 1, 2)] if emulated else [CupyDevice()] * 2
    print("\n".join([*cuda.report(), f"NVRTC {'.'.join(map(str, nvrtc.version())) if nvrtc.available() else 'is not installed'}",
                     f"cuDNN {'.'.join(map(str, cudnn.version())) or 'is not installed'}",
                     "kernels run in emulation" if emulated else f"kernels are for {devices[0].architecture}"]), flush=True)
    for dtype in _DTYPES[:1] if quick else _DTYPES:
        found = samples.cases(dtype, 2 if quick else 100 if dtype is None else 3)
        _values(checks, f"samples of ops, {dtype or 'their own dtypes'}", found, devices)
        if emulated and nvrtc.available():
            for architecture in _ARCHITECTURES[2:3] if quick else _ARCHITECTURES:
                _compiled(checks, samples.source_of(found)[0], architecture)
    for dtype in ("float16", "float32", "float64"):
        found = samples.cases(dtype, 100, _CONVOLUTIONS, devices[0].plan)
        _values(checks, f"convolutions by cuDNN, {dtype}", found, devices)
    for dtype in ("float32",) if quick else ("float32", "float16", "float64"):
        _open(checks, dtype, devices, emulated, _ARCHITECTURES[2:3] if quick else _ARCHITECTURES)
    if emulated:
        calls.emulated(checks, quick)
    else:
        calls.check(checks, quick)
    for name in models.MODELS:
        _values(checks, f"regions of {name}", models.regions(name), devices)
    launches.check(devices[0], checks.check, () if emulated else speed.streams())
    if not emulated:
        speed.report(devices[0], checks.check)


def _values(checks: Checks, title: str, cases: List[samples.Case], devices: Sequence[Any]) -> None:
    """Values against NumPy's, and the same bits each time."""
    text, kernels = samples.source_of(cases)
    module, failed = devices[0].load(text, [kernel.name for kernel in kernels]), checks.failed
    for case in cases:
        try:
            results = [case.run(device, module) for device in devices]
        except BackendError as error:
            checks.check(case.name, str(error))
            continue
        checks.check(case.name, case.difference(results[0]))
        same = all(a.tobytes() == b.tobytes() for other in results[1:] for a, b in zip(results[0], other))
        checks.check(f"{case.name}, once more", "" if same else "other bits")
    print(f"{title}: {len(cases)} graphs, {len(kernels)} kernels, {checks.failed - failed} failed", flush=True)


def _open(checks: Checks, dtype: str, devices: Sequence[Any], emulated: bool, architectures: Sequence[str]) -> None:
    """Kernels for sizes that only the run knows."""
    failed = checks.failed
    cases = open_sizes.check(devices, checks.check, dtype, (*open_sizes.SIZES, *(() if emulated else open_sizes.LARGE)))
    kernels = [kernel for case in cases for kernel in case.kernels]
    print(f"open sizes, {dtype}: {len(cases)} graphs, {len(kernels)} kernels, {checks.failed - failed} failed", flush=True)
    for architecture in architectures if emulated and nvrtc.available() else ():
        _compiled(checks, text_of(kernels), architecture)


def _compiled(checks: Checks, text: str, architecture: str) -> None:
    """What NVRTC makes of all kernels."""
    try:
        made = nvrtc.machine_code(text, architecture, ["--ptxas-options=-v"])
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
