"""Everything that a call can reach, at one moment: recorded, restored, compared."""
from __future__ import annotations

import collections
import io
import random
import types
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import chainer
import numpy as np
from chainer.variable import Variable, VariableNode

from ...heap.ownership import is_converted, is_library, is_library_class
from ...ir.devices import device_of, is_device_array
from ...library_facts.generators import GENERATORS
from ...runtime.devices import array_module, on_host
from ...runtime.random_states import random_states
from ...runtime.staticness import StaticCallable

ABSENT = object()

#: What cannot change, or is not looked into.
_LEAVES = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range, slice, np.dtype, np.generic,
           types.BuiltinFunctionType, types.CodeType, VariableNode, chainer.FunctionNode)


class Record(NamedTuple):
    """One object: its contents by kind, each kind as a tuple of (label, value)."""

    item: Any
    kind: str
    parts: Tuple[Tuple[str, Any], ...]
    saved: Any = None


class State:
    """The contents of all objects that can be reached from some roots, and of the random generators."""

    def __init__(self, roots: Sequence[Any]):
        self.records: Dict[int, Record] = {}
        self.globals: Dict[Tuple[int, str], Tuple[dict, str, Any]] = {}
        self.lasting: List[Any] = []            # what cannot be restored: streams, iterators of Python's own
        self.random = random_states()
        self.config = [(space, dict(space)) for space in (chainer.config._local.__dict__, chainer.global_config.__dict__)]
        waiting = list(roots)
        while waiting:
            item = waiting.pop()
            if id(item) not in self.records and not isinstance(item, _LEAVES):
                record = self._record(item)
                if record is not None:
                    self.records[id(item)] = record
                    waiting += [value for _, value in record.parts]

    def restore(self) -> None:
        """Restore everything in place."""
        for record in self.records.values():
            restore = _RESTORE.get(record.kind)
            if restore is not None:
                restore(record.item, record.saved)
        for space, name, value in self.globals.values():
            if value is ABSENT:
                space.pop(name, None)
            elif space.get(name, ABSENT) is not value:
                space[name] = value
        for space, kept in self.config:
            if space != kept:
                space.clear()
                space.update(kept)
        np.random.set_state(self.random[0])
        random.setstate(self.random[1])

    def _record(self, item: Any) -> Optional[Record]:
        for classes, record in _RECORDS:
            if isinstance(item, classes):
                return record(item)
        if isinstance(item, types.FunctionType):
            return self._function(item) if is_converted(item) else None
        if isinstance(item, io.IOBase) or hasattr(type(item), "__next__") and not hasattr(item, "__dict__"):
            self.lasting.append(item)
            return None
        return _object(item)

    def _function(self, function: types.FunctionType) -> Record:
        """A function of the user's with its cells, its defaults, and the globals its code names."""
        code = function.__code__
        parts: List[Tuple[str, Any]] = [(f" {name}", cell) for name, cell in zip(code.co_freevars, function.__closure__ or ())]
        parts += [("", function.__defaults__), ("", function.__kwdefaults__)]
        names = tuple(_names(code))
        parts += self._space(function.__globals__, names, " ")
        return Record(function, "constant", tuple(parts))

    def _space(self, space: dict, names: Tuple[str, ...], prefix: str) -> List[Tuple[str, Any]]:
        found: List[Tuple[str, Any]] = []
        for name in names:
            value = space.get(name, ABSENT)
            if (id(space), name) in self.globals or value is ABSENT and name in dir(__builtins__):
                continue
            self.globals[id(space), name] = space, name, value
            if isinstance(value, types.ModuleType):
                if not is_library(value.__name__):
                    found += self._space(value.__dict__, names, f"{prefix}{name}.")
            elif value is not ABSENT:
                found.append((f"{prefix}{name}", value))
        return found


# --- recording ------------------------------------------------------------------------------------------------------


def _indexed(items: Any) -> Tuple[Tuple[str, Any], ...]:
    return tuple((f"[{i}]", value) for i, value in enumerate(items))


def _array(item: np.ndarray) -> Record:
    return Record(item, "array", tuple(_indexed(item.flat)) if item.dtype.hasobject else (), item.copy())


