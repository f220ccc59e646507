"""Loop nests as C functions of their own: equal ones are compiled once, and none makes a large function slow to compile."""
from __future__ import annotations

import collections
import re
from typing import Any, Callable, Collection, Dict, Hashable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ...ir.graph import Node
from ..loops.parallelize import Share

IDENTIFIER = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_PIECES = re.compile(f"({IDENTIFIER.pattern})")         # every second one of which is an identifier
#: An element, or the elements from one on, of an array: that many behind the first.
_OFFSET = re.compile(r"(?<![\w.])([A-Za-z_]\w*)(\)?\[| \+ )([1-9]\d*)(?:( \+ )|(?=[],)]))")
#: A name in parentheses that are not those of a call.
_ALONE = re.compile(r"(?<!\w)\(([A-Za-z_]\w*)\)(?![\w(*])")
_PART = re.compile(r"\bpart_\d+\b")
_CALLED = re.compile(f"{IDENTIFIER.pattern}(?=\\()")
_DIRECTIVES = ("define", "undef")
#: What makes the text of a function of its name, the declarations and names of its parameters, and its lines.
_Kind = Callable[[str, Sequence[str], Sequence[str], str], str]
_MADE_OF = re.compile(r"(?:nan_)?(?:sum_|all_|lanes_)(\w+)$")


class Call(NamedTuple):
    """A line that calls a function: what stands before and behind the arguments.

    arguments: of each the name, and how many elements behind it.
    """

    before: str
    arguments: Tuple[Tuple[str, int], ...]
    after: str

    def __str__(self) -> str:
        return self.of([f"{name} + {behind}" if behind else name for name, behind in self.arguments])

    def of(self, arguments: Sequence[str]) -> str:
        """The line with other arguments."""
        return f"{self.before}{', '.join(arguments)}{self.after}"


class Parts:
    """The functions of one text, in the order in which they are first called.

    nodes: those that the next functions are for.  places: the user's lines of each function, in the order of their calls.
    calls: the lines that call them.  own: all names that have been given out.  alike: see `alike_nests`.
    """

    def __init__(self) -> None:
        self.texts: List[str] = []
        self.nodes: Sequence[Node] = ()
        self.places: List[Dict[Tuple[str, int], None]] = []
        self.calls: Dict[str, Call] = {}
        self.own: Set[str] = set()
        self.alike: Dict[Hashable, Any] = {}
        self._known: Dict[str, str] = {}

    def __getstate__(self) -> Dict[str, Any]:
        """The functions, to which none are added any more."""
        return {"texts": self.texts, "places": self.places}

    def used_in(self, functions: Sequence[str]) -> "Parts":
        """The functions that these call, and those that they call in turn; empty texts stand for the others."""
        used, called = Parts(), set(_PART.findall("\n".join(functions)))
        used.texts, used.places = [""] * len(self.texts), [{} for _ in self.texts]
        for number in reversed(range(len(self.texts))):         # a function calls only those that were there before it
            if f"part_{number}" in called:
                used.texts[number], used.places[number] = self.texts[number], self.places[number]
                called.update(_PART.findall(self.texts[number]))
        return used

    def call(self, lines: Sequence[str], types: Mapping[str, str], own: Collection[str], share: Optional[Share] = None) -> str:
        """A call of the function that these lines are.

        types: the C types of the names that exist outside.  own: all names that have been given out; those of these that
        are not outside are variables of the lines.  share: the lines are the turns from ``begin`` to ``end`` of a loop,
        which may be done by several threads.
        """
        function, arguments = self._function(lines, types, own, _alone if share is None else _shared)
        if share is not None:
            by = "dy_share_evenly" if share.evenly else "dy_share"
            call = Call(f"{by}({function}, &(struct {function}){{", arguments, f"}}, {share.count}, {share.step});")
        elif _bails(lines):
            call = Call(f"if ({function}(", arguments, ")) goto bail;")
        else:
            call = Call(f"{function}(", arguments, ");")
        self.calls[str(call)] = call
        self._note_places(function)
        return str(call)

    def call_of_piece(self, lines: Sequence[str], types: Mapping[str, str], own: Collection[str]) -> str:
        """A call, among the lines of a share, of the function that these lines are, which run from ``begin`` to ``end``."""
        function, arguments = self._function(lines, types, own, _of_piece)
        call = Call(f"{function}(begin, end, ", arguments, ");")
        self.calls[str(call)] = call
        self._note_places(function)
        return str(call)

    def call_again(self, call: Call) -> str:
        """A call of a function that has been called with other arguments."""
        self.calls[str(call)] = call
        self._note_places(_PART.findall(call.before)[0])
        return str(call)

    def body(self, lines: Sequence[str], types: Mapping[str, str], own: Collection[str], of_part: bool = False) -> Tuple[str, str]:
        """The function that these lines are, which run from ``begin`` to ``end``, and a pointer to what it is given.

        of_part: they run from ``left`` to ``right``, too, over a part of a matrix.
        """
        function, arguments = self._function(lines, types, own, _of_part if of_part else _shared)
        self._note_places(function)
        return function, str(Call(f"&(struct {function}){{", arguments, "}"))

    def _function(self, lines: Sequence[str], types: Mapping[str, str], own: Collection[str],
                  kind: "_Kind") -> Tuple[str, Tuple[Tuple[str, int], ...]]:
        text = "\n".join(lines)
        names = collections.Counter(IDENTIFIER.findall(text))
        parameters = [name for name in names if name in types]
        text, first = _from_first(text, {name: names[name] for name in parameters if types[name].endswith("*")})
        arguments = tuple([(name, first.get(name, 0)) for name in parameters])
        own_names = [name for name in names if name in types or _is_own(name, own)]
        numbers = {name: f"@{number}" for number, name in enumerate(own_names)}
        key = f"{_renamed(text, numbers)}{''.join([f' {types[name]}' for name in parameters])} {kind.__name__}"
        if key not in self._known:
            self._known[key] = function = f"part_{len(self.texts)}"
            declared = [f"{types[name]}{'' if types[name].endswith('*') else ' '}{name}" for name in parameters]
            self.texts.append(kind(function, declared, parameters, text))
            self.places.append({})
        return self._known[key], arguments

    def _note_places(self, function: str) -> None:
        """The nodes at hand are computed by this function, too."""
        self.places[int(function.rpartition("_")[2])].update(
            dict.fromkeys([(node.loc.file, node.loc.line) for node in self.nodes if node.loc is not None]))


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """The text with other identifiers."""
    pieces = _PIECES.split(text)
    pieces[1::2] = [names.get(piece, piece) for piece in pieces[1::2]]
    return "".join(pieces)


