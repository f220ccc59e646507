"""What several paths may lead to: the dicts that hold attributes of objects and names of modules have one shadow each."""
from __future__ import annotations

from typing import Any, Iterable, Tuple

import chainer

from ..capture_context import Heap
from ..record.guards import SameObject
from ..record.paths import Constant, InstanceDict, Namespace, Source
from ..runtime.guard_tests import has_plain_dict
from .dict_shadows import ShadowDict
from .list_shadows import ShadowList
from .object_shadows import ShadowBase, attributes_of, class_of
from .set_shadows import ShadowSet


def of_object(heap: Heap, real: dict, source: Source) -> ShadowDict:
    """The shadow of the ``__dict__`` of an object.  The user may hold that dict, too, as ``vars(x)``."""
    known = heap.known(real)
    if known is None:
        return _new(heap, real, source)
    shadow, other = known
    if isinstance(other, Namespace):
        heap.capture.abort("two objects share one __dict__", hint="keep what they share in an object of its own")
    heap.guard(SameObject(source, other))
    shadow.source = source
    heap.remember(real, shadow, source)
    return shadow


def of_module(heap: Heap, real: dict, source: Source) -> ShadowDict:
    """The shadow of the names of a module, which are also the globals of its functions.  source: a path to them."""
    known = heap.known(real)
    return _new(heap, real, source) if known is None else known[0]


def _new(heap: Heap, real: dict, source: Source) -> ShadowDict:
    shadow = heap.track(ShadowDict(heap, real, source))
    heap.remember(real, shadow, source)
    return shadow


def sources_of_objects(known: Iterable[Tuple[Any, Any, Source]]) -> Tuple[Source, ...]:
    """The paths by which objects that may change are told from each other.  known: each with what stands for it, and its path.

    Where that is the path to its ``__dict__``, this is told from the others, too, and so is the object.
    """
    return tuple([_told_by(made, source) for _, made, source in known
                  if isinstance(made, (ShadowBase, ShadowList, ShadowSet, chainer.Variable))
                  or isinstance(made, ShadowDict) and not isinstance(source, (Namespace, Constant))])


def _told_by(made: Any, source: Source) -> Source:
    own = attributes_of(made).source if isinstance(made, ShadowBase) else None
    return own if isinstance(own, InstanceDict) and has_plain_dict(class_of(made)) else source
