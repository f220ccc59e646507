"""Long sequences of calls as data: the steps of an unrolled loop call the same few functions again and again.

The C compiler takes longer for a thousand calls than for the functions that they call.  So they become rows of a table, and a
function that reads the table has one call of each kind.
"""
from __future__ import annotations

from typing import Collection, Dict, List, Mapping, NamedTuple, Sequence, Tuple

import numpy as np

from ...ir.c_forms import c_type
from .outline import Call

#: Fewer calls are not worth a table, nor are those of which each kind occurs less often; and it takes so many in a row.
_LEAST, _ALIKE, _IN_A_ROW = 16, 3, 4
#: A row begins with how many arguments there are, and in the last bits which kind of call it is.  It has one number for each of
#: these: how many bytes behind a pointer, and in the last bits which pointer of ``p``.
_BITS = 16
_SIZES = {c_type(dtype): dtype.itemsize for dtype in map(np.dtype, "?bBhHiIlLfd")}


class Cell(NamedTuple):
    """A number that functions give by a pointer: the names of both, and the C type."""

    name: str
    pointer: str
    type: str


class Where(NamedTuple):
    """Where something is in memory: which pointer of ``p`` leads there, and how many bytes behind it."""

    pointer: int
    nbytes: int


def runs_of(lines: Sequence[str], calls: Mapping[str, Call], known: Collection[str], cells: Mapping[str, Cell]) -> List[range]:
    """Where many calls that are like each other stand in a row; empty if there are too few.

    known: names whose places in memory are known.  cells: by the lines that declare them.
    """
    runs: List[range] = []
    kinds: Dict[Tuple[str, str], int] = {}
    row: List[int] = []
    for index, line in enumerate((*lines, "")):
        line = line.strip()
        call = calls.get(line)
        if call is not None and all([name in known for name, _ in call.arguments]):
            row.append(index)
        elif line not in cells:
            if len(row) >= _IN_A_ROW:
                runs.append(range(row[0], row[-1] + 1))
                for at in row:
                    call = calls[lines[at].strip()]
                    kinds[call.before, call.after] = kinds.get((call.before, call.after), 0) + 1
            row = []
    count = sum(kinds.values())
    return runs if count >= _LEAST and count >= _ALIKE * len(kinds) else []


class CallList:
    """The table of one function, and the function that reads it.

    where: the place of each name.  types: the C type of each; a number is read there, a pointer leads there.
    """

    def __init__(self, function: str, where: Mapping[str, Where], types: Mapping[str, str]):
        self._function, self._where, self._types = function, where, types
        self._kinds: Dict[Tuple[str, str], int] = {}
        self._cases: List[str] = []
        self._rows: List[str] = []
        self._length = self._most = 0
        self._bails = False

    def replaced(self, lines: Sequence[str], runs: Sequence[range], calls: Mapping[str, Call],
                 cells: Mapping[str, Cell]) -> List[str]:
        """The lines of the function with one line for each run, and without those that declare cells."""
        found: List[str] = []
        spans: List[Tuple[int, str, int, int]] = []
        end = 0
        for run in runs:
            found += [line for line in lines[end:run.start] if line.strip() not in cells]
            end, begin = run.stop, self._length
            for index in run:
                call = calls.get(lines[index].strip())
                if call is not None:
                    self._add(call)
            indent = lines[run.start][:-len(lines[run.start].lstrip())]
            spans.append((len(found), indent, begin, self._length))
            found.append("")
        found += [line for line in lines[end:] if line.strip() not in cells]
        for index, indent, begin, end in spans:
            call = f"{self._function}_listed(p, {self._function}_calls + {begin}, {self._function}_calls + {end})"
            found[index] = f"{indent}if ({call}) goto bail;" if self._bails else f"{indent}{call};"
        return found

    def _add(self, call: Call) -> None:
        kind = (call.before, call.after)
        if kind not in self._kinds:
            self._kinds[kind] = len(self._kinds)
            self._case(call)
        numbers = [hex(len(call.arguments) << _BITS | self._kinds[kind])]
        for name, behind in call.arguments:
            place = self._where[name]
            size = _SIZES[self._types[name].replace("const", "").strip(" *")]
            numbers.append(hex((place.nbytes + behind * size) << _BITS | place.pointer))
        self._rows.append(f"    {', '.join(numbers)},  /* {call} */\n")
        self._length += len(numbers)
        self._most = max(self._most, len(call.arguments))

    def _case(self, call: Call) -> None:
        places = [f"given[{k}]" for k in range(len(call.arguments))]
        arguments = [place if self._types[name].endswith("*") else f"*({self._types[name]} *){place}"
                     for place, (name, _) in zip(places, call.arguments)]
        line = call.of(arguments)
        if "goto bail;" in line:
            self._bails, line = True, line.replace("goto bail;", "return 1;")
        self._cases.append(f"        case {len(self._cases)}:\n            {line}\n            break;\n")

    @property
    def text(self) -> str:
        """The table and the function that reads it.

        One loop finds the arguments of all calls: the C compiler takes long for the same arithmetic in each of many places.
        """
        type, end = ("int", "    return 0;\n") if self._bails else ("void", "")
        last = (1 << _BITS) - 1
        return (f"static const int64_t {self._function}_calls[] = {{\n{''.join(self._rows)}}};\n\n"
                f"static {type} {self._function}_listed(char **p, const int64_t *at, const int64_t *end)\n{{\n"
                f"    while (at < end) {{\n        void *given[{max(self._most, 1)}];\n"
                f"        const int64_t kind = *at & {last}, count = *at >> {_BITS};\n        ++at;\n"
                f"        for (int64_t k = 0; k < count; ++k)\n            given[k] = p[at[k] & {last}] + (at[k] >> {_BITS});\n"
                f"        at += count;\n        switch (kind) {{\n{''.join(self._cases)}        }}\n    }}\n{end}}}\n\n")
