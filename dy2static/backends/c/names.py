"""Names in C: identifiers that nothing else has."""
from __future__ import annotations

import re
from typing import Dict, Set

_RESERVED = frozenset("""
    pragma omp simd reduction max min all sum p n d run scratch bail int float double char long short if else for while
    do return goto const static void switch case break continue sizeof struct union enum bool true false i j k b
    INFINITY NAN y0 y1 j0 j1 log exp sin cos tan register signed unsigned volatile inline restrict auto extern default
    typedef a c e o at to from best found item last total begin end left right better linux unix free memset memcpy fabs
    heap failed made first windows t step size count xs taken sums second s reached m kind kept into channels after
    most many here
""".split())

#: Names of loops' variables, and what is made of other names.
_COUNTER = re.compile(r"[a-z]\d+|(sum|all|nan|lanes)_.*")


class CNames:
    """Gives out the names of one text.

    taken: those given out so far.  types: the C types of pointers and numbers that functions of loops may be given.
    """

    def __init__(self) -> None:
        self.taken: Set[str] = set()
        self.types: Dict[str, str] = {}
        self._counts: Dict[str, int] = {}               # how far each base has got

    def take(self, name: str, type: str = "") -> str:
        """Give out exactly this name."""
        self.taken.add(name)
        if type:
            self.types[name] = type
        return name

    def fresh(self, hint: str, type: str = "") -> str:
        """An identifier close to the hint: ``h``, else ``h_1``, ``h_2``.  type: its C type, if functions may be given it."""
        base = re.sub(r"\W", "_", hint) or "v"
        base = f"v{base}" if base[0].isdigit() or base in _RESERVED or _COUNTER.fullmatch(base) else base
        name = base
        while name in self.taken:
            count = self._counts[base] = self._counts.get(base, 0) + 1
            name = f"{base}_{count}"
        return self.take(name, type)
