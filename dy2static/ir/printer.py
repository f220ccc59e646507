"""A graph as the text of a Python function that runs with NumPy."""
from __future__ import annotations

import builtins
import functools
import keyword
import os
import re
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from ..errors import Location
from .dims import Dim, as_multiple
from .evaluate import BUILTINS
from .graph import Graph, Node, Value
from .op import OpDef
from .size_texts import divided_text
from .template import attr_source, fills_out, numpy_source
from .types import Never, Tensor, Type


def to_source(graph: Graph) -> str:
    """A Python function with NumPy that does what the graph does and returns the tuple of its outputs.

    Each node is an assignment with the type of its result, and the user's line where known, in a comment;
    ``if_``, ``while_`` and ``scan`` are written as ``if``, ``while`` and ``for``.
    Ops whose NumPy meaning is a callable appear as calls
    of the op's name, with its attributes.
    """
    return _Printer(graph).function(graph)


class _Printer:
    """Collects the lines of one function; every value has one Python name in it, in regions too."""

    def __init__(self, graph: Graph):
        self.lines: List[str] = []
        self.depth = 1
        self.names: Dict[Value, str] = {}
        self.imports: Set[str] = set()
        self.taken = {*keyword.kwlist, *BUILTINS, *_symbols(graph),
                      *(f.__name__ for node in graph.walk() for f in node.op.calls)}

    def function(self, graph: Graph) -> str:
        params = ", ".join(map(self.name, graph.inputs))
        self.write(*(f"{self.names[v]}: {v.type}" for v in graph.inputs), comment=True)
        self.bind_sizes(graph)
        self.body(graph)
        self.write(f"return {_tuple(self.operands(graph.outputs))}")
        header = [f"from {module} import {name}" for module, name in sorted(i.rsplit(".", 1) for i in self.imports)]
        return "\n".join(["import numpy as np", *header, "", "",
                          f"def {_identifier(graph.name)}({params}):", *self.lines]) + "\n"

    def name(self, value: Value) -> str:
        """The Python name of a value; a new one at its first use."""
        if value not in self.names:
            hint = name = _identifier(value.name)
            count = 0
            while name in self.taken:
                count += 1
                name = f"{hint}_{count}"
            self.taken.add(name)
            self.names[value] = name
        return self.names[value]

    def operands(self, values: Sequence[Value]) -> List[str]:
        return [self.name(v) for v in values]

    def write(self, *lines: str, comment: bool = False) -> None:
        self.lines += ["    " * self.depth + ("# " if comment else "") + line for line in lines]

    def block(self, header: str, write_body: Callable[[], None]) -> None:
        self.write(header)
        self.depth += 1
        before = len(self.lines)
        write_body()
        if len(self.lines) == before:
            self.write("pass")
        self.depth -= 1

    def bind_sizes(self, graph: Graph) -> None:
        """Assign the symbols that are sizes of inputs."""
        bound: Set[str] = set()
        for value in graph.inputs:
            for axis, n in enumerate(value.type.shape if isinstance(value.type, Tensor) else ()):
                symbol, factor = as_multiple(n) or ("", 1)
                if symbol and symbol not in bound:
                    bound.add(symbol)
                    self.write(f"{symbol} = {divided_text(f'{self.names[value]}.shape[{axis}]', factor)}")

    def body(self, graph: Graph) -> None:
        for node in graph.nodes:
            rules = {"if_": self.if_, "while_": self.while_, "scan": self.scan, "raise_": self.raise_}
            rules.get(node.op.name, self.primitive)(node)

    def primitive(self, node: Node) -> None:
        operands, results = self.operands(node.inputs), self.operands(node.outputs)
        note = _note([v.type for v in node.outputs], node.loc)
        self.imports.update(f"{f.__module__}.{f.__name__}" for f in node.op.calls)
        text = _text(node.op, operands, results, [v.type for v in node.inputs], node.outputs[0].type, node.attrs)
        if not fills_out(node.op):
            self.write(f"{', '.join(results)} = {text}{note}")
        elif _is_plain(node):
            self.write(f"{results[0]} = {text.replace(f', out={results[0]})', ')')}{note}")
        else:
            for result, value in zip(results, node.outputs):
                shape, dtype = attr_source(value.shape), attr_source(value.dtype)
                self.write(f"{result} = np.empty({shape}, {dtype}){_note([value.type], node.loc)}")
            self.write(*text.split("\n"))

    def if_(self, node: Node) -> None:
        results = self.operands(node.outputs)
        captured = self.operands(node.inputs[1:])
        headers = (f"if {self.name(node.inputs[0])}:{_note((), node.loc)}", "else:")
        for header, region in zip(headers, node.regions):
            self.block(header, functools.partial(self.branch, region, captured, results))

    def branch(self, region: Graph, captured: Sequence[str], results: Sequence[str]) -> None:
        self.names.update(zip(region.inputs, captured))
        self.body(region)
        if results and not any(isinstance(v.type, Never) for v in region.outputs):
            self.write(f"{', '.join(results)} = {', '.join(self.operands(region.outputs))}")

    def while_(self, node: Node) -> None:
        test, body = node.regions
        carried, invariants = node.attrs["carried"], self.operands(node.inputs[node.attrs["carried"]:])
        state, stacks = self.loop_variables(node, node.inputs[:carried], body)
        count = self.operands(node.outputs[-1:]) if node.attrs["counted"] else []
        self.write(*(f"{name} = 0" for name in count))

        def write_loop() -> None:
            self.names.update(zip(test.inputs, state + invariants))
            self.body(test)
            self.write(f"if not {self.name(test.outputs[0])}:", "    break")
            self.write(*(f"{name} += 1" for name in count))
            self.iteration(body, state + invariants, state, stacks)

        self.block("while True:" + _note((), node.loc), write_loop)

    def scan(self, node: Node) -> None:
        (body,), (count, *rest) = node.regions, node.inputs
        carried, reads = node.attrs["carried"], node.attrs["reads"]
        state, stacks = self.loop_variables(node, rest[:carried], body)
        read, invariants = self.operands(rest[carried:carried + reads]), self.operands(rest[carried + reads:])
        items = self.operands(body.inputs[carried:carried + reads])
        reverse = [f"reversed({stack})" for stack in read]
        if len(items) == 1:
            header = f"for {items[0]} in {reverse[0]}:"
        else:
            header = f"for {', '.join(items) or '_'} in " + \
                (f"zip({', '.join(reverse)}):" if items else f"range({self.name(count)}):")
        self.block(header + _note((), node.loc),
                   functools.partial(self.iteration, body, state + items + invariants, state, stacks))

    def loop_variables(self, node: Node, begin: Sequence[Value], body: Graph) -> Tuple[List[str], List[str]]:
        """Write the state before the first iteration; gives its names and those of the stacks that are pushed to."""
        carried = node.attrs["carried"]
        state = self.operands(node.outputs[:carried])
        stacks = self.operands(node.outputs[carried:len(body.outputs)])
        if state:
            self.write(f"{', '.join(state)} = {', '.join(self.operands(begin))}"
                       + _note([v.type for v in node.outputs[:carried]], node.loc))
        self.write(*(f"{stack} = []" for stack in stacks))
        return state, stacks

    def iteration(self, body: Graph, arguments: Sequence[str], state: Sequence[str], stacks: Sequence[str]) -> None:
        self.names.update(zip(body.inputs, arguments))
        self.body(body)
        if not any(isinstance(v.type, Never) for v in body.outputs):
            results = self.operands(body.outputs)
            self.write(*(f"{stack}.append({item})" for stack, item in zip(stacks, results[len(state):])))
            if state:
                self.write(f"{', '.join(state)} = {', '.join(results[:len(state)])}")

    def raise_(self, node: Node) -> None:
        exception, message = node.attrs["exception"], node.attrs["message"]
        if getattr(builtins, exception.__name__, None) is not exception:
            self.imports.add(f"{exception.__module__}.{exception.__name__}")
        operands = ", ".join(self.operands(node.inputs))
        if callable(message):
            text = f"{message.__name__}({operands})"
        else:
            text = f"{message!r}.format({operands})" if operands else repr(message)
        self.write(f"raise {exception.__name__}({text}){_note((), node.loc)}")


