"""The package's headers as part of one text: each once, without what is for native programs of Python's."""
from __future__ import annotations

import re
from typing import List, Set

from ...native.compiler import INCLUDE

_INCLUDE = re.compile(r'\s*#\s*include "(dy2static_\w+\.h)"')
_SYSTEM = re.compile(r"\s*#\s*include <([\w/.]+)>")
_CONDITION = re.compile(r"\s*#\s*(if|ifdef|ifndef|else|elif|endif)\b\s*(.*)")
_NAME = "DY_STANDALONE"


def joined(text: str) -> str:
    """A text with the headers that it includes in their place.

    Includes of the C library stand in front, but for those under a condition besides the guard of their header.
    """
    found: List[str] = []
    system: Set[str] = set()
    _join(text.splitlines(), found, set(), system)
    return "".join(f"#include <{name}>\n" for name in sorted(system)) + "\n" + re.sub(r"\n{3,}", "\n\n", "\n".join(found)) + "\n"


def _join(lines: List[str], found: List[str], seen: Set[str], system: Set[str]) -> None:
    depth = 0                                           # of conditions within one that is decided here
    decided: List[List[object]] = []                    # for each such one: whether its lines are kept, how deep it stands
    for line in lines:
        condition = _CONDITION.match(line)
        if condition is not None:
            word, rest = condition.group(1), condition.group(2).split()
            if word in ("ifdef", "ifndef") and rest[:1] == [_NAME]:
                decided.append([word == "ifdef", depth])
                continue
            if word.startswith("if"):
                depth += 1
            elif decided and decided[-1][1] == depth:
                if word == "endif":
                    decided.pop()
                else:
                    decided[-1][0] = not decided[-1][0]
                continue
            elif word == "endif":
                depth -= 1
        if not all(kept for kept, _ in decided):
            continue
        include, of_system = _INCLUDE.match(line), _SYSTEM.match(line)
        if of_system is not None and depth <= 1:
            system.add(of_system.group(1))
        elif include is None:
            found.append(line)
        elif include.group(1) not in seen:
            seen.add(include.group(1))
            _join((INCLUDE / include.group(1)).read_text().splitlines(), found, seen, system)
