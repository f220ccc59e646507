"""The backward programs of the FunctionNodes of a program, made when they are first needed."""
from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Dict, NamedTuple, Optional, Sequence, Set, Tuple

from .. import passes
from ..backends.base import Backend, Compilation, Executable
from ..backends.host.backend import NUMPY
from ..errors import RunError
from ..ir.graph import Graph, Value
from ..ir.types import Tensor
from ..runtime.clocks import Clock
from ..runtime.collection import uncollected
from ..runtime.profile import Profile
from ..runtime.progress import shown
from ..runtime.segment import ArenaPool, BackwardProgram, Expected, Segment, pool_of
from .keeping import Facts, KeptBackward, found, keep, part_of
from .nodes import SegmentPlan

#: How many answers for runs that went different ways are kept.
_KNOWN = 256


class Target(NamedTuple):
    """What a program is made for: the backend that runs it, and the profile whose clocks are in it."""

    backend: Backend
    profile: Optional[Profile] = None

    def clock(self, direction: str) -> Optional[Clock]:
        """The clock of one more function, if there is a profile."""
        return None if self.profile is None else self.profile.clock(direction)


@uncollected()
def compile_backward(segment: Segment, targets: Tuple[int, ...], given: Tuple[bool, ...], again: bool) -> BackwardProgram:
    """The gradients of a segment for some of its inputs, from gradients given for some of its outputs.

    again: also make it differentiable, as a segment of its own.
    Raises `RunError` where the function has changed in place what the gradients would read.
    """
    with shown("compiling a backward"), segment.counted:
        return BackwardCompilation(segment, targets, given, again).finish()


class Batch:
    """Backward programs that are made at the same time, so that the compiler of a backend runs once for all of them."""

    def __init__(self) -> None:
        self._begun: Dict[Tuple[Segment, Tuple], BackwardCompilation] = {}
        self._shared: Dict[Backend, Any] = {}

    def begin(self, segment: Segment, targets: Tuple[int, ...], given: Tuple[bool, ...], again: bool) -> Tuple[bool, ...]:
        """Begin to make what `compile_backward` gives, if the segment has none.  Returns which of the targets may get a gradient.

        Raises as `compile_backward`.
        """
        key = targets, given, again
        program = segment.backward.get(key)
        if program is not None:
            return program.connected
        if (segment, key) not in self._begun:
            target = segment.target
            if target.profile is None and target.backend not in self._shared:
                self._shared[target.backend] = target.backend.shared()
            with segment.counted:
                self._begun[segment, key] = BackwardCompilation(segment, *key, self._shared.get(target.backend))
        return self._begun[segment, key].connected

    def finish(self) -> None:
        """Give all segments their programs."""
        for (segment, key), compilation in self._begun.items():
            with segment.counted:
                segment.backward[key] = compilation.finish()


class BackwardCompilation:
    """`compile_backward` in two steps: a backend may work beside this process in between.

    shared: as of `Backend.start`.
    """

    def __init__(self, segment: Segment, targets: Tuple[int, ...], given: Tuple[bool, ...], again: bool, shared: Any = None):
        self._segment, target = segment, segment.target
        derive = functools.partial(_Derived, segment, targets, given, again)
        self._key = "" if again else part_of(segment.key, targets, given)
        self._kept: Optional[KeptBackward] = found(self._key, KeptBackward)
        if self._kept is not None:
            self._compilation = self._kept.text.start(lambda: derive().start(Target(NUMPY)))
        else:
            self._derived = derive()
            self._compilation = self._derived.start(target, shared)

    def ready(self) -> bool:
        """As `backends.base.Compilation.ready`."""
        return self._compilation.ready()

    @property
    def connected(self) -> Tuple[bool, ...]:
        """As `BackwardProgram.connected`."""
        return self._derived.connected if self._kept is None else self._kept.facts.connected

    def finish(self) -> BackwardProgram:
        """The program."""
        function = self._compilation.finish()
        if self._kept is not None:
            return _program(function, self._kept.facts)
        derived, dependencies = self._derived, self._derived.dependencies
        facts = derived.facts(dependencies)
        if dependencies.facts:
            return derived.program(function, facts, dependencies)
        keep(self._key, KeptBackward(self._compilation.text, facts))
        return derived.program(function, facts)


