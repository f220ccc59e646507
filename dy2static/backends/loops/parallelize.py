"""How the work of a loop nest is shared by threads: which loop is cut into pieces, and how many.

What is cut does not depend on the number of threads, and each share is one call of a function.  So sums that are made by
shares, and added up in their order, are the same for any number of threads.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Optional, Sequence, Union

from ...ir.dims import Dim

#: Nanoseconds of work below which one thread does it: waking another thread takes about five thousand.
LEAST = 20_000

#: Nanoseconds of one share, where there are not too many then.
EACH = 10_000
MOST = 32

#: Fewer turns than this, and another loop may be the better one to cut.
_ENOUGH = 8

#: Elements for each one of a sum of its own, so that to add these up is little work.
_SUMMED = 16

#: Pieces of the innermost loop are multiples of this: whole vectors, whole lines of the cache.
_GRAIN = 64


class Level(NamedTuple):
    """A loop that may be cut.

    innermost: whether it runs over neighbouring elements.  summed: elements of the sums that each share needs for its own.
    """

    name: str
    size: int
    innermost: bool = False
    summed: int = 0


@dataclass(frozen=True)
class Share:
    """The loop ``name`` of ``count`` turns is cut into pieces of ``step``.

    private: whether each has sums of its own.  evenly: there is one piece for each thread, a multiple of ``step``; for work without
    sums over the loop.
    """

    name: str
    count: int
    step: int
    private: bool = False
    evenly: bool = False

    @property
    def shares(self) -> int:
        """The number of pieces."""
        return -(-self.count // self.step)


def cut(levels: Sequence[Level], elements: int, nanoseconds: Union[float, Dim]) -> Optional[Share]:
    """What to cut, the outermost loop that is long enough; None where the work is too little, or nothing may be cut.

    Work of which only the run knows how much it is is not shared.
    """
    if isinstance(nanoseconds, Dim) or nanoseconds < LEAST:
        return None
    pieces = int(max(2, min(MOST, nanoseconds / EACH)))
    found = [share for share in (_pieces(level, pieces, elements) for level in levels) if share is not None]
    enough = [share for share in found if share.shares >= min(pieces, _ENOUGH)]
    return (enough or sorted(found, key=lambda share: -share.shares) or [None])[0]


def image_by_image(level: Level, images: int, elements: int) -> Optional[Share]:
    """A loop over all images, one after the other, with sums for each; None if there are too few elements for these."""
    if level.size % images or level.summed and images * level.summed * _SUMMED > elements:
        return None
    each = level.size // images
    return Share(level.name, level.size, each if level.summed else each * -(-images // MOST), bool(level.summed))


def _pieces(level: Level, pieces: int, elements: int) -> Optional[Share]:
    if level.summed:
        pieces = min(pieces, elements // (_SUMMED * level.summed))
    if level.size < 2 or pieces < 2:
        return None
    step = -(-level.size // pieces)
    if level.innermost:
        step = -(-step // _GRAIN) * _GRAIN
    return Share(level.name, level.size, step, bool(level.summed)) if step < level.size else None
