"""Evaluation of nodes: by the compiled function of their structure."""
from __future__ import annotations

from typing import Any, List, Sequence

from . import nodes
from .nodes import Node, settle
from .sites import show_builder
from .structures import Plan, structures


class Setting:
    """What evaluations go by.  backend: the name of one; None is that of `to_static`."""

    backend: Any = None


setting = Setting()


def evaluate_nodes(wanted: Sequence[Node]) -> None:
    """Give some nodes their results, by one program.

    Raises what NumPy raises, with the line that built the operation at the end of the traceback.
    """
    with nodes.lock:
        pending = [node for node in wanted if node.result is None]
        if not pending:
            return
        plan = Plan(pending)
        structure = structures.of(plan.key)
    try:
        results = structure.run(plan.leaves, setting.backend)
    except Exception as error:
        raise show_builder(error, structure, plan.nodes) from error.__cause__
    with nodes.lock:
        for node, result in zip(plan.results, results):
            settle(node, result)


def result_of(node: Node) -> Any:
    """The array or NumPy scalar that a node is, computed if need be."""
    if node.result is None:
        evaluate_nodes((node,))
    return node.result


def results_of(wanted: Sequence[Node]) -> List[Any]:
    """The results of some nodes, computed together."""
    evaluate_nodes(wanted)
    return [node.result for node in wanted]