def _program(function: Executable, known: Facts, **more: Any) -> BackwardProgram:
    return BackwardProgram(function.call, known.operands, known.expected, known.connected, arenas_of(function),
                           source=function.source, origins=function.origins, conditions=known.conditions, bools=known.bools,
                           depends=known.depends, footprint=function.footprint, **more)


def _expected(kind: Any) -> Optional[Expected]:
    """The shape and dtype of an array on the CPU."""
    if type(kind) is not Tensor or kind.device:
        return None
    return tuple([n if isinstance(n, int) else str(n) for n in kind.shape]), kind.dtype.str


class _Derived:
    """The gradients of a segment as a graph, before it is compiled."""

    def __init__(self, segment: Segment, targets: Tuple[int, ...], given: Tuple[bool, ...], again: bool):
        self.segment, self.targets, self.plan = segment, targets, segment.plan
        self.given = [j for j, is_given in enumerate(given) if is_given]
        if self.plan.spent is not None and not set(self.given).issubset(self.plan.intact):
            raise RunError("the compiled function has taken these gradients itself, and changed the arrays that they read since",
                           self.plan.spent, "call `backward` or `chainer.grad` inside the function, or before this line")
        self.joint = _Joint(self.plan, self.plan.gradients([self.plan.targets[i] for i in targets], self.given))
        self.following = self.joint.following() if again and self.joint.graph.outputs else None
        self.extras = self.joint.extras(self.following)
        self.graph = self.joint.backward(self.following, self.extras)

    @property
    def connected(self) -> Tuple[bool, ...]:
        """As `BackwardProgram.connected`."""
        return tuple([c is not False for c in self.joint.gradients.connected])

    def start(self, target: Target, shared: Any = None) -> Compilation:
        """Begin to compile it."""
        more = {} if shared is None else {"shared": shared}
        return target.backend.start(
            self.graph, name="backward", escaping=set(self.graph.outputs[:len(self.joint.graph.outputs)]),
            recomputes=self.plan.recompute not in ("none", "auto"), clock=target.clock("backward"), **more)

    @property
    def dependencies(self) -> "_Dependencies":
        """What its results are computed from."""
        return _Dependencies(self.joint.graph, self.joint.count, self.plan, self.targets, self.given)

    def facts(self, dependencies: "_Dependencies") -> Facts:
        """What is known of it besides."""
        joint, origins = self.joint, self.joint.origins(self.extras)
        conditions, connected = joint.gradients.conditions, joint.gradients.connected
        inputs = self.graph.inputs
        return Facts(tuple([origins[v] for v in inputs]), tuple([_expected(v.type) for v in inputs]), self.connected,
                     tuple([(i, joint.count + conditions.index(c)) for i, c in enumerate(connected) if isinstance(c, Value)]),
                     len(conditions), dependencies.depends)

    def program(self, function: Executable, facts: Facts, dependencies: "Optional[_Dependencies]" = None) -> BackwardProgram:
        """The program around its function.  dependencies: if a run has to tell some of them."""
        following, segment, origins = self.following, self.segment, self.joint.origins(self.extras)
        return _program(
            function, facts, again=None if following is None else Segment(f"{segment.name}.backward", following, segment.target),
            held=() if following is None else tuple([origins[v] for v in following.held]),
            facts=() if dependencies is None else dependencies.facts, depends_in_run=dependencies)


