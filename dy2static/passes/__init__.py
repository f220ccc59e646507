"""Passes: graph in, graph out.  One public function per file; none changes its argument.

The pipelines here are those of every graph; each backend has one more, `backends.base.Backend.passes`.
"""
from __future__ import annotations

from .batching import batch_products
from .cleanup.cse import eliminate_common
from .cleanup.dce import eliminate_dead
from .cleanup.one_sided import inline_returning_sides
from .cleanup.simplify import simplify
from .differentiation.autodiff import Gradients, autodiff
from .differentiation.inner_autodiff import BY_OPERAND, requires_grad_of_each
from .differentiation.partition_joint import JointPartition, partition_joint
from .differentiation.requires_grad_flow import deciding_values, requires_grad_in_run
from .differentiation.segments import Segment, segments
from .extract import leading_from, with_read_inputs
from .fast_random import fast_random
from .marks import erase_marks
from .memory.rematerialize import Saving, mark_recomputed, schedule_late
from .pipelines import FAST_RANDOM, KEEPS, RECOMPUTES, Pass, Pipeline, Pipelines, Setting, named, run
from .pretranspose import pretranspose
from .weight_gradients import weight_gradients

_CLEAN = (Pass(simplify), Pass(eliminate_common), Pass(eliminate_dead))

#: The graphs of models that are saved.
CLEAN = Pipeline("clean", "graphs of models that are saved", _CLEAN)

#: The graph of a capture, before it is differentiated.
OPTIMIZE = Pipeline("optimize", "the graph of a capture, before it is differentiated", (
    Pass(inline_returning_sides), *_CLEAN, Pass(fast_random, FAST_RANDOM)))

#: The graph of gradients, forward included, to what the backward has to compute.
BACKWARD = Pipeline("backward", "a graph with its gradients, to what is left to compute in the backward", (
    Pass(mark_recomputed, RECOMPUTES, ("forward",)),
    Pass(leading_from, reads=("available",)),
    *_CLEAN,
    Pass(with_read_inputs, reads=("available",)),       # behind the clean-up, which may leave inputs that nothing reads
    Pass(schedule_late, RECOMPUTES, ("arriving",))))

#: What every backend does first with a graph that is about to be run.  The last two spend memory on speed, so not where memory is
#: to be saved.
TOGETHER = (
    Pass(erase_marks, reads=("saved",)), Pass(batch_products, KEEPS, ("saved",)), Pass(weight_gradients, KEEPS, ("saved",)))

__all__ = ["BACKWARD", "BY_OPERAND", "CLEAN", "Gradients", "JointPartition", "OPTIMIZE", "Pass", "Pipeline", "Pipelines",
           "Saving", "Segment", "Setting", "TOGETHER", "autodiff", "deciding_values", "mark_recomputed", "named",
           "partition_joint", "pretranspose", "requires_grad_in_run", "requires_grad_of_each", "run", "schedule_late", "segments"]
