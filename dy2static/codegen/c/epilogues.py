"""What follows a convolution and is done with each image while it is in the cache: loop nests, maxima of windows.

A convolution calls the functions that follow it with the numbers of the images that it has made.  Where nobody else reads
what it makes, it writes to the memory of what is made of that, element by element.
"""
from __future__ import annotations

import math
from typing import Any, Callable, Collection, List, NamedTuple, Optional, Sequence, Set, Tuple

from ...ir.graph import Node, Value
from .extents import is_known
from .groups import Group, nodes_of
from .loops import LoopWriter
from .places import Place
from .shares import Share
from .windows import written_pool

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


def followers(writer: Any, order: Sequence[object], index: int, kept: Collection[Value]) -> List[Follower]:
    """Those of the parts behind a convolution that can follow it, one after the other.

    kept: values that others than these parts read.
    """
    node = order[index]
    if not isinstance(node, Node) or node.op.name not in BEFORE or not is_known(node.outputs[0].shape[0]):
        return []
    (value,) = node.outputs
    made, found = {value}, []
    late: Set[Value] = set()                            # sums over images, which are there when all images are
    for part in order[index + 1:]:
        if any(writer.place(v).base in late for inner in nodes_of(part) for v in inner.inputs):
            break
        lines = _written(writer, part, value.shape[0], made)
        if lines is None:
            break
        if not found and isinstance(part, Group) and value not in kept:
            _share_memory(writer, value, part, order[index + 2:])
        follower = lines()
        if follower is None:
            break
        found.append(follower)
        late |= part.totals if isinstance(part, Group) else set()
        made.update(v for inner in nodes_of(part) for v in inner.outputs)
    return found


def _written(writer: Any, part: object, images: int, made: Set[Value]) -> Optional[Callable[[], Optional[Follower]]]:
    """What writes a follower; None where the part is none."""
    read = [writer.place(v) for node in nodes_of(part) for v in node.inputs]
    if not all(_stays_in_image(place, images) for place in read if place.base in made):
        return None
    if isinstance(part, Group):
        if not part.nodes or part.shape[:1] != (images,):
            return None
        loops = LoopWriter(writer, part, images)
        unit = _unit(loops, images)
        return unit and (lambda: Follower(["    " + line for line in loops.write()], loops.share, unit, part, loops.before,
                                          loops.joined()))
    if isinstance(part, Node) and part.op.name == "max_pool" and writer.place(part.inputs[0]).whole:
        return lambda: _pool(writer, part, images)
    return None


def _pool(writer: Any, node: Node, images: int) -> Optional[Follower]:
    written = written_pool(writer, node, images)
    if written is None or written[1] is None:
        return None
    return Follower(*written, written[1].count // images, node)


def _unit(loops: LoopWriter, images: int) -> Optional[int]:
    """How many turns of the outermost loop are one image; None if it is not over images."""
    axes = (loops.outer or loops.inner or [[]])[0]
    return None if loops.share is None or axes[:1] != [0] else loops.share.count // images


def _stays_in_image(place: Place, images: int) -> bool:
    """Whether an element of each image is read for an element of the same image only."""
    size = math.prod(place.base.shape) // images
    reach = sum((n - 1) * stride for n, stride in zip(place.shape[1:], place.strides[1:]))
    return place.shape[:1] == (images,) == place.base.shape[:1] and not place.offset and not place.terms and (
        images == 1 or place.strides[0] == size) and all(s >= 0 for s in place.strides) and reach < size


def _share_memory(writer: Any, value: Value, group: Group, later: Sequence[object]) -> None:
    """Let a value that only this group reads be made where a value of the group goes, which is written when it has been read."""
    places = {v: writer.place(v) for node in group.nodes for v in node.inputs}
    if group.sweeps != 1 or value in writer.pointers or any(
            writer.place(v).base is value for part in later for node in nodes_of(part) for v in node.inputs) or not all(
            place.whole and v.shape == group.shape for v, place in places.items() if place.base is value):
        return
    last = max(k for k, node in enumerate(group.nodes) if any(places[v].base is value for v in node.inputs))
    for node in group.nodes[last:]:
        (result,) = node.outputs
        if result in group.elements and writer.stored(result) and result.type == value.type:
            writer.pointers[value] = writer.name(result)
            return


def finished(writer: Any, found: Sequence[Follower]) -> Tuple[str, str]:
    """A line that declares what follows, and the argument of the call."""
    if not found:
        return "", "0"
    texts = []
    for follower in found:
        body, given = writer.parts.body(follower.lines, writer.types, writer.given.taken)
        texts.append(f"{{{body}, {given}, {follower.unit}, {follower.share.count}, {follower.share.step}}}")
    return f"const dy_finish after[] = {{{', '.join(texts)}}};", f"&(dy_after){{after, {len(texts)}, 0}}"