@dataclass(frozen=True)
class _Joint:
    """The graph of a segment with its gradients, and what is known of its values."""

    plan: SegmentPlan
    gradients: passes.Gradients

    @property
    def graph(self) -> Graph:
        return self.gradients.graph

    @property
    def arriving(self) -> Tuple[Value, ...]:
        """The gradients that it is given."""
        return self.graph.inputs[len(self.plan.graph.inputs):]

    @property
    def count(self) -> int:
        """How many gradients it gives; the results behind these tell whether some exist."""
        return len(self.graph.outputs) - len(self.gradients.conditions)

    def following(self) -> SegmentPlan:
        """The plan of the segment that the backward is itself, for gradients of the gradients."""
        plan, graph = self.plan, self.graph
        targets = [*plan.targets, *range(len(plan.graph.inputs), len(graph.inputs))]
        return SegmentPlan(graph, targets, plan.extents, plan.held, plan.recompute, plan.fixed)

    def extras(self, following: Optional[SegmentPlan]) -> Tuple[Value, ...]:
        """What the backward gives behind its gradients, for the segment that follows."""
        there = () if following is None else following.held
        return tuple(v for v in there if v not in self.plan.held and v not in self.arriving)

    def backward(self, following: Optional[SegmentPlan], extras: Tuple[Value, ...]) -> Graph:
        """What the backward has to compute."""
        plan = self.plan
        wanted = (self.graph if following is None else following.graph).with_(outputs=self.graph.outputs + extras)
        graph = passes.run(passes.BACKWARD, wanted, passes.Setting(
            recomputes=plan.recomputes, available=(*plan.held, *self.arriving), arriving=self.arriving,
            forward=plan.graph))
        return graph.with_(inputs=(*graph.inputs, *plan.extents.values()))

    def origins(self, extras: Sequence[Value]) -> Dict[Value, Tuple[str, int]]:
        """Where each value is stored when the backward runs."""
        return {**{v: ("given", i) for i, v in enumerate(self.arriving)}, **{v: ("held", k) for k, v in enumerate(self.plan.held)},
                **{v: ("extra", k) for k, v in enumerate(extras)}}


class _Dependencies:
    """What the gradients of a segment are computed from, as far as a run has to tell; see `BackwardProgram.depends`.

    facts: the indexes of the held values that the answer depends on.
    """

    def __init__(self, joint: Graph, count: int, plan: SegmentPlan, targets: Sequence[int], outputs: Sequence[int]):
        self.joint, self.gradients = joint, joint.outputs[:count]
        self.parts = [plan.graph.inputs[i] for i in plan.targets], joint.inputs[len(plan.graph.inputs):]
        self.targets, self.outputs = tuple(targets), {plan.graph.outputs[j] for j in outputs}
        self.sources, self.wanted = [v for part in self.parts for v in part], self.outputs.union(self.gradients)
        possible = certain = passes.requires_grad_of_each(joint.nodes, self.sources, self.wanted, False)
        if any(node.op.name in passes.BY_OPERAND for node in joint.nodes):
            certain = passes.requires_grad_of_each(joint.nodes, self.sources, self.wanted, True)
        self.depends, self.reached = self._tables(possible)
        self.facts: Tuple[int, ...] = ()
        if (self.depends, self.reached) != self._tables(certain):
            self.deciding = passes.deciding_values(joint)
            self.facts = tuple(k for k, v in enumerate(plan.held) if v in self.deciding)
        self.values = [plan.held[k] for k in self.facts]
        self.known: Dict[Tuple, Tuple] = {}

    def __call__(self, *facts: Any) -> Tuple:
        """The same for one run, and per target whether what is given depends on it.

        facts: the truth of what decides, and how often loops ran; of stacks, tuples of these.
        """
        if facts not in self.known:
            if len(self.known) == _KNOWN:
                self.known.clear()
            told = dict(zip(self.values, facts))
            self.known[facts] = self._tables(
                passes.requires_grad_in_run(self.joint, self.sources, self.wanted, told, self.deciding))
        return self.known[facts]

    def _tables(self, marked: Sequence[Set[Value]]) -> Tuple:
        count = len(self.parts[0])
        sides = marked[:count], marked[count:]
        depends = tuple(tuple(tuple(i for i, found in enumerate(side) if v in found) for side in sides)
                        for v in self.gradients)
        return depends, tuple(not self.outputs.isdisjoint(marked[i]) for i in self.targets)


def arenas_of(function: Executable) -> Optional[ArenaPool]:
    """A pool of arenas for a function; None if it needs none."""
    return pool_of(function.make_arena, function.footprint.arena, function.place)
