"""The arrays of a model as one block of bytes: in a file that can be mapped, or in the source."""
from __future__ import annotations

import hashlib
from typing import Dict, Sequence

import numpy as np

from ..program import Parameter

#: Arrays begin at multiples of this many bytes.
ALIGNMENT = 64
_ORDER, _VERSION = 0x01020304, 1

#: The bytes of the head that hold the checksum of the rest; zeros: it is not compared.
CHECKSUM = slice(16, 24)


class Weights:
    """The arrays one after the other, behind a head that says which model they belong to.

    offsets: by name, where each begins.  nbytes: of the whole.  head: its first four words: byte order, version,
    and a hash of the names, shapes and dtypes.
    """

    def __init__(self, parameters: Sequence[Parameter]):
        self.arrays = {p.name: np.ascontiguousarray(p.array).reshape(p.array.shape) for p in parameters}
        self.offsets: Dict[str, int] = {}
        end = ALIGNMENT
        for name, array in self.arrays.items():
            self.offsets[name] = end
            end += -(-max(array.nbytes, 1) // ALIGNMENT) * ALIGNMENT
        self.nbytes = end
        layout = repr([(name, array.shape, array.dtype.str) for name, array in self.arrays.items()])
        digest = hashlib.sha256(layout.encode()).digest()
        self.head = (_ORDER, _VERSION, *(int.from_bytes(digest[k:k + 4], "little") for k in (0, 4)))

    def block(self) -> np.ndarray:
        """All bytes, in the order of bytes of this machine."""
        found = np.zeros(self.nbytes, np.uint8)
        found[:16] = np.array(self.head, np.uint32).view(np.uint8)
        for name, array in self.arrays.items():
            begin = self.offsets[name]
            found[begin:begin + array.nbytes] = array.reshape(-1).view(np.uint8)
        found[CHECKSUM] = np.array([_checksum(found[ALIGNMENT:].view(np.uint64))], np.uint64).view(np.uint8)
        return found

    def as_source(self, name: str) -> str:
        """An array of C with the same bytes, where the byte order is that of this machine."""
        words = self.block().view(np.uint32).tolist()
        rows = "\n".join("    " + " ".join(f"0x{word:x}," for word in words[k:k + 12]) for k in range(0, len(words), 12))
        return f"static const _Alignas({ALIGNMENT}) uint32_t {name}[] = {{\n{rows}\n}};\n"


def _checksum(words: np.ndarray) -> int:
    """The sum of all words of 64 bits, each times twice its number plus one, and of 1.  It differs wherever one word does."""
    total, step = 1, 1 << 20
    for begin in range(0, len(words), step):
        part = words[begin:begin + step]
        odd = 2 * np.arange(begin, begin + len(part), dtype=np.uint64) + np.uint64(1)
        total += int((part * odd).sum(dtype=np.uint64))
    return total % 2**64


def checksum_in_c(name: str) -> str:
    """A function of C that says whether the weights have their checksum, or none."""
    return f"""static bool {name}_is_sound(const unsigned char *weights, size_t bytes)
{{
    uint64_t kept, word, total = 1;
    memcpy(&kept, weights + {CHECKSUM.start}, sizeof kept);
    for (size_t k = {ALIGNMENT}; kept && k < bytes; k += 8) {{
        memcpy(&word, weights + k, sizeof word);
        total += word * (uint64_t)((k - {ALIGNMENT}) / 4 + 1);
    }}
    return !kept || total == kept;
}}
"""
