"""Evaluation of nodes: by the compiled function of their structure."""
from __future__ import annotations

import contextlib
import contextvars
import warnings
from typing import Any, Iterator, Sequence, Set

from ..errors import CaptureError, FallbackWarning
from ..heap.locations import caller_depth
from ..options import Options
from . import nodes
from .nodes import Node, settle
from .sites import show_builder
from .structures import Plan, structures

#: The backend of evaluations; None is that of `to_static`.
chosen_backend: "contextvars.ContextVar[Any]" = contextvars.ContextVar("backend", default=None)

_is_strict: "contextvars.ContextVar[bool]" = contextvars.ContextVar("strict", default=False)

_told: Set[str] = set()


@contextlib.contextmanager
def backend(name: str) -> Iterator[None]:
    """In a ``with`` block, compute expressions on a backend: ``"numpy"``, ``"c"``, or ``"auto"`` (NumPy at first, then C).

    The setting counts where an expression is computed, not where it was built.  Raises `SignatureError` for an unknown backend.
    """
    before = chosen_backend.set(Options(backend=name).backend)
    try:
        yield
    finally:
        chosen_backend.reset(before)


@contextlib.contextmanager
def strict() -> Iterator[None]:
    """In a ``with`` block, operations that cannot be part of an expression or a program raise `CaptureError`.

    Without it, NumPy computes them, with one warning.
    """
    before = _is_strict.set(True)
    try:
        yield
    finally:
        _is_strict.reset(before)


def tell(what: str, reason: str) -> None:
    """Say once that something is computed by NumPy.  Raises `CaptureError` under `strict`."""
    if _is_strict.get():
        raise CaptureError(f"{what}: {reason}", hint="outside of lazy.strict() NumPy computes it")
    if what not in _told:
        _told.add(what)
        warnings.warn(f"{what}: {reason}", FallbackWarning, stacklevel=caller_depth())


def evaluate_nodes(wanted: Sequence[Node]) -> None:
    """Give some nodes their results, by one program.

    Raises what NumPy raises, with the line that built the operation at the end of the traceback.
    """
    with nodes.lock:
        pending = [node for node in dict.fromkeys(wanted) if node.result is None]
        if not pending:
            return
        plan = Plan(pending)
        structure = structures.of(plan.key)
    try:
        results = structure.run(plan.leaves, chosen_backend.get(), tell)
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