def _text(op: OpDef, operands: Sequence[str], results: Sequence[str], types: Sequence[Type], type: Type, attrs: Any) -> str:
    if isinstance(op.numpy, str):
        return numpy_source(op, operands, results, types, type, attrs)
    return f"{op.name}({', '.join([*operands, *(f'{k}={attr_source(v)}' for k, v in attrs.items())])})"


def _is_plain(node: Node) -> bool:
    """Whether the call alone, without ``out=``, gives the same array: one call with a result that is not 0-d."""
    template = node.op.numpy
    return isinstance(template, str) and "\n" not in template and template.count("{out}") == 1 \
        and template.endswith(", out={out})") and node.outputs[0].ndim > 0


def _note(types: Sequence[Type], loc: Optional[Location]) -> str:
    """The comment at the end of a line: the types of its results and the user's line."""
    parts = [", ".join(map(str, types))] if types else []
    if loc is not None:
        parts.append(f"{os.path.basename(loc.file)}:{loc.line}")
    return f"  # {'  '.join(parts)}" if parts else ""


def _identifier(name: str) -> str:
    name = re.sub(r"\W", "_", name)
    return name if name.isidentifier() else f"v_{name}"


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _symbols(graph: Graph) -> Tuple[str, ...]:
    return tuple(name for v in graph.values() if isinstance(v.type, Tensor)
                 for n in v.type.shape if isinstance(n, Dim) for name in n.symbols)
