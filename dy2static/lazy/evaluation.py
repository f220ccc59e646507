"""Evaluation of nodes: by the compiled function of their structure."""
from __future__ import annotations

import contextlib
import contextvars
import warnings
from typing import Any, Callable, Iterator, Sequence, Set

from .. import config
from ..errors import CaptureError, FallbackWarning
from ..heap.locations import caller_depth
from ..options import Options
from . import nodes
from .direct import compute
from .nodes import Node, settle
from .sites import show_builder
from .structures import Plan, structures

#: Expressions of arrays with no more elements are computed without a program: to look for it takes longer than NumPy's calls.
SMALL = 2048

_ANY = float("inf")

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
    if not compute_small(wanted):
        _evaluate_large(wanted)


def _evaluate_large(wanted: Sequence[Node]) -> None:
    with nodes.lock:
        pending = [node for node in dict.fromkeys(wanted) if node.result is None]
        if not pending:
            return
        plan = Plan(pending)
        structure = structures.of(plan.key)
        if not structure.pays(plan.leaves) and may_be_direct() and not plan.is_traced():
            counted, plan = structure.estimate(plan.leaves), None       # the plan holds values that nobody needs after a while
    if plan is None:
        structure.count(_computed(pending) - counted)
        return
    try:
        results = structure.run(plan.leaves, chosen_backend.get())
    except CaptureError as failed:
        if plan.is_traced():
            raise
        plan = None
        compute(pending, _ANY)                          # which may fail itself: then there is nothing to be told
        tell("a lazy expression is computed by NumPy", failed.args[0])
        return
    except Exception as error:
        raise show_builder(error, structure, plan.nodes) from error.__cause__
    with nodes.lock:
        for node, result in zip(plan.results, results):
            settle(node, result)


def _computed(pending: Sequence[Node]) -> int:
    """Compute nodes without a program; gives how many elements all results have."""
    elements = 0

    def store(node: Node, value: Any) -> None:
        nonlocal elements
        elements += value.size
        settle(node, value)
    compute(pending, _ANY, store)
    return elements


def compute_small(wanted: Sequence[Node], store: Callable[[Node, Any], None] = settle) -> bool:
    """Compute nodes without a program if they and what they need are small; says whether they were: see `compute`."""
    return may_be_direct() and compute(wanted, SMALL, store)


def may_be_direct() -> bool:
    """Whether NumPy may compute expressions without a program: unless one is asked for."""
    return (chosen_backend.get() or config.BACKEND.value) != "c" and not _is_strict.get()


def result_of(node: Node) -> Any:
    """The array or NumPy scalar that a node is, computed if need be."""
    if node.result is None and not compute_small((node,)):
        _evaluate_large((node,))
    return node.result