def _sequence(item: Any) -> Record:
    return Record(item, "list", (*_indexed(item), *_attributes(item)), (tuple(item), _dict_of(item)))


def _dict(item: dict) -> Record:
    pairs = tuple(dict.items(item))
    parts = tuple((f"[{key!r}]", value) for key, value in pairs)
    return Record(item, "dict", (*parts, *_attributes(item)), (pairs, _dict_of(item)))


def _cell(cell: Any) -> Record:
    try:
        value = cell.cell_contents
    except ValueError:
        return Record(cell, "cell", (), ABSENT)
    return Record(cell, "cell", (("", value),), value)


def _module(item: types.ModuleType) -> Optional[Record]:
    return None if is_library(item.__name__) else Record(item, "object", _attributes(item), _fields(item))


def _object(item: Any) -> Optional[Record]:
    """An object of no kind in `_RECORDS`; None for those of libraries that hold nothing of the user's."""
    kind = type(item)
    if is_library_class(kind) and not kind.__module__.startswith(("chainer", "functools", "types", "collections")):
        return None
    parts = (*_attributes(item), *((f".{cls.__name__}", cls) for cls in kind.__mro__ if not is_library_class(cls)))
    if kind.__module__ == "functools":
        parts += tuple((f".{name}", getattr(item, name)) for name in ("func", "args", "keywords") if hasattr(item, name))
    return Record(item, "object", parts, _fields(item))


def _variable(item: Variable) -> Record:
    """A Variable: its array, its gradient and what the user hung on it; of its node, who made it."""
    fields = dict(item.__dict__)
    parts = [(".array", item.array), (".requires_grad", item.requires_grad), (".grad_var", fields.get("_grad_var"))]
    if fields.get("_grad_var") is None:
        parts.append((".grad", fields.get("_grad")))
    parts += [(f".{name}", value) for name, value in fields.items() if not name.startswith("_") and name != "initializer"]
    node = fields["_node"]
    data = fields.get("_data")
    return Record(item, "variable", tuple(parts),
                  (fields, data, None if data is None else list(data), node, node._creator_node, node._rank))


def _class(cls: type) -> Record:
    own = {name: value for name, value in vars(cls).items()
           if not (name.startswith("__") and name.endswith("__")) and not isinstance(value, types.MemberDescriptorType)}
    special = tuple((f".{name}", value) for name, value in vars(cls).items()
                    if name not in own and isinstance(value, types.FunctionType))
    return Record(cls, "class", tuple((f".{name}", value) for name, value in own.items()) + special, own)


def _dict_of(item: Any) -> Any:
    found = getattr(item, "__dict__", None)
    return dict(found) if type(found) is dict else None


def _slots(item: Any) -> Dict[str, Any]:
    names = [name for cls in type(item).__mro__ for name, value in vars(cls).items()
             if isinstance(value, types.MemberDescriptorType)]
    return {name: getattr(item, name, ABSENT) for name in names} if not is_library_class(type(item)) else {}


def _fields(item: Any) -> Tuple[Any, Dict[str, Any]]:
    return _dict_of(item), _slots(item)


def _attributes(item: Any) -> Tuple[Tuple[str, Any], ...]:
    own = {**(_dict_of(item) or {}), **_slots(item)}
    if isinstance(item, chainer.Link):
        own.pop("_device", None)
    return tuple((f".{name}", value) for name, value in own.items() if value is not ABSENT)


def _generator_state(item: Any) -> Any:
    if isinstance(item, random.Random):
        return item.getstate()
    return item.get_state() if isinstance(item, np.random.RandomState) else item.bit_generator.state


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _names(const)


