"""CuPy as Chainer finds it: libraries that have to be loaded before it, and how many devices it can use.

Only the standard library is imported here: the start-up hook has Chainer call `preload`.
"""
from __future__ import annotations

import ctypes
import ctypes.util
import glob
import importlib.metadata
import importlib.util
import os
import sys
from typing import Iterator, List

#: Wheels that hold the package ``cupy``.
WHEELS = ("cupy-cuda12x", "cupy-cuda13x", "cupy")

#: The first CuPy that finds the libraries in NVIDIA's wheels by itself, and that has no functions of cuDNN.
FINDS_WHEELS = 14

#: The libraries that CuPy loads, each behind those that it needs itself.  cuDNN 9 has not the functions that CuPy 13 wants.
_LIBRARIES = ("cudart.so.*", "nvJitLink.so.*", "nvrtc-builtins.so.*", "nvrtc.so.*", "cublasLt.so.*", "cublas.so.*", "cusparse.so.*",
              "cusolver.so.*", "cufft.so.*", "curand.so.*", "cudnn.so.8")


def preload(version: str) -> None:
    """Load the libraries of NVIDIA's wheels, so that a CuPy of this version finds them that does not look there.

    Does nothing for CuPy 14 and later.  A library that cannot be loaded is left to CuPy, which says so.
    """
    if int(version.partition(".")[0]) >= FINDS_WHEELS:
        return
    for path in wheel_libraries(*_LIBRARIES):
        try:
            ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
        except OSError:
            continue


def wheel_libraries(*patterns: str) -> Iterator[str]:
    """The paths of libraries in NVIDIA's wheels, in the order of their patterns (``"nvrtc.so.*"``); no second builds (``.alt``)."""
    folders = [folder for site in sys.path for folder in sorted(glob.glob(os.path.join(site, "nvidia", "*", "lib")))]
    for pattern in patterns:
        for folder in folders:
            yield from sorted(path for path in glob.glob(os.path.join(folder, f"lib{pattern}")) if ".alt." not in path)


def devices() -> int:
    """The number of devices that CuPy can use; 0 without CuPy, a driver or a device.

    ``chainer.backends.cuda.available`` may be True without a device, and CuPy 13 raises an error when it is asked.
    """
    try:
        import cupy
    except ImportError:
        return 0
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


def report() -> List[str]:
    """The lines of ``python -m dy2static doctor`` about GPUs."""
    if importlib.util.find_spec("cupy") is None:
        return ['no CuPy: arrays are on the processor (`python -m pip install ".[cuda13]"` for GPUs)']
    names = [name for name in WHEELS if _is_installed(name)]
    count = devices()
    has_cudnn = any(wheel_libraries("cudnn.so.9")) or ctypes.util.find_library("cudnn") is not None
    lines = [f"devices that CuPy ({', '.join(names) or 'not from a wheel'}) can use: {count}",
             "cuDNN, for convolutions of compiled functions: "
             + ("found" if has_cudnn else "none (`python -m pip install nvidia-cudnn-cu13`, or -cu12, makes them faster)")]
    if len(names) > 1:
        lines.append("  more than one wheel of CuPy is installed, and they overwrite each other: uninstall all, then install one")
    return lines


def _is_installed(name: str) -> bool:
    try:
        return bool(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return False
