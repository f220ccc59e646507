"""Records as bytes and back, for a store that only this version of dy2static reads.  Functions and ops are names there."""
from __future__ import annotations

import io
import pickle
import sys
import types
from typing import Any

import numpy as np

from .digest import LIBRARIES, NoForm, named
from .dims import Dim
from .op import OPS, OpDef


class NotPacked(Exception):
    """A record holds something that cannot be written, or bytes are not a record."""


def pack(record: Any) -> bytes:
    """A record as bytes.  Raises `NotPacked` if it holds functions or objects of others than `LIBRARIES`."""
    out = io.BytesIO()
    try:
        _Packer(out, protocol=4).dump(record)
    except (pickle.PicklingError, NoForm, TypeError, AttributeError, RecursionError) as error:
        raise NotPacked(str(error)) from None
    return out.getvalue()


def unpack(data: bytes) -> Any:
    """The record that `pack` wrote.  Raises `NotPacked`."""
    try:
        return _Unpacker(io.BytesIO(data)).load()
    except Exception as error:                      # bytes of another origin may fail in any way
        raise NotPacked(f"{type(error).__name__}: {error}") from None


class _Packer(pickle.Pickler):

    def reducer_override(self, item: Any) -> Any:
        """How an object is written that is not of a builtin type."""
        kind = type(item)
        if kind is OpDef:
            if OPS.get(item.name) is not item:
                raise pickle.PicklingError(f"{item!r} is declared elsewhere")
            return _op, (item.name,)
        if isinstance(item, Dim) and not kind.__slots__ or kind is Dim:
            return _size, (kind, item._terms)      # its hash is another one in another process
        if kind is np.ndarray:
            read_only = item.__array_interface__["data"][1]         # `flags.writeable` warns for what `broadcast_arrays` gave
            return (_read_only, (item.copy(order="K"),)) if read_only else NotImplemented
        if isinstance(item, np.ufunc):
            return _found, named(item)
        if kind is types.ModuleType and sys.modules.get(item.__name__) is item and item.__name__.partition(".")[0] in LIBRARIES:
            return _module, (item.__name__,)
        if isinstance(item, (type, types.FunctionType)):
            named(item)                             # pickle looks for it, too, but in all modules
            return NotImplemented
        if kind.__module__.partition(".")[0] not in LIBRARIES:
            raise pickle.PicklingError(f"{kind.__name__} is not of a library")
        return NotImplemented


class _Unpacker(pickle.Unpickler):

    def find_class(self, module: str, name: str) -> Any:
        """The function or class of this name."""
        if module.partition(".")[0] not in LIBRARIES:
            raise pickle.UnpicklingError(f"{module}.{name} is not of a library")
        return super().find_class(module, name)


def _op(name: str) -> OpDef:
    return OPS[name]


def _size(kind: type, terms: Any) -> Dim:
    size: Dim = kind.__new__(kind)
    size._set(terms)
    return size


def _module(name: str) -> types.ModuleType:
    return sys.modules[name]


def _found(module: str, name: str) -> Any:
    return getattr(sys.modules[module], name)


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
