"""What follows a convolution and is done with each image while it is in the cache: loop nests, maxima of windows.

A convolution calls the functions that follow it with the numbers of the images that it has made.  Where nothing else reads
what it makes, it writes to the memory of what is made of that, element by element.
"""
from __future__ import annotations

import math
from typing import Callable, List, NamedTuple, Optional, Sequence, Set, Tuple

from ...ir.dims import is_known
from ...ir.graph import Node, Value
from ..loops.fuse import Run
from ..loops.groups import Group, nodes_of
from ..loops.ir import LoopNest
from ..loops.layout import Place
from ..loops.parallelize import Share
from ..loops.schedule import schedule
from .emitter import Emitter
from .kernels_pooling import written_pool
from .render_c import render

#: The op of the convolutions that functions may follow, whose result has an image for each turn.
BEFORE = ("conv", "conv_transpose")


class Follower(NamedTuple):
    """Lines of a function that may be called for each image, for ``unit`` turns of its share.

    before, joined: lines in front of all, and for when all are there.
    """

    lines: List[str]
    share: Share
    unit: int
    part: object
    before: Sequence[str] = ()
    joined: Sequence[str] = ()


def followers(emitter: Emitter, fused: Run, index: int) -> List[Follower]:
    """Those of the parts behind a convolution that can follow it, one after the other."""
    node = fused.parts[index]
    if not isinstance(node, Node) or node.op.name not in BEFORE or not all(map(is_known, node.outputs[0].shape)):
        return []
    (value,) = node.outputs
    made, found = {value}, []
    late: Set[Value] = set()                            # sums over images, which are there when all images are
    for part in fused.parts[index + 1:]:
        if any(emitter.place(v).base in late for inner in nodes_of(part) for v in inner.inputs):
            break
        lines = _written(emitter, part, value.shape[0], made)
        if lines is None:
            break
        if not found and isinstance(part, Group):
            share_memory(emitter, value, fused, index)
        follower = lines()
        if follower is None:
            break
        found.append(follower)
        late |= part.totals if isinstance(part, Group) else set()
        made.update(v for inner in nodes_of(part) for v in inner.outputs)
    return found


def _written(emitter: Emitter, part: object, images: int, made: Set[Value]) -> Optional[Callable[[], Optional[Follower]]]:
    """What writes a follower; None where the part is none."""
    read = [emitter.place(v) for node in nodes_of(part) for v in node.inputs]
    if not all(_stays_in_image(place, images) for place in read if place.base in made):
        return None
    if isinstance(part, Group):
        if not part.nodes or part.shape[:1] != (images,):
            return None
        nest = schedule(part, emitter.place, emitter.stored, images)
        unit = _unit(nest, images)
        return unit and (lambda: _nest(emitter, nest, unit, part))
    if isinstance(part, Node) and part.op.name == "max_pool" and emitter.place(part.inputs[0]).whole:
        return lambda: _pool(emitter, part, images)
    return None


def _pool(emitter: Emitter, node: Node, images: int) -> Optional[Follower]:
    written = written_pool(emitter, node, images)
    if written is None or written[1] is None:
        return None
    return Follower(*written, written[1].count // images, node)


def _nest(emitter: Emitter, nest: LoopNest, unit: int, part: Group) -> Follower:
    text = render(nest, emitter)
    return Follower(["    " + line for line in text.lines], nest.share, unit, part, text.before, text.joined)


def _unit(nest: LoopNest, images: int) -> Optional[int]:
    """How many turns of the outermost loop are one image; None if it is not over images."""
    axes = (*nest.outer, *nest.inner)
    return None if nest.share is None or not axes or axes[0].axes[0] != 0 else nest.share.count // images


def _stays_in_image(place: Place, images: int) -> bool:
    """Whether an element of each image is read for an element of the same image only."""
    size = math.prod(place.base.shape) // images
    reach = sum((n - 1) * stride for n, stride in zip(place.shape[1:], place.strides[1:]))
    return place.shape[:1] == (images,) == place.base.shape[:1] and not place.offset and not place.terms and (
        images == 1 or place.strides[0] == size) and all(s >= 0 for s in place.strides) and reach < size


def share_memory(emitter: Emitter, value: Value, fused: Run, index: int) -> None:
    """Let a value of this part that only the group behind it reads be made where a value of the group goes.

    That one is written when the value has been read.
    """
    group = fused.parts[index + 1]
    assert isinstance(group, Group), "the caller has looked"
    if value in fused.kept or group.sweeps != 1 or emitter.has_memory(value) or fused.is_read_behind(value, index + 1):
        return
    places = {v: emitter.place(v) for node in group.nodes for v in node.inputs}
    if not all(place.whole and v.shape == group.shape for v, place in places.items() if place.base is value):
        return
    last = max(k for k, node in enumerate(group.nodes) if any(places[v].base is value for v in node.inputs))
    for node in group.nodes[last:]:
        (result,) = node.outputs
        if result in group.elements and emitter.stored(result) and result.dtype == value.dtype:
            emitter.put_at(value, emitter.name(result))
            return


def finished(emitter: Emitter, found: Sequence[Follower]) -> Tuple[str, str]:
    """A line that declares what follows, and the argument of the call."""
    if not found:
        return "", "0"
    texts = []
    for follower in found:
        body, given = emitter.body(follower.lines)
        texts.append(f"{{{body}, {given}, {follower.unit}, {follower.share.count}, {follower.share.step}}}")
    return f"const dy_finish after[] = {{{', '.join(texts)}}};", f"&(dy_after){{after, {len(texts)}, 0}}"
