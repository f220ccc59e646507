"""Whether a shared object is complete: the loader maps what its header says, and touching a missing part ends the process."""
from __future__ import annotations

import struct
from typing import Iterator, Tuple

_HEADER, _SEGMENT, _SECTION = "32xQQ6xHHHHH", "8xQ16xQ16x", "4xI16xQQ24x"
_NOTHING = 8                # the type of sections that have no bytes in the file (SHT_NOBITS)


def is_whole(data: bytes) -> bool:
    """Whether all segments and sections of a 64-bit ELF file are in it; True for files of other kinds."""
    if data[:5] != b"\x7fELF\x02":
        return True
    order = ">" if data[5:6] == b"\x02" else "<"
    try:
        segments, sections, segment_size, segment_count, section_size, section_count, _ = struct.unpack_from(order + _HEADER, data)
        ends = [offset + size for offset, size in _rows(order + _SEGMENT, data, segments, segment_size * segment_count)]
        ends += [offset + size for kind, offset, size in _rows(order + _SECTION, data, sections, section_size * section_count)
                 if kind != _NOTHING]
    except struct.error:        # the tables themselves are missing
        return False
    return max(ends, default=0) <= len(data)


def _rows(layout: str, data: bytes, start: int, size: int) -> Iterator[Tuple[int, ...]]:
    if start + size > len(data):
        raise struct.error("no table")
    return struct.iter_unpack(layout, data[start:start + size])
