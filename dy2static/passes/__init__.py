"""Passes: graph in, graph out.  One public function per file; none changes its argument."""
from __future__ import annotations

from typing import Callable, Sequence

from .. import config
from ..ir.graph import Graph
from ..ir.verify import verify
from .accumulation import accumulate_behind
from .autodiff import Gradients, autodiff
from .batching import batch_products
from .cse import eliminate_common
from .dead import eliminate_dead
from .fast_random import fast_random
from .marks import deciding_values, marked_in_run
from .recompute import Saving, late, marked_again
from .segments import Segment, segments
from .simplify import simplify
from .split import Split, split
from .turning import turn_matrices
from .within import BY_OPERAND, required_of_each

Pass = Callable[[Graph], Graph]

#: The clean-up that every graph gets, forward and backward.
CLEAN: Sequence[Pass] = (simplify, eliminate_common, eliminate_dead)

__all__ = ["BY_OPERAND", "CLEAN", "Gradients", "Saving", "Segment", "Split", "accumulate_behind", "autodiff",
           "batch_products", "deciding_values", "eliminate_common", "eliminate_dead", "fast_random", "late", "marked_again",
           "marked_in_run", "required_of_each", "run", "segments", "simplify", "split", "turn_matrices"]


def run(passes: Sequence[Pass], graph: Graph) -> Graph:
    """The graph after these passes, in order; verified after each where `config.VERIFY` is on."""
    for apply in passes:
        graph = apply(graph)
        if config.VERIFY.value:
            verify(graph)
    return graph
