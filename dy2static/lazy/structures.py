"""The structure of an expression, and the compiled function of each structure."""
from __future__ import annotations

import functools
import itertools
import sys
from collections import OrderedDict
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from ..errors import CaptureError
from ..ir.types import Scalar
from ..options import Options
from ..pyast.loader import compile_text
from ..runtime.array_gradients import OutsideError, array_gradients
from ..static_function import StaticFunction
from ..threads.locks import lock
from .calls import Call, Writer
from .nodes import TRACED, Node, call_node, leaf

#: So many structures are kept; those that were used longest ago go first.
MOST_STRUCTURES = 512

#: So many elements of NumPy's results cost about as much as a program.
WORTH_COMPILING = 20_000_000

#: So many types of results are kept for a structure.
_MOST_TYPES = 256

_numbers = itertools.count(1)


class Plan:
    """What is to be computed for some nodes, which are different, read off once.  The lock of `nodes` is held.

    key: in the order of numbers, types of leaves, and operations with the numbers of their operands; at last those of the results.
    leaves: arrays and numbers.  nodes: by number; None for a number of Python's.  results: the nodes that get a result: those that
    were asked for, and unless ``only``, those that somebody else holds, so that nothing is computed twice.
    """

    __slots__ = ("key", "leaves", "nodes", "results", "_seen", "_uses", "_operations")

    def __init__(self, wanted: Sequence[Node], only: bool = False):
        self.leaves: List[Any] = []
        self.nodes: List[Any] = []
        self._seen: Dict[Node, int] = {}
        self._uses: List[int] = []
        self._operations: List[int] = []
        key: List[Any] = []
        self._read(wanted, key)
        is_all = only or len(self._operations) == len(wanted)
        self.results = wanted if is_all else self._results(wanted, key)
        key.append(tuple([self._seen[node] for node in self.results]))
        self.key = tuple(key)

    def is_traced(self) -> bool:
        """Whether gradients are taken of a part, which only programs can."""
        return any([node is not None and node.depth >= TRACED for node in self.nodes])

    def _read(self, wanted: Sequence[Node], key: List[Any]) -> None:
        """Number nodes, each behind its operands."""
        seen, uses, nodes, leaves = self._seen, self._uses, self.nodes, self.leaves
        waiting = [*reversed(wanted)]
        while waiting:
            node = waiting[-1]
            if node in seen:
                waiting.pop()
                continue
            result = node.result
            if result is None or node.args and node.code is None and _is_scattered(node):
                args = node.args
                for arg in reversed(args):
                    if type(arg) is Node and arg not in seen:
                        waiting.append(arg)
                if waiting[-1] is not node:
                    continue
                line = [node.op]
                for arg in args:
                    if type(arg) is Node:
                        number = seen[arg]
                        uses[number] += 1
                    else:
                        key.append(type(arg))
                        leaves.append(arg)
                        number = len(nodes)
                        nodes.append(None)
                        uses.append(0)
                    line.append(number)
                key += line
                self._operations.append(len(nodes))
            elif type(result) is np.ndarray:
                key += (result.dtype, result.ndim)
                leaves.append(result)
            else:                                       # an array without axes: a number might be taken for a constant
                key += (result.dtype, -1)
                leaves.append(np.asarray(result))
            waiting.pop()
            seen[node] = len(nodes)
            nodes.append(node)
            uses.append(0)

    def _results(self, wanted: Sequence[Node], key: List[Any]) -> List[Node]:
        nodes, uses = self.nodes, self._uses
        found, several = [], []
        for number, count in zip(self._operations, _references(nodes, self._operations)):
            node = nodes[number]
            if (count > uses[number] + _ALONE or node in wanted) and node.result is None:
                if type(node.op) is Call and node.op.target is array_gradients:
                    several.append(node)                # no array, but what its parts are taken from, together
                else:
                    found.append(node)
        for node in several:
            for part in [each for ref in node.type or () if (each := ref()) is not None and each not in self._seen]:
                self._read((part,), key)
                found.append(part)
        return found


def _is_scattered(node: Node) -> bool:
    """Whether a value that is there is a view with gaps of an array without: a program takes it of that one, and not of a copy."""
    base = node.args[0].result
    return not node.result.flags.c_contiguous and type(base) is np.ndarray and bool(base.flags.c_contiguous)


def _references(nodes: List[Any], numbers: List[int]) -> List[int]:
    """How many references there are to each of some nodes."""
    return [sys.getrefcount(nodes[number]) for number in numbers]


#: What `_references` counts for a node of a plan that nothing else refers to, besides uses as an operand.
_ALONE = sys.maxsize


def _alone() -> int:
    inner = call_node("-{}", (leaf(np.ones(1)),), sys._getframe())
    outer = call_node("-{}", (inner,), sys._getframe())
    del inner
    plan = Plan([outer])
    return _references(plan.nodes, [1])[0] - 1          # its use as an operand


_ALONE = _alone()


