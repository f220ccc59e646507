"""The counts of a function with its programs and its parts."""
from __future__ import annotations

from typing import Dict, Mapping, Sequence

from ..runtime.program import Program
from .in_parts import InParts

#: What a part counts that is no count of the function: its calls that run eagerly are part of a call that is compiled.
_OF_PARTS_ALONE = ("fallbacks", "refused", "as_python")


def counted(own: Mapping[str, int], programs: Sequence[Program], parts: InParts) -> Dict[str, int]:
    """The counts of a function, ``own``, those of its programs and those of its parts, added up by name."""
    found = dict(own)
    for program in programs:
        _add(found, program.counts)
    for dispatcher in parts.dispatchers():
        _add(found, {name: count for name, count in dispatcher.stats().items() if name not in _OF_PARTS_ALONE})
    found.update(parts.stats())
    found["peak_bytes"] = max([program.peak_bytes for program in programs], default=0)
    return found


def _add(found: Dict[str, int], counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        found[name] = found.get(name, 0) + count
