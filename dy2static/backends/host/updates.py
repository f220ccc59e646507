"""Updates as calls of NumPy that write into the arrays themselves."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Collection, Sequence, Tuple

from ...ir.graph import Graph
from ...passes.in_place import Update
from ...runtime.segment import Footprint, pool_of
from ...runtime.traceback import show_user_line
from ..updates import UpdateCall, alike, each, form_and_shape
from .emit import emit
from .function import NumpyFunction
from .library import NUMPY_CALLS, Library


@dataclass(frozen=True, eq=False)
class UpdateText:
    """The function of some updates.  operands: how many each of them has.  members: which updates these are."""

    function: NumpyFunction
    operands: int
    members: Tuple[int, ...]

    def call(self) -> UpdateCall:
        """The function, compiled by Python."""
        return UpdateCall(each(bound(self.function), self.operands), self.members, self.function.source, _footprint(self.function))


def update_texts(updates: Sequence[Update], numbers: Collection[int],
                 library: Library = NUMPY_CALLS) -> Tuple[UpdateText, ...]:
    """The functions of some updates: one for those of one form and shape."""
    chosen = list(numbers)
    texts = []
    for members in alike([updates[k] for k in chosen], form_and_shape):
        update = updates[chosen[members[0]]]
        function = emit_update(update.graph, update.targets, library.placed(update.graph))
        texts.append(UpdateText(function, len(update.graph.inputs), tuple([chosen[k] for k in members])))
    return tuple(texts)


def _footprint(function: NumpyFunction) -> Footprint:
    return Footprint(function.plan.nbytes, 0 if function.work_plan is None else function.work_plan.nbytes)


def emit_update(graph: Graph, targets: Sequence[int], library: Library = NUMPY_CALLS) -> NumpyFunction:
    """The function of an update: what it gives is in the memory of these inputs when it is over."""
    into = {value: graph.inputs[k] for value, k in zip(graph.outputs, targets)}
    return emit(graph, name=graph.name, escaping=graph.outputs, into=into, library=library)


def bound(function: NumpyFunction) -> Callable[..., Any]:
    """The function of an update, which gets its working memory itself."""
    call, origins = function.bind(), function.origins
    pool = pool_of(function.make_arena if function.slots else None, function.plan.nbytes, function.library.place)

    def run(*operands: Any) -> Any:
        arena = None if pool is None else pool.take()
        try:
            results = call(arena, *operands)
        except Exception as error:
            raise show_user_line(error, call.__code__, origins)     # noqa: B904  the same error, with one more entry
        if pool is not None:
            pool.give(arena)
        return results
    return run
