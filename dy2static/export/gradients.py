"""A program that also gives the gradients of one of its results."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Sequence

from .. import ops, passes
from ..errors import ExportError
from ..ir.building import Builder, building
from ..ir.graph import Graph, Node, Value
from ..ir.types import Tensor
from .program import Argument, ExportedProgram, Result, unique


def with_gradients(program: ExportedProgram, targets: Sequence[str]) -> ExportedProgram:
    """The program with the gradients of its first result behind its results, as ``backward`` of that Variable gives them.

    targets: names of parameters and arguments of floats; the gradient of each is a result ``grad/<name>`` of its shape and dtype.
    A result of more than one element needs a gradient to begin with: one more argument, ``grad_output``.
    One that Chainer leaves None is None in ``fixed``; one that is None in some runs only is zeros in these.

    Raises `ExportError` where the first result has no gradient.
    """
    first = program.results[0]
    if not isinstance(first.value.type, Tensor) or first.value.dtype.kind != "f":
        raise ExportError(f"{first.name} of {program.name} is not an array of floats: it has no gradient", None,
                          "give the loss back first")
    inputs = [part.name for part in program.inputs]
    for name in targets:
        if name not in inputs:
            raise ExportError(f"{program.name} has no argument or parameter {name!r}", None, f"there are {', '.join(inputs)}")
    numbers = [inputs.index(name) for name in targets]
    made = passes.autodiff(program.graph, numbers, [0])
    seed, nodes, arguments = made.graph.inputs[-1], made.graph.nodes, program.arguments
    found = dict(zip([name for name, present in zip(targets, made.connected) if present is not False], made.graph.outputs))
    if first.value.type.size == 1:
        nodes = (*_ones(seed), *nodes)
    else:
        arguments = (*arguments, Argument(seed, unique(["grad_output"], set(inputs))[0]))
    given = tuple([part.value for part in (*arguments, *program.parameters)])
    graph = passes.run(passes.CLEAN, Graph(given, (*program.graph.outputs, *found.values()), nodes, program.name))
    names = [*[result.name for result in program.results], *[f"grad/{name}" for name in found]]
    fixed: Dict[str, Any] = {f"grad/{name}": None for name in targets if name not in found}
    return replace(program, graph=graph, arguments=arguments, results=tuple(map(Result, graph.outputs, names)),
                   fixed={**program.fixed, **fixed})


def _ones(seed: Value) -> List[Node]:
    """Nodes that make the gradient to begin with."""
    builder = Builder("seed")
    with building(builder):
        made = ops.full(shape=seed.shape, value=1, dtype=seed.dtype)
    return [replace(node, outputs=tuple([seed if v is made else v for v in node.outputs])) for node in builder.nodes]
