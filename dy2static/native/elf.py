"""Whether a shared object is all there: the loader maps what its header says, and touching what lacks ends the process."""
from __future__ import annotations

import struct

_HEADER, _SEGMENT, _SECTION = "16xHHIQQQIHHHHHH", "IIQQQQQQ", "IIQQQQIIQQ"
_NOTHING = 8                # the type of sections that have no bytes in the file (SHT_NOBITS)


def is_whole(data: bytes) -> bool:
    """Whether all segments and sections of a 64-bit ELF file are in it; True for files of other kinds."""
    if data[:5] != b"\x7fELF\x02":
        return True
    order = ">" if data[5:6] == b"\x02" else "<"
    try:
        _, _, _, _, segments, sections, _, _, segment_size, segment_count, section_size, section_count, _ = \
            struct.unpack_from(order + _HEADER, data)
        for k in range(segment_count):
            _, _, offset, _, _, size, _, _ = struct.unpack_from(order + _SEGMENT, data, segments + k * segment_size)
            if offset + size > len(data):
                return False
        for k in range(section_count):
            _, kind, _, _, offset, size, _, _, _, _ = struct.unpack_from(order + _SECTION, data, sections + k * section_size)
            if kind != _NOTHING and offset + size > len(data):
                return False
    except struct.error:        # the tables themselves are not there
        return False
    return True
