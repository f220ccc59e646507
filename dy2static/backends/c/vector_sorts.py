"""Sorts that NumPy computes by vectors of the processor: it needs down to a tenth of the time of ours, which goes item by item."""
from __future__ import annotations

import functools

import numpy as np

from ...ir.dims import is_known
from ...ir.graph import Node
from ...lowering.numpy.legalize import CALLS, call_as_ops

#: Fewer elements are sorted faster than native code is left and entered again.
_FEW = 256


def is_left_to_numpy(node: Node) -> bool:
    """Whether NumPy sorts what a node sorts, and native code does not."""
    return any(map(_is_long_sort, (call_as_ops(node) or ()) if node.op.name in CALLS else (node,)))


def _is_long_sort(node: Node) -> bool:
    if node.op.name not in ("sort", "argsort") or node.attrs.get("stable") or node.inputs[0].dtype.itemsize < 4:
        return False
    size = node.inputs[0].type.size
    return has_vectors() and not (is_known(size) and size <= _FEW)


@functools.lru_cache(None)
def has_vectors() -> bool:
    """Whether this NumPy sorts numbers of four and eight bytes by vectors on this CPU."""
    version = tuple(map(int, np.__version__.split(".")[:2]))
    if version < (1, 25):
        return False
    core = np.core if version < (2, 0) else np._core
    features = getattr(core._multiarray_umath, "__cpu_features__", {})
    return bool(features.get("AVX512_SKX") or version >= (2, 0) and features.get("AVX2"))
