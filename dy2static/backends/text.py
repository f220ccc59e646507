"""Lines of generated code put together: each names the user's line it comes from."""
from __future__ import annotations

import os
from collections import Counter
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from ..errors import Location

#: A line of code and the user's line it belongs to.
Line = Tuple[str, Optional[Location]]

#: Comments stand at one column, if the code is not wider than this.
_WIDEST = 60


def function_text(name: str, params: Sequence[str], lines: Sequence[Line], result: str) -> str:
    """The text of a function."""
    body = [f"    {line}" for line in with_origins(lines)] + [f"    return {result}"]
    return "\n".join([f"def {name}({', '.join(params)}):", *body]) + "\n"


def with_origins(lines: Sequence[Line]) -> List[str]:
    """The lines, with a comment ``# model.py:12`` where another line of the user begins."""
    column = max([len(text) for text, loc in lines if loc is not None and len(text) <= _WIDEST], default=0) + 2
    result, last = [], None
    for text, loc in lines:
        place = None if loc is None else (loc.file, loc.line)
        if loc is None or place == last:
            result.append(text)
        else:
            result.append(f"{text:<{column}}# {os.path.basename(loc.file)}:{loc.line}" if len(text) < column
                          else f"{text}  # {os.path.basename(loc.file)}:{loc.line}")
        last = place if loc is not None else last
    return result


def lines_of_one_file(origins: Mapping[int, Location]) -> Tuple[str, Dict[int, int]]:
    """A file of the user's, and for each generated line the line of it that it comes from, or that called where it comes from.

    That is the file that most lines come from, if all others were called from it; else one that all were called from.  There are
    no lines if there is no such file.
    """
    chains = {number: (*place.callers, place) for number, place in origins.items()}
    files = [name for name, _ in Counter([chain[-1].file for chain in chains.values()]).most_common()]
    files += [name for name, _ in Counter([chain[0].file for chain in chains.values()]).most_common()]
    for file in files:
        found = {number: _last_in(file, chain) for number, chain in chains.items()}
        if all(found.values()):
            return file, found
    return "", {}


def _last_in(file: str, chain: Sequence[Location]) -> int:
    return next((place.line for place in reversed(chain) if place.file == file), 0)