class Structure:
    """The function of one structure.

    source: its text.  function: it as Python.  lines: the number of the node that each line computes.
    """

    def __init__(self, key: Tuple[Any, ...]):
        self.name = f"lazy_{next(_numbers)}"
        self.file = f"<{self.name}>"
        self._key = key
        self._work = 0
        self._compiled: Dict[Any, StaticFunction] = {}
        self._types: Dict[Any, Any] = {}
        self._lock = lock()

    def pays(self, leaves: Sequence[Any]) -> bool:
        """Whether a program pays for one more evaluation: NumPy has computed, or has to, as many elements as to compile costs.

        Elements are those of the largest leaf, for each entry of the key.  What NumPy has made of them may be larger: see `count`.
        """
        if not self._compiled:
            self._work += self.estimate(leaves)
        return bool(self._compiled) or self._work >= WORTH_COMPILING

    def count(self, elements: int) -> None:
        """Note how many more elements NumPy has computed than `pays` has counted, if they are more."""
        self._work += max(0, elements)

    def estimate(self, leaves: Sequence[Any]) -> int:
        """How many elements `pays` counts for these leaves."""
        return len(self._key) * max([each.size for each in leaves if isinstance(each, np.ndarray)], default=1)

    @functools.cached_property
    def lines(self) -> Dict[int, int]:
        """The number of the node that each line of the function computes."""
        return self._written[1]

    @functools.cached_property
    def source(self) -> str:
        """The text of the function."""
        return self._written[0]

    @functools.cached_property
    def function(self) -> Any:
        """The function as Python."""
        return compile_text(self.source, self.file, self._written[2])[self.name]

    @functools.cached_property
    def _written(self) -> Tuple[str, Dict[int, int], Dict[str, Any]]:
        """The function that the key says, a line for each operation: text, numbers of nodes by line, and what it names."""
        key, writer, lines = self._key, Writer(), {}
        names: List[str] = []
        arguments, body = [], []
        entries = iter(key[:-1])
        for entry in entries:
            number = len(names)
            if isinstance(entry, (np.dtype, type)):
                names.append(f"{'x' if isinstance(entry, np.dtype) else 'c'}{number}")
                arguments.append(names[-1])
                if isinstance(entry, np.dtype) and next(entries) < 0:
                    body.append(f"    {names[-1]} = {names[-1]}[()]")
            else:
                operands = [names[next(entries)] for _ in range(writer.arity(entry))]
                lines[len(body) + 2] = number
                names.append(f"t{number}")
                body.append("    " + writer.statement(names[-1], entry, operands))
        given = ", ".join([names[number] for number in key[-1]])
        comma = "," if len(key[-1]) == 1 else ""
        source = "\n".join([f"def {self.name}({', '.join(arguments)}):", *body, f"    return {given}{comma}"]) + "\n"
        return source, lines, writer.names

    def compiled(self, backend: Any) -> StaticFunction:
        """The compiled function for a backend; None: the default."""
        found = self._compiled.get(backend)
        if found is None:
            with self._lock:
                found = self._compiled.setdefault(backend, StaticFunction(self.function, Options(strict=True, backend=backend)))
        return found

    def captures(self) -> int:
        """How many programs have been made for it so far."""
        return sum([static.dispatcher.captures for static in list(self._compiled.values())])

    def type_of_result(self, leaves: Sequence[Any], backend: Any) -> Any:
        """Shape and dtype of the only result, as the graph has it; None where the values decide."""
        facts = tuple([each.shape if isinstance(each, (np.ndarray, np.generic)) else each for each in leaves])
        if facts not in self._types:
            if len(self._types) >= _MOST_TYPES:
                self._types.clear()
            self._types[facts] = self._type_for(leaves, backend)
        return self._types[facts]

    def _type_for(self, leaves: Sequence[Any], backend: Any) -> Any:
        try:
            outputs = self.compiled(backend).program(*leaves).graph.outputs
        except CaptureError:                            # the evaluation says why, if need be
            return None
        found = outputs[0].type if len(outputs) == 1 else None
        shape = () if isinstance(found, Scalar) else getattr(found, "shape", None)
        return (shape, np.dtype(found.dtype)) if shape is not None and all([type(size) is int for size in shape]) else None

    def run(self, leaves: Sequence[Any], backend: Any) -> Tuple[Any, ...]:
        """The results for these leaves.  Raises `CaptureError` for what cannot be compiled."""
        try:
            results: Tuple[Any, ...] = (self._compiled.get(backend) or self.compiled(backend))(*leaves)
            return results
        except OutsideError:                            # after captures that did not pay: it is compiled all the same
            called: Any = self.compiled(backend).program(*leaves).call(tuple(leaves), {})
            return called                               # type: ignore[no-any-return]


class Structures:
    """The structures that were used last, at most ``limit``.  The lock of `nodes` is held.

    made: how many there have been.  captures: the programs that were made for those that are gone.
    """

    def __init__(self, limit: int):
        self.limit, self.made, self.captures = limit, 0, 0
        self.known: "OrderedDict[Tuple[Any, ...], Structure]" = OrderedDict()

    def of(self, key: Tuple[Any, ...]) -> Structure:
        """The structure of a key."""
        found = self.known.get(key)
        if found is not None:
            self.known.move_to_end(key)
            return found
        if len(self.known) >= self.limit:
            _, gone = self.known.popitem(last=False)
            self.captures += gone.captures()
        self.made += 1
        found = self.known[key] = Structure(key)
        return found


structures = Structures(MOST_STRUCTURES)
