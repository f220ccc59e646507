"""Keys under which calls that cannot be captured are remembered."""
from __future__ import annotations

from typing import Any, Mapping, Tuple

import chainer
import numpy as np

from ..ir.devices import device_of, is_device_array
from .devices import current_device

#: Entries of ``chainer.config`` that may decide whether a call can be captured.
_MODES = ("train", "enable_backprop", "debug", "type_check", "in_recomputing", "use_ideep")

#: How deep arguments lie in what `signature_of` looks at: of these truth values and texts count, not of items in them.
_OF_ARGUMENTS = 2

#: Of more tuples, lists or dicts than these only the different ones count: a batch is a list of transitions.
_MANY = 4


def signature_of(args: Tuple, kwargs: Mapping[str, Any]) -> Tuple:
    """Under which a call that cannot be captured is remembered."""
    local = chainer.config._local.__dict__              # `getattr` of the configuration takes 4 µs for each
    modes = [local[name] if name in local else getattr(chainer.global_config, name) for name in _MODES]
    return coarse_signature((args, kwargs)), *modes


def coarse_signature(item: Any, depth: int = 0) -> Any:
    """Structure, types, shapes and dtypes of arguments: under which a call that cannot be captured is remembered."""
    if isinstance(item, chainer.Variable):
        array = item._data[0]                           # `.array` is an error with a layout of its own
        return "V", item.requires_grad, None if array is None else (array.shape, array.dtype.char, _place(array))
    if isinstance(item, np.ndarray) or is_device_array(item):
        return "A", item.shape, item.dtype.char, _place(item)
    if depth < 4 and type(item) in (tuple, list):
        parts = [coarse_signature(part, depth + 1) for part in item]
        alike = depth >= _OF_ARGUMENTS and len(parts) > _MANY and all([isinstance(part, (tuple, list, dict)) for part in item])
        return type(item), len(parts), frozenset(parts) if alike else tuple(parts)
    if depth < 4 and type(item) is dict:
        return dict, tuple([(str(key), coarse_signature(part, depth + 1)) for key, part in item.items()])
    if item is None or type(item) in (str, bool) and depth <= _OF_ARGUMENTS:
        return item
    return type(item)


def _place(array: Any) -> Any:
    """The device of a GPU array and the current device, which must be equal for a capture; None for other values."""
    return (device_of(array), current_device()) if is_device_array(array) else None
