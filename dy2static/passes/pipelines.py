"""Pipelines: which passes a graph goes through, in which order and when, as data that can be printed and followed."""
from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Callable, NamedTuple, Sequence, Tuple

from .. import config
from ..ir.graph import Graph, Value
from ..ir.verify import verify

log = logging.getLogger("dy2static")


class Setting(NamedTuple):
    """What passes may ask about the graph that they are applied to.

    rng: as the option of `to_static`.  recomputes: whether its backward computes again what was not kept.
    saved: values besides its outputs that are read afterwards.  available: of a backward, the values that are there when it
    begins; arriving: the gradients among these.  forward: the graph that it is the backward of.  layout: that of its images, if
    the estimate is not to choose one.
    """

    rng: str = "eager"
    recomputes: bool = False
    saved: Tuple[Value, ...] = ()
    available: Tuple[Value, ...] = ()
    arriving: Tuple[Value, ...] = ()
    forward: Graph = Graph((), (), ())
    layout: str = ""


#: For passes that ask nothing.
PLAIN = Setting()


class When(NamedTuple):
    """When a pass is applied: in words, and as a test of the `Setting`."""

    words: str
    holds: Callable[[Setting], bool]


ALWAYS = When("always", lambda setting: True)
FAST_RANDOM = When('rng="fast"', lambda setting: setting.rng == "fast")
RECOMPUTES = When("recompute", lambda setting: setting.recomputes)
KEEPS = When("no recompute", lambda setting: not setting.recomputes)


@dataclass(frozen=True)
class Pass:
    """One rewrite of a graph: ``rewrite(graph, *fields of the Setting)`` gives a new graph.

    reads: the names of those fields.  is_verified: whether its result is a graph that `ir.verify` knows all rules for.
    """

    rewrite: Callable[..., Graph]
    when: When = ALWAYS
    reads: Tuple[str, ...] = ()
    is_verified: bool = True

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.rewrite.__name__

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (self.rewrite.__doc__ or "").strip().partition("\n")[0]

    def __call__(self, graph: Graph, setting: Setting = PLAIN) -> Graph:
        return self.rewrite(graph, *[getattr(setting, name) for name in self.reads])


@dataclass(frozen=True)
class Pipeline:
    """Passes in their order, with a name and what they are for."""

    name: str
    purpose: str
    passes: Tuple[Pass, ...]

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.purpose}"]
        width = max([len(step.name) for step in self.passes], default=0)
        return "\n".join([*lines, *[f"  {step.name:<{width}}  {step.summary}"
                                    f"{'' if step.when is ALWAYS else f'  [{step.when.words}]'}" for step in self.passes]])


class Pipelines(Tuple[Pipeline, ...]):
    """What `dy2static.pipelines` gives: printed, a line for each pass."""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self))


def run(pipeline: Pipeline, graph: Graph, setting: Setting = PLAIN) -> Graph:
    """The graph after the passes of a pipeline; verified after each where `config.VERIFY` is on.

    Raises what `ir.verify` raises.
    """
    steps = [step for step in pipeline.passes if step.when.holds(setting)]
    for step in steps:
        before, graph = graph, step(graph, setting)
        if config.VERIFY.value and step.is_verified:
            verify(graph)
        levels = config.PASS_LEVEL.value.split(",")
        if not {"all", step.name, pipeline.name}.isdisjoint(levels) or step is steps[-1] and "last" in levels:
            _tell(pipeline, step, before, graph)
    return graph


def _tell(pipeline: Pipeline, step: Pass, before: Graph, after: Graph) -> None:
    """Log the graph after a pass."""
    text = "(no change)" if after is before or str(after) == str(before) else str(after)
    log.warning("After pass '%s' of '%s', graph %s:\n%s", step.name, pipeline.name, after.name, text)


def named(pipelines: Sequence[Pipeline]) -> Tuple[str, ...]:
    """The names that a level may have: those of the pipelines, and of the passes in them."""
    return tuple(dict.fromkeys([*[each.name for each in pipelines], *[step.name for each in pipelines for step in each.passes]]))
