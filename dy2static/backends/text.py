"""Lines of generated code put together: each names the user's line it comes from."""
from __future__ import annotations

import os
from typing import List, Optional, Sequence, Tuple

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
