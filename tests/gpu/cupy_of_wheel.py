"""Compare the lists of CuPy's names with the CuPy that is installed, and try what needs no device: `python tests/gpu/cupy_of_wheel.py`."""
import importlib
import inspect
import re
import sys

import numpy as np
from cupy_double_arrays import names_of

from dy2static.compat import cuda
from dy2static.native.device import CupyDevice


def find(name):
    """The object of a dotted name.  Raises ImportError where there is none."""
    if name == "cupy.cuda.Stream.ptr":
        name = "cupy.cuda.Stream.null.ptr"                              # only streams have it, their class does not
    parts = name.split(".")
    found = importlib.import_module(parts[0])
    for number, part in enumerate(parts[1:], start=2):
        found = getattr(found, part) if hasattr(found, part) else importlib.import_module(".".join(parts[:number]))
    return found


def parameters(function):
    """The names of the parameters; None where neither a signature nor the docstring tells them."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        head = re.match(r"[\w.]+\((.*?)\)(?:\n|$| ->)", function.__doc__ or "")
        return head and [words[-1] for words in (part.split("=")[0].split() for part in head.group(1).split(",")) if words]
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(parameter.kind, "") + parameter.name for parameter in found]


def differences(version):
    """A line for each name of the list of a version that the installed CuPy lacks, or has with other parameters."""
    for name, listed in names_of(version).items():
        try:
            found = find(name)
        except ImportError as reason:
            yield f"{name}: {reason}"
            continue
        actual = parameters(found) if listed is not None and callable(found) and type(found).__name__ != "ufunc" else None
        if actual is not None and "**kwargs" not in actual and _plain(actual) != _plain(listed):
            yield f"{name}: ({', '.join(actual)}), not ({', '.join(listed)})"


def _plain(names):
    return [name for name in names if name not in ("self", "*", "")]


def arrays_on_other_memory(cupy):
    """Whether arrays can be made on memory that CuPy did not allocate, as kernels' operands are."""
    device = CupyDevice.__new__(CupyDevice)                             # its constructor asks the driver
    device._cupy, device._device = cupy, cupy.cuda.Device(0)
    memory = np.zeros(24, np.float32)
    array = device.view(memory.ctypes.data + 4, (6, 3), (1, 6), memory.dtype)
    return (device.address(array), array.shape, array.strides, array.device.id) == (memory.ctypes.data + 4, (6, 3), (4, 24), 0)


def main():
    """Print what differs; the exit status says whether anything does."""
    import cupy
    cuda.preload(cupy.__version__)
    found = [*differences(int(cupy.__version__.partition(".")[0]))]
    found += [] if arrays_on_other_memory(cupy) else ["arrays on memory of others are not where they should be"]
    print("\n".join([*found, f"CuPy {cupy.__version__}: {len(found)} differences"]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
