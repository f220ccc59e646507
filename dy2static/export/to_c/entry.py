"""One function of an exported model: what it is called in C, and the structures of its arguments and results."""
from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from ...backends.c.closed import ClosedFunction, element_type, is_array
from ...ir.dims import Dim, as_multiple
from ...ir.graph import Value
from ...ir.types import Tensor
from ..program import ExportedProgram, FreeSize, unique

_KEYWORDS = frozenset("""
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const constexpr
    continue decltype default delete do double else enum explicit export extern false float for friend goto if inline
    int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    requires restrict return short signed sizeof static static_assert struct switch template this throw true try typedef
    typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq random none main linux unix
""".split())


def identifier(name: str) -> str:
    """A name that C and C++ take."""
    found = re.sub(r"\W", "_", name, flags=re.ASCII)
    found = found if re.match(r"[A-Za-z]", found) else f"v{found}"
    return f"{found}_" if found in _KEYWORDS else found


@dataclass(frozen=True)
class Field:
    """A member of the structure of arguments or results.

    value: of the graph.  grown: the size is found by the program: it gives a pointer into the arena, and the shape.
    """

    value: Value
    name: str
    shown: str
    grown: bool = False

    @property
    def is_array(self) -> bool:
        """Whether C has a pointer for it."""
        return is_array(self.value)

    @property
    def type(self) -> str:
        """The C type of an element."""
        return element_type(self.value)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.value.ndim if isinstance(self.value.type, Tensor) else 0


class Entry:
    """The names of one function of a model, and of what it takes and gives.

    role: ``"run"``, or ``"backward"`` for the one that also gives gradients.
    """

    def __init__(self, name: str, role: str, program: ExportedProgram, function: ClosedFunction):
        self.name, self.program, self.function = name, program, function
        self.stem = name if role == "run" else f"{name}_{role}"
        self.called = f"{name}_{role}"
        self.draws, self.grows = function.draws, function.function.grows
        names = unique([identifier(part.name) for part in (*program.sizes.values(), *program.arguments)])
        self.sizes: Dict[str, Tuple[str, FreeSize]] = {             # C has no arrays without elements
            symbol: (name, replace(size, least=max(size.least, 1))) for name, (symbol, size) in zip(names, program.sizes.items())}
        self.arguments = [Field(a.value, name, self.shape(a.value)) for a, name in zip(program.arguments, names[len(self.sizes):])]
        self.results = [Field(r.value, name, self.shape(r.value), grown) for r, name, grown in zip(
            program.results, unique([identifier(r.name) for r in program.results]), function.is_grown)]

    def shape(self, value: Value) -> str:
        """A shape as a comment has it: ``(batch, 784)``; empty for a number."""
        if not isinstance(value.type, Tensor):
            return ""
        return f"({', '.join(map(self.size, value.shape))}{',' * (value.ndim == 1)})"

    def size(self, size: Any) -> str:
        """A size in the names of the user's."""
        if not isinstance(size, Dim):
            return str(size)
        known = {symbol: free.divided(name) for symbol, (name, free) in self.sizes.items()}
        symbol, factor = as_multiple(size) or ("", 1)
        if symbol in known and self.sizes[symbol][1].factor == factor:
            return self.sizes[symbol][0]
        return re.sub(r"[A-Za-z_]\w*", lambda found: known.get(found.group(), found.group()), str(size))

    def number(self, symbol: str, holder: str = "") -> str:
        """The number of a symbol in C; holder: what the size is a member of, with ``.`` or ``->``."""
        name, free = self.sizes[symbol]
        return free.divided(holder + name)

    @property
    def signature(self) -> str:
        """The head of the function."""
        indent = " " * (len(self.called) + 5)
        return (f"int {self.called}(const {self.name}_model *model, const {self.stem}_arguments *arguments,\n"
                f"{indent}{self.stem}_results *results, void *arena, size_t arena_bytes)")

    @property
    def arena_signature(self) -> str:
        """The head of the function that tells the size of the arena."""
        sizes = ", ".join(f"int64_t {name}" for name, _ in self.sizes.values()) or "void"
        return f"size_t {self.stem}_arena_bytes({sizes})"

    def declarations(self) -> str:
        """The part of the header that is about it."""
        more = ", besides what lists and loops need: the more iterations, the more" if self.grows else ""
        none = "; 0 for sizes that the model is not for" if self.sizes else ""
        return f"""typedef struct {{
{_members(self._argument_members())}
}} {self.stem}_arguments;

/* The caller gives the memory of results, except where the comment says otherwise. */
typedef struct {{
{_members(self._result_members())}
}} {self.stem}_results;

/* How large an arena has to be for calls of such sizes{more}{none}. */
{self.arena_signature};

{self.signature};
"""

    def _argument_members(self) -> Iterator[Tuple[str, str]]:
        for name, size in self.sizes.values():
            yield f"int64_t {name};", size.in_words
        for field in self.arguments:
            yield (f"const {field.type} *{field.name};" if field.is_array else f"{field.type} {field.name};"), field.shown
        if self.draws:
            yield f"{self.name}_random *random;", "is changed"

    def _result_members(self) -> Iterator[Tuple[str, str]]:
        for field in self.results:
            if field.grown:
                yield f"const {field.type} *{field.name};", f"{field.shown}, in the arena"
                yield f"int64_t {field.name}_shape[{field.ndim}];", ""
            else:
                yield (f"{field.type} *{field.name};" if field.is_array else f"{field.type} {field.name};"), field.shown


def _members(members: Iterator[Tuple[str, str]]) -> str:
    found: Sequence[Tuple[str, str]] = list(members) or [("char none;", "")]
    width = max(len(text) for text, _ in found)
    lines: List[str] = [f"    {text.ljust(width)}  /* {comment} */" if comment else f"    {text}" for text, comment in found]
    return "\n".join(lines)