#: By classes of objects, in the order in which they are tried: what makes their record, or None for what is left out.
_RECORDS: Tuple[Tuple[Any, Callable[[Any], Optional[Record]]], ...] = (
    (np.ndarray, _array),
    (chainer.backends.cuda.ndarray, lambda item: Record(item, "array", (), on_host(item))),
    (Variable, _variable),
    ((list, collections.deque), _sequence),
    ((tuple, frozenset), lambda item: Record(item, "constant", (*_indexed(item), *_attributes(item)))),
    (dict, _dict),
    (set, lambda item: Record(item, "set", _indexed(item), frozenset(item))),
    (bytearray, lambda item: Record(item, "list", (), (tuple(item), None))),
    (tuple(GENERATORS), lambda item: Record(item, "generator", (), _generator_state(item))),
    (StaticCallable, lambda item: Record(item, "constant", (("", item.python_function),))),
    (types.MethodType,
     lambda item: Record(item, "constant", ((".__self__", item.__self__), (".__func__", item.__func__)))),
    (types.CellType, _cell),
    ((staticmethod, classmethod), lambda item: Record(item, "constant", (("", item.__func__),))),
    (property, lambda item: Record(item, "constant", tuple(("", f) for f in (item.fget, item.fset, item.fdel)))),
    (type, lambda item: None if is_library_class(item) else _class(item)),
    (types.ModuleType, _module),
)


# --- restoring ------------------------------------------------------------------------------------------------------


def _restore_array(array: Any, saved: np.ndarray) -> None:
    if is_device_array(array):
        if array.shape == saved.shape and on_host(array).tobytes() != saved.tobytes():
            with array.device:
                array[...] = array_module(device_of(array)).asarray(saved)
    elif array.flags.writeable and array.shape == saved.shape and array.tobytes() != saved.tobytes():
        array[...] = saved


def _restore_dict(item: Any, saved: Any) -> None:
    pairs, fields = saved
    if not _same(tuple(dict.items(item)), pairs):
        base = collections.OrderedDict if isinstance(item, collections.OrderedDict) else dict
        base.clear(item)
        for key, value in pairs:
            base.__setitem__(item, key, value)
    _restore_fields(item, (fields, {}))


def _same(now: Tuple, before: Tuple) -> bool:
    return len(now) == len(before) and all(a[0] is b[0] and a[1] is b[1] for a, b in zip(now, before))


def _restore_list(item: Any, saved: Any) -> None:
    items, fields = saved
    if len(item) != len(items) or any(a is not b for a, b in zip(item, items)):
        item.clear()
        item.extend(items)
    _restore_fields(item, (fields, {}))


def _restore_set(item: set, saved: frozenset) -> None:
    if item != saved:
        item.clear()
        item.update(saved)


def _restore_fields(item: Any, saved: Any) -> None:
    fields, slots = saved
    if fields is not None and not _same(tuple(item.__dict__.items()), tuple(fields.items())):
        item.__dict__.clear()
        item.__dict__.update(fields)
    for name, value in slots.items():
        if getattr(item, name, ABSENT) is not value:
            if value is ABSENT:
                object.__delattr__(item, name)
            else:
                object.__setattr__(item, name, value)


def _restore_variable(item: Variable, saved: Any) -> None:
    fields, data, kept, node, creator, rank = saved
    _restore_fields(item, (fields, {}))
    if data is not None and (len(data) != len(kept) or any(a is not b for a, b in zip(data, kept))):
        data[:] = kept
    node._creator_node, node._rank = creator, rank


def _restore_class(cls: type, saved: Dict[str, Any]) -> None:
    now = _class(cls).saved
    for name in now.keys() - saved.keys():
        delattr(cls, name)
    for name, value in saved.items():
        if now.get(name, ABSENT) is not value:
            setattr(cls, name, value)


def _restore_cell(cell: Any, saved: Any) -> None:
    if saved is not ABSENT:
        cell.cell_contents = saved
    else:
        try:
            del cell.cell_contents
        except ValueError:
            return                      # it is empty still


def _restore_generator(item: Any, saved: Any) -> None:
    if isinstance(item, random.Random):
        item.setstate(saved)
    elif isinstance(item, np.random.RandomState):
        item.set_state(saved)
    else:
        item.bit_generator.state = saved


_RESTORE: Dict[str, Callable[[Any, Any], None]] = {
    "array": _restore_array, "dict": _restore_dict, "list": _restore_list, "set": _restore_set,
    "object": _restore_fields, "variable": _restore_variable, "class": _restore_class, "cell": _restore_cell,
    "generator": _restore_generator}
