"""The first difference between two runs of one call."""
from __future__ import annotations

import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np
from chainer.variable import Variable

from ...ir.devices import device_of, is_device_array
from ...runtime.devices import on_host
from ...runtime.random_states import same_random_states
from .state import Record, State

#: Per dtype character: relative and absolute tolerance.  The absolute one is of the largest element, but at least of 1.
TOLERANCE = {"e": (2e-2, 2e-3), "f": (1e-4, 1e-5), "d": (1e-8, 1e-10), "F": (1e-4, 1e-5), "D": (1e-8, 1e-10)}

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|inf|nan)")


class Difference(NamedTuple):
    """One difference between the eager run and the compiled one.

    path: what differs, as the user would write it.  what: how.  item: the object that holds it, eagerly.
    """

    path: str
    what: str
    item: Any = None

    def __str__(self) -> str:
        return f"{self.path} {self.what}"


class Comparison:
    """Two runs of a call from the same state: what they left behind, walked side by side.

    variables: the pairs (eager, compiled) of Variables that the call made.
    """

    def __init__(self, before: State, eager: State, compiled: State):
        self.before, self.eager, self.compiled = before, eager, compiled
        self.pairs: Dict[int, int] = {}
        self.back: Dict[int, int] = {}
        self.seen: Set[Tuple[int, int]] = set()
        self.variables: List[Tuple[Variable, Variable]] = []

    def first(self, roots: Sequence[Tuple[str, Any, Any]]) -> Optional[Difference]:
        """The first difference that is found from pairs of objects; None if there is none."""
        waiting: List[Tuple[str, Any, Any, Any]] = [(*root, None) for root in roots]
        while waiting:
            path, a, b, holder = waiting.pop(0)
            found = self._one(path, a, b, holder, waiting)
            if found is not None:
                return found
        return self._surroundings()

    def _one(self, path: str, a: Any, b: Any, holder: Any, waiting: List) -> Optional[Difference]:
        left, right = self.eager.records.get(id(a)), self.compiled.records.get(id(b))
        if left is None or right is None:
            what = None if a is b else different(a, b)
            return Difference(path, what, holder) if what else None
        if left.kind != right.kind or type(a) is not type(b):
            return Difference(path, f"is {described(a)} eagerly, and {described(b)} compiled", holder)
        if left.kind != "constant":
            known = self.pairs.get(id(a))
            if known is not None or id(b) in self.back:
                same = known == id(b) and self.back.get(id(b)) == id(a)
                return None if same else Difference(path, "is another object than eagerly", holder)
            if (id(a) in self.before.records or id(b) in self.before.records) and a is not b:
                return Difference(path, "is the object that was there in one run, and a new one in the other", holder)
            self.pairs[id(a)], self.back[id(b)] = id(b), id(a)
            if isinstance(a, Variable) and a is not b:
                self.variables.append((a, b))
        elif (id(a), id(b)) in self.seen:
            return None
        self.seen.add((id(a), id(b)))
        return self._contents(path, left, right, waiting)

    def _contents(self, path: str, left: Record, right: Record, waiting: List) -> Optional[Difference]:
        if left.kind == "array":
            what = different(left.saved, right.saved)
            return Difference(path, what, left.item) if what else None
        if left.kind == "set":
            if left.saved != right.saved:
                return Difference(path, f"is {short(set(left.saved))} eagerly, and {short(set(right.saved))} compiled", left.item)
            return None
        if left.kind == "generator":
            same = repr(left.saved) == repr(right.saved)
            return None if same else Difference(path, "has drawn other random numbers", left.item)
        names, others = [n for n, _ in left.parts], [n for n, _ in right.parts]
        if names != others:
            missing, more = [n for n in names if n not in others], [n for n in others if n not in names]
            what = f"has {_commas(missing)} only eagerly" if missing else \
                f"has {_commas(more)} only compiled" if more else "has another order"
            return Difference(path, what, left.item)
        waiting += [(path + name, a, b, left.item) for (name, a), (_, b) in zip(left.parts, right.parts)]
        return None

    def _surroundings(self) -> Optional[Difference]:
        for key, (_, name, a) in self.eager.globals.items():
            b = self.compiled.globals.get(key, (None, name, a))[2]
            if a is not b and id(a) not in self.pairs:
                what = different(a, b)
                if what:
                    return Difference(f"the global {name}", what)
        if not same_random_states(self.eager.random, self.compiled.random):
            return Difference("the state of the random generators", "differs")
        if [kept for _, kept in self.eager.config] != [kept for _, kept in self.compiled.config]:
            return Difference("chainer.config", "differs")
        return None


