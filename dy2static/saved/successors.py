"""Models as they are after a call that was only captured: so that the calls that follow can be captured, too."""
from __future__ import annotations

import copy
from typing import Any, Dict, Mapping, NamedTuple, Optional, Set, Tuple

import chainer
import numpy as np

from ..input_spec import Axis
from ..ir.dims import Dim, evaluate_shape
from ..ir.graph import Value
from ..ir.types import Scalar, Tensor
from ..world.outcome import Build, Outcome, Write
from ..world.sources import Source


class Successor(NamedTuple):
    """A model after a call: a copy, whose arrays have the right shapes and no contents.  free: axes of them that are free."""

    instance: Any
    free: Set[Axis]


def successor_of(outcome: Outcome, instance: Any, sizes: Mapping[str, int]) -> Optional[Successor]:
    """The model after a call, where that leaves something of another kind behind; None where it does not, or nobody can tell.

    sizes: numbers for the symbols of the capture.
    """
    if len(outcome.ends) != 1 or not _changes_kind(outcome):
        return None
    made = _Successor(instance, sizes)
    try:
        for write in outcome.ends[0].writes:
            if write.kind in ("set", "delete"):
                made.write(write)
    except (LookupError, AttributeError, TypeError):
        return None
    return Successor(made.instance, made.free)


def _changes_kind(outcome: Outcome) -> bool:
    """Whether a call writes where it has found None, or nothing, or an array of another shape."""
    written = {(write.container, write.key): write.built for write in outcome.ends[0].writes if write.kind == "set"}
    for guard in outcome.guards:
        if guard.test == "absent" and (guard.source, guard.expected) in written:
            return True
        if guard.test == "is" and guard.expected is None and guard.source.kind == "item":
            built = written.get((guard.source.parent, guard.source.key))
            if built is not None and built.kind in ("variable", "value"):
                return True
    return False


class _Successor:
    """A copy of a model, on which writes are done."""

    def __init__(self, instance: Any, sizes: Mapping[str, int]):
        self.instance, self.sizes = copy.deepcopy(instance), sizes
        self.free: Set[Axis] = set()
        self._made: Dict[int, Any] = {}

    def write(self, write: Write) -> None:
        """Do one write.  Raises LookupError, AttributeError or TypeError where that cannot be."""
        container = self._at(write.container)
        if write.built is not None and write.built.kind == "number":
            return                                      # any number will do: it is an input
        if write.kind == "delete":
            del container[write.key]
        else:
            path = ("item", write.key) + write.container.path()
            container[write.key] = self._built(write.built, path)       # type: ignore[arg-type]

    def _at(self, source: Source) -> Any:
        if source.parent is None:
            if (source.kind, source.key) != ("arg", 0):
                raise LookupError(source.describe())    # closures and globals are not copied
            return self.instance
        parent = self._at(source.parent)
        if source.kind == "dict":
            return parent.__dict__
        if source.kind == "item":
            return parent[source.key]
        if source.kind == "attr":
            return getattr(parent, source.key)
        raise LookupError(source.describe())

    def _built(self, build: Build, path: Tuple) -> Any:
        if id(build) not in self._made:
            self._made[id(build)] = self._new(build, path)
        return self._made[id(build)]

    def _new(self, build: Build, path: Tuple) -> Any:
        parts = build.parts
        if build.kind == "const":
            return parts[0]
        if build.kind == "source":
            return self._at(parts[0])
        if build.kind == "value":
            return self._array(parts[0], path)
        if build.kind == "variable":
            return chainer.Variable(self._array(parts[0].value, path), requires_grad=parts[0].requires_grad)
        if build.kind in ("tuple", "list"):
            items = [self._built(part, ("item", k) + path) for k, part in enumerate(parts[1] if build.kind == "tuple" else parts)]
            return items if build.kind == "list" else tuple(items) if parts[0] is tuple else parts[0]._make(items)
        if build.kind == "dict" and all(key.kind == "const" for key, _ in parts):
            return {key.parts[0]: self._built(part, ("item", key.parts[0]) + path) for key, part in parts}
        raise LookupError(build.kind)

    def _array(self, value: Value, path: Tuple) -> Any:
        if isinstance(value.type, Scalar):
            return value.dtype.type(0) if value.type.kind == "numpy" else value.dtype.type(0).item()
        if not isinstance(value.type, Tensor):
            raise LookupError(str(value.type))
        self.free |= {(path, axis) for axis, n in enumerate(value.shape) if isinstance(n, Dim)}
        return np.zeros(evaluate_shape(value.shape, self.sizes), value.dtype)