def numbered(text: str, own: Collection[str]) -> str:
    """The text with names that only depend on their order, so that programs which do the same have the same library.

    own: the names that have been given out.
    """
    names: Dict[str, str] = {}
    numbers: Dict[str, int] = {}
    kept = {*_DIRECTIVES, *_CALLED.findall(text)}                  # an array may have the name of a function of C
    for name in dict.fromkeys(_PIECES.split(text)[1::2]):
        made = _MADE_OF.match(name)
        given = made[1] if made is not None and name not in own else name
        if given in own and given not in kept:
            names[name] = f"{name[:-len(given)]}v_{numbers.setdefault(given, len(numbers))}"
    return _renamed(text, names)


def _from_first(text: str, arrays: Mapping[str, int]) -> Tuple[str, Dict[str, int]]:
    """The text with pointers to the first elements that it reads of arrays, and which these are where they are not at the front.

    arrays: how often each is named.  So the parts of an array that the steps of an unrolled loop read are arguments of one
    function, the one at the front of the array like the others.
    """
    found: Dict[str, List[int]] = {}
    for name, _, offset, _ in _OFFSET.findall(text):
        if name in arrays:
            found.setdefault(name, []).append(int(offset))
    first = {name: min(offsets) for name, offsets in found.items() if len(offsets) == arrays[name]}
    if not first:
        return text, first

    def moved(match: "re.Match[str]") -> str:
        name, before, offset, after = match[1], match[2], int(match[3]) - first.get(match[1], 0), match[4] or ""
        if offset:
            return f"{name}{before}{offset}{after}"
        return f"{name}{after}" if before == " + " else f"{name}{before}{'' if after else 0}"
    text = _OFFSET.sub(moved, text)
    return _ALONE.sub(lambda match: match[1] if match[1] in first else match[0], text), first


def _alone(function: str, declared: Sequence[str], names: Sequence[str], text: str) -> str:
    bails = _bails([text])
    type, end = ("int", "    return 0;\nbail:\n    return 1;\n") if bails else ("void", "")
    return f"static __attribute__((noinline)) {type} {function}({', '.join(declared) or 'void'})\n{{\n{text}\n{end}}}\n"


def _of_piece(function: str, declared: Sequence[str], names: Sequence[str], text: str) -> str:
    parameters = ", ".join(["const int64_t begin", "const int64_t end", *declared])
    return f"static __attribute__((noinline)) void {function}({parameters})\n{{\n{text}\n}}\n"


def _bails(lines: Sequence[str]) -> bool:
    """Whether lines may give up the call."""
    return any("goto bail;" in line for line in lines)


def _shared(function: str, declared: Sequence[str], names: Sequence[str], text: str, more: str = "") -> str:
    """A `dy_body`: what a function on its own has as parameters is in a structure.  more: further parameters."""
    taken = "\n".join(f"    {declaration.replace('*', '*const ')} = given_->{name};"
                      for declaration, name in zip(declared, names))
    return (f"struct {function} {{ {' '.join(f'{declaration};' for declaration in declared)} }};\n"
            f"static void {function}(const void *given, int64_t begin, int64_t end{more})\n{{\n"
            f"    const struct {function} *const given_ = given;\n{taken}\n{text}\n}}\n")


def _of_part(function: str, declared: Sequence[str], names: Sequence[str], text: str) -> str:
    """A `dy_part_body`."""
    return _shared(function, declared, names, text, ", int64_t left, int64_t right")


def _is_own(name: str, own: Collection[str]) -> bool:
    """Whether a name has been given out, or is that of an accumulator, made of one."""
    found = _MADE_OF.match(name)
    return name in own or found is not None and found.group(1) in own
