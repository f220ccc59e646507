"""How the tables of libraries are written: a line for each set of marks, with the names that have just these."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, Iterator, Mapping, Tuple

#: A name's marks.
Table = Mapping[str, FrozenSet[str]]

#: What each mark says of a callable.
MARKS = {
    "saved": "a file may name it: it computes, draws or prints, reads and writes no files, and calls nothing that it is given",
    "writes": "writes into its first operand and gives nothing",
    "changes": "changes an array in ways that no graph can say",
    "impure": "keeps state, draws, reads or writes files, or calls what it is given",
    "refused": "never called on arrays of a graph: it keeps, shows or reorders them",
    "hidden": "an attribute through which memory is seen",
    "reads": "of an object of a plain class it only reads",
    "pure": "does nothing but compute, with what is plain",
    "host": "waits for the host: it does more than compute",
    "text": "makes a text of what it gets",
    "numbers": "computes with numbers of Python's, also those that only the run knows",
    "inspects": "asks what kind of object something is",
    "frames": "looks at the frame that it is called in",
    "frames_bare": "does so without arguments",
    "asks": "answers for dtypes and settings, at the capture, where it gets no array of the graph",
    "types": "looks at types and shapes only: answered at the capture",
    "follows": "sizes of results are sums and products of those of operands and of numbers given, for any of two or more; or "
               "contents decide them",
    "sure": "does not fail on what operands hold if it does not on their types",
    "contents": "takes numbers for what is in arrays, where they may decide dtypes; makes as much of one element as of more",
    "sizes": "takes numbers for sizes, places and the like only, or gives floats in any case",
    "misleading": "what it gives depends on contents in ways that a few trials need not show: common elements, complex roots",
    "alike": "gives several arrays, all of one size",
    "ordered": "gives a new array in C order",
    "rising": "fails on an array that does not rise",
    "new": "gives a new array of what it is given, never a view",
    "constant": "makes a new array of what it is given, the same in every run where that is known",
    "listed": "takes a list as the array that NumPy makes of it",
    "same": "of one array it gives that array, or a copy of it",
    "sends": "the function of CuPy of this name takes an array of the host, and sends it to the GPU",
    "compares": "compares",
    "state": "uses the state of a generator as a whole",
    "items": "chooses among items",
    "views": "may give its operand, or a view of it",
    "rereads": "of a function of Chainer's: backward reads its operands as they are by then, and keeps nothing "
               "that was made of them",
    "forgets": "of a function of Chainer's: backward reads nothing that its operands hold",
    "leaves": "gives or needs what only Python has: an operand that cannot be compiled is left to Python together with the call",
    "memory": "may depend on the memory layout of an array",
    "calls": "what it is given to call is called by C code",
    "clock": "gives the time, as a float",
    "at_once": "of lazy arrays is called at once: it gives several arrays, objects of Python's, or as much as contents say",
    "looks": "looks at values and gives no array",
    "built": "a method that is an operation of lazy expressions",
    "sees": "gives a view of its first operand",
    "fixed": "and nobody can write to it",
    "late": "and it is computed when somebody needs it, since it may also be computed from other values",
    "silent": "gives nothing, and changes nothing that a program reads",
}

#: Marks that stand behind a name: NumPy has it in this version only.
VERSIONS = ("1", "2")


def read(text: str) -> Dict[str, FrozenSet[str]]:
    """The table that a text writes: lines ``mark mark: name name/1``, that go on where they are indented.

    Raises ValueError for a mark that is not in `MARKS`, and for a name that stands twice.
    """
    found: Dict[str, FrozenSet[str]] = {}
    for line in text.strip().replace("\n    ", " ").splitlines():
        marks, _, names = line.partition(":")
        row = frozenset(marks.split())
        for entry in names.split():
            name, _, version = entry.partition("/")
            if name in found or not row <= MARKS.keys():
                raise ValueError(f"{name} stands twice, or one of its marks is unknown: {marks}")
            found[name] = row | {version} if version else row
    return found


def named(mark: str, *tables: Table) -> FrozenSet[str]:
    """The names in these tables that have a mark."""
    return frozenset([name for table in tables for name, row in table.items() if mark in row])


def members(owner: Any, mark: str, table: Table) -> Iterator[Tuple[str, Any]]:
    """The names with a mark, and what they are in a module or class here; names that not every version has come last."""
    names = sorted(named(mark, table), key=lambda name: (not table[name].isdisjoint(VERSIONS), name))
    return ((name, getattr(owner, name)) for name in names if hasattr(owner, name))