def different(a: Any, b: Any) -> Optional[str]:
    """How two plain values or arrays differ; None if they do not, up to rounding."""
    if is_device_array(a) and type(a) is type(b):
        if device_of(a) != device_of(b):
            return f"is on {device_of(a)} eagerly, and on {device_of(b)} compiled"
        a, b = on_host(a), on_host(b)
    if isinstance(a, (np.ndarray, np.generic)) and type(a) is type(b):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"is {described(a)} eagerly, and {described(b)} compiled"
        return None if a.dtype.hasobject or close(a, b) else _largest(np.asarray(a), np.asarray(b))
    if type(a) is not type(b):
        return f"is {described(a)} eagerly, and {described(b)} compiled"
    if isinstance(a, (float, complex)):
        same = close(np.asarray(a), np.asarray(b), (1e-4, 1e-5))
    elif isinstance(a, (bool, int, str, bytes, range, slice, type(None), np.dtype)):
        same = a == b
    else:
        same = True                     # of a kind that cannot be looked into
    return None if same else f"is {short(a)} eagerly, and {short(b)} compiled"


def close(a: Any, b: Any, tolerance: Optional[Tuple[float, float]] = None) -> bool:
    """Whether two arrays of one shape and dtype are the same up to rounding."""
    if a.dtype.char not in TOLERANCE:
        return bool(np.array_equal(a, b))
    rtol, atol = tolerance or TOLERANCE[a.dtype.char]
    finite = np.abs(a[np.isfinite(a)]) if a.size else a
    scale = max(1.0, float(finite.max())) if finite.size else 1.0
    return bool(np.allclose(b, a, rtol=rtol, atol=atol * scale, equal_nan=True))


def same_text(a: str, b: str) -> bool:
    """Whether two texts are equal, but for the rounding of the numbers in them."""
    if a == b:
        return True
    numbers, others = _NUMBER.findall(a), _NUMBER.findall(b)
    return _NUMBER.split(a) == _NUMBER.split(b) and len(numbers) == len(others) and all(
        close(np.asarray(float(x)), np.asarray(float(y)), (1e-4, 1e-5)) for x, y in zip(numbers, others))


def described(item: Any) -> str:
    """A short description of an object."""
    if isinstance(item, Variable):
        return f"a Variable of shape {item.shape} and dtype {item.dtype}"
    if isinstance(item, (np.ndarray, np.generic)) or is_device_array(item):
        return f"{type(item).__name__} of shape {item.shape} and dtype {item.dtype}"
    return short(item)


def short(item: Any) -> str:
    """The text of an object, cut."""
    if not isinstance(item, (type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, np.generic, range)):
        return f"a {type(item).__name__}"
    text = repr(item)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _largest(a: np.ndarray, b: np.ndarray) -> str:
    if a.shape == ():
        return f"is {a[()]!s} eagerly, and {b[()]!s} compiled"
    with np.errstate(all="ignore"):
        away = np.abs(np.subtract(a, b, dtype=None if a.dtype.kind != "b" else "i4"))
    away = np.where(np.isnan(away), np.where(np.isnan(a) & np.isnan(b), 0, np.inf), away)
    place = np.unravel_index(int(np.argmax(away)), a.shape)
    index = ", ".join(str(int(i)) for i in place)
    return f"of shape {a.shape} differs most at [{index}]: {a[place]!s} eagerly, {b[place]!s} compiled"


def _commas(names: Sequence[str]) -> str:
    return ", ".join(name.lstrip(".") for name in names[:4]) + (", ..." if len(names) > 4 else "")
