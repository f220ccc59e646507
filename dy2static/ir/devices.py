"""Devices of arrays.

A device is a text.  "" is the device of a program whose arrays are all on one device: the host, in most programs.  "cupy:0" is the
first GPU, whose arrays are CuPy's.  "cpu" is the host in a program that also has arrays on a GPU.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterable

HOST = "cpu"

#: For each class of arrays other than NumPy's: ``device(array)`` gives the device of one.
ARRAYS: Dict[type, Callable[[Any], str]] = {}


def is_device_array(value: Any) -> bool:
    """Whether a value is an array of a library other than NumPy that is known."""
    return type(value) in ARRAYS


def device_of(array: Any) -> str:
    """The device of an array; "" for NumPy's."""
    find = ARRAYS.get(type(array))
    return "" if find is None else find(array)


def is_gpu(device: str) -> bool:
    """Whether a device is another one than the host."""
    return device not in ("", HOST)


def kind_of(device: str) -> str:
    """The library of the arrays of a device: "cupy" of "cupy:0"."""
    return device.partition(":")[0]


def number_of(device: str) -> int:
    """The number of a GPU: 0 of "cupy:0"."""
    return int(device.partition(":")[2])


def common(devices: Iterable[str]) -> str:
    """The device of an operation on arrays of these devices; "" if none of them says where it is.

    Raises TypeError if they are on several.
    """
    found = {device for device in devices if device}
    if len(found) > 1:
        raise TypeError(f"its operands are on several devices: {', '.join(sorted(found))}")
    return found.pop() if found else ""
