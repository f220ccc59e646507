"""The entry of a program: guards and binding in, the forward in the middle, nodes, writes and results out."""
from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import chainer

from ..ir.graph import Value
from ..lowering.opaque import DRAWS, effects_before, follows_sizes, relied_on
from ..native import kept
from ..pyast.loader import compile_text
from ..record.builds import Build, Number
from ..record.inputs import Input, NumberInput
from ..record.outcome import End, Outcome
from ..record.text import commas
from ..record.variables import EscapingVariable
from ..record.writes import Write, WriteArray, texts_of
from ..runtime import node, stores
from ..runtime.node import connect_nowhere, connect_some
from ..runtime.observed import Surprise
from ..runtime.partial_failure import FailurePlan, SegmentWiring, connect_after_failure
from ..runtime.raised_errors import undone
from ..runtime.random_states import random_states, set_random_states
from ..runtime.segment import ArenaLease
from ..runtime.traceback import show_user_line
from .guards import Guards
from .in_place import Place
from .numbers import computed_together
from .updates import MOST_TRIES, does_more, updates

_serial = itertools.count()


class SegmentUse:
    """A segment, and how it is wired: see `wiring.Use`."""

    def __init__(self, segment: Any, inputs: Sequence[Tuple], held: Sequence[Tuple], outputs: Sequence[Tuple]):
        self.segment, self.inputs, self.held, self.outputs = segment, tuple(inputs), tuple(held), tuple(outputs)


class UpdateUses(NamedTuple):
    """The functions that change arrays in place, each with the places of its operands, and the writes that they do.

    settle: what the entry calls at its end, whatever happens, because the forward leaves something to these functions.
    """

    calls: Tuple[Tuple[Any, Tuple[Place, ...]], ...] = ()
    writes: FrozenSet[Write] = frozenset()
    settle: Optional[Callable[[], None]] = None


class Entry(Guards):
    """Writes the entry function of one outcome.

    forward: the compiled forward, ``forward(arena, *inputs) -> (outputs..., saved...)``; pool: its arenas or None.
    uses: the segments of a call that succeeds, which leaves the Variables ``left`` behind; rescue: those of one that fails.
    results: what the forward calls each of its results.  origins: the user's place for each of its lines.
    in_place: what is done in the arrays themselves.
    """

    def __init__(self, outcome: Outcome, forward: Any, pool: Any, uses: Sequence[SegmentUse], rescue: Sequence[SegmentUse],
                 left: Set[EscapingVariable], results: Sequence[str], origins: Mapping[int, Any], in_place: UpdateUses):
        super().__init__(outcome)
        self.uses, self.rescue, self.left = uses, rescue, left
        self.in_place = in_place
        self.results, self.keep_arena = tuple(results), bool(uses or rescue)
        self.forward, self.pool = forward, pool
        self.namespace.update({
            "forward": forward, "pool": pool, "ArenaLease": ArenaLease, "make_variable": node.make_variable,
            "make_variables": node.make_variables, "store_gradients": node.store_gradients, "write_arrays": stores.write_arrays,
            "same_items": stores.same_items, "store_items": stores.store_items, "connect": node.connect,
            "connect_nowhere": connect_nowhere, "connect_some": connect_some, "connect_after_failure": connect_after_failure,
            "show_user_line": show_user_line, "undone": undone, "origins": origins, "Surprise": Surprise,
            "random_states": random_states, "set_random_states": set_random_states})
        self.values: Dict[Value, str] = {}

    # --- the whole --------------------------------------------------------------------------------------------------

    def generate(self) -> str:
        """The text of the entry function."""
        checked = self.guards() + self._computed_numbers()
        self.lines = []
        arguments = [self._operand(i) for i in self.outcome.inputs]
        self._forward(arguments)
        for end in self.outcome.ends if len(self.outcome.ends) > 1 else ():     # all ends know the names of paths
            for source in [w.container for w in end.writes] + end.sources():
                self.path(source)
        body = self.lines
        for end in self.outcome.ends:
            tests = " and ".join([f"{'' if side else 'not '}{self.values[v]}" for v, side in end.decisions])
            inner = self._end(end)
            body += inner if end is self.outcome.ends[-1] else [f"if {tests}:"] + [f"    {line}" for line in inner]
        if self.in_place.settle is not None:
            body = ["try:", *[f"    {line}" for line in body], "finally:", f"    {self.bound(self.in_place.settle, 'settle')}()"]
        self.ask_table(checked)
        body[:0] = ["try:", *[f"    {line}" for line in checked], "except GUARD_ERRORS:", "    return MISS"]
        return f"def call(args, kwargs, tries={MOST_TRIES}):\n" + "".join(f"    {line}\n" for line in body)

    def _end(self, end: End) -> List[str]:
        """The lines of one end: its Variables, its writes and its result."""
        self.lines = []
        if end.result is None:
            return ["raise AssertionError"]
        self._variables(end)
        self.lines += updates(self, end)
        self._writes(end)
        if self.pool is not None and not self.keep_arena:
            self.lines.append("pool.give(arena)")
        result = self.expression(end.result)
        return [*self.lines, f"return {result}"]

    def _computed_numbers(self) -> List[str]:
        """Lines that compute the expressions over numbers: before anything happens, because they may raise."""
        texts = [item.expression for item in self.outcome.inputs if isinstance(item, NumberInput)]
        texts += [part.expression for end in self.outcome.ends for part in end.parts() if isinstance(part, Number)]
        self.computed = {text: f"computed{i}" for i, text in enumerate(dict.fromkeys(texts)) if not text.isidentifier()}
        return computed_together(self.computed, self.outcome)

    def _operand(self, item: Input) -> str:
        text = self.values[item.value] = item.text(self)
        return text

    def _forward(self, arguments: Sequence[str]) -> None:
        arena = "None"
        if self.pool is not None:
            if self.keep_arena:
                self.lines.append("lease = ArenaLease(pool)")
                arena = "lease.arena"
            else:
                self.lines.append("arena = pool.take()")
                arena = "arena"
        names = [f"r{k}" for k in range(len(self.results))]
        call = f"forward({', '.join([arena, *arguments])})"
        call = f"{', '.join(names)}{',' if len(names) == 1 else ''} = {call}" if names else call
        may_miss, draws = self._surprises()
        self.lines += ["states = random_states()"] * draws + ["try:", f"    {call}"]
        if may_miss:
            self.lines += ["except Surprise:", *["    set_random_states(states)"] * draws, "    return MISS"]
        self.lines.append("except BaseException as error:")
        if any(record.early and record.connected for record in self.outcome.variables):
            plan = self.constant(self._failure_plan(), "failure_plan")
            lease = "lease" if arena == "lease.arena" else "None"
            self.lines.append(f"    connect_after_failure(error, locals(), {plan}, {lease})")
        error = "undone(error)" if any(end.writes for end in self.outcome.ends) and not does_more(self.outcome.graph) else "error"
        self.lines.append(f"    raise show_user_line({error}, forward.__code__, origins)")
        for k, value in enumerate(self.outcome.graph.outputs):
            self.values.setdefault(value, f"r{k}")

    def _surprises(self) -> Tuple[bool, bool]:
        """Whether a call may be made again after a run has met something else than was relied on, and whether it draws before."""
        graph = self.outcome.graph
        if not relied_on(graph):
            return False, False
        effects = effects_before(graph)
        draws = bool(effects) and effects <= DRAWS and follows_sizes(graph)
        return draws or not effects, draws

    def _failure_plan(self) -> FailurePlan:
        """What to do with Variables that a host call has seen when a later node fails."""
        position = {value: k for k, value in reversed(list(enumerate(self.outcome.graph.outputs)))}
        records = self.outcome.variables
        segments = []
        for use in self.rescue:
            inputs = [("name", self.path(self.outcome.inputs[item[1]].source)) if item[0] == "input" else
                      ("made", tuple(item)) for item in use.inputs]
            held = [("result", k) if kind == "result" else
                    ("node", self.path(self.outcome.inputs[k].source)) if kind == "node" else
                    ("name", self.values[self.outcome.inputs[k].value]) for kind, k in use.held]
            outputs = []
            for output in use.outputs:
                if output[0] == "hidden":
                    outputs.append((output[2], (), output[:2]))
                else:
                    record = records[output[1]]
                    outputs.append((position[record.value], tuple([position[v] for v in record.early]), output))
            segments.append(SegmentWiring(use.segment, tuple(inputs), tuple(held), tuple(outputs)))
        nowhere = [position[v] for k in range(len(records)) if self._belongs_nowhere(k, self.rescue) for v in records[k].early]
        entering = dict.fromkeys(item for use in self.rescue for item in use.inputs if item[0] == "variable")
        leaves = [(item, position[record.value], tuple([position[v] for v in record.early]))
                  for item in entering for record in [records[item[1]]] if not record.connected]
        return FailurePlan(self.forward.__code__, self.results, tuple(segments), tuple(nowhere), tuple(leaves))

    def _variables(self, end: End) -> None:
        self.variable_names = {}
        records = self.outcome.variables
        left = self.left.intersection(end.variables)
        wanted, uses = self._needed({("variable", k) for k, record in enumerate(records) if record in left})
        present = {k for kind, k in wanted if kind == "variable"}
        optional = {("variable", k) for k in present if records[k] not in end.variables}
        plain = [k for k in sorted(present) if not records[k].early and ("variable", k) not in optional]
        if len(plain) > 1:
            self._make_together([records[k] for k in plain], [f"v{k}" for k in plain])
        for k in sorted(present):
            self.variable_names[id(records[k])] = f"v{k}"
            if len(plain) > 1 and k in plain:
                continue
            text = self.values[records[k].value]
            made = f"make_variable({text}, {records[k].requires_grad})"
            for early in [self.values[v] for v in records[k].early]:
                made = early if len(self.outcome.ends) == 1 else f"{early} if {early} is not None else {made}"
            self.lines.append(f"v{k} = {made}{f' if {text} is not None else None' if ('variable', k) in optional else ''}")
        for use in uses:
            self._connect(use, wanted, optional)
        self.lines += [f"connect_nowhere(v{k})" for k in sorted(present) if self._belongs_nowhere(k, self.uses)]

    def _make_together(self, records: Sequence[EscapingVariable], names: Sequence[str]) -> None:
        required = self.constant(tuple([record.requires_grad for record in records]), "required")
        arrays = ", ".join([self.values[record.value] for record in records])
        self.lines.append(f"{', '.join(names)} = make_variables({required}, {arrays})")

    def _belongs_nowhere(self, k: int, uses: Sequence[SegmentUse]) -> bool:
        """Whether an escaping Variable is no leaf though no segment makes it."""
        record = self.outcome.variables[k]
        return record.connected and record.requires_grad and record.value.type.dtype.kind == "f" and not any(
            output[:2] == ("variable", k) for use in uses for output in use.outputs)

    def _needed(self, wanted: Set[Tuple]) -> Tuple[Set[Tuple], List[SegmentUse]]:
        """The Variables, also hidden ones, and the segments that these Variables need, themselves included."""
        uses: List[SegmentUse] = []
        for use in reversed(self.uses):
            if not wanted.isdisjoint(output[:2] for output in use.outputs):
                uses.insert(0, use)
                wanted.update(item for item in use.inputs if item[0] != "input")
        return wanted, uses

    def _connect(self, use: SegmentUse, wanted: Set[Tuple], optional: Set[Tuple]) -> None:
        inputs = [self._segment_input(item) for item in use.inputs]
        held = [self._held(item) for item in use.held]
        variables = []
        for output in use.outputs:
            if output[:2] not in wanted:
                variables.append("None")
            elif output[0] == "variable":
                variables.append(f"v{output[1]}")
            else:
                missing = f" if r{output[2]} is not None else None" if len(self.outcome.ends) > 1 else ""
                self.lines.append(f"h{output[1]} = make_variable(r{output[2]}, True){missing}")
                variables.append(f"h{output[1]}")
                optional |= {output[:2]} if missing else set()
        segment = self.constant(use.segment, "segment")
        lease = "lease" if self.keep_arena and self.pool is not None else "None"
        parts = [*use.inputs, *(output[:2] for output in use.outputs)]
        early = any(output[0] == "variable" and self.outcome.variables[output[1]].early for output in use.outputs)
        connect = "connect_some" if early or "None" in variables or not optional.isdisjoint(parts) else "connect"
        self.lines.append(f"{connect}({segment}, ({commas(inputs)}), ({commas(variables)}), ({commas(held)}), "
                          f"{lease}, {bool(chainer.config.lazy_grad_sum)})")

    def _segment_input(self, item: Tuple) -> str:
        if item[0] == "variable":
            return f"v{item[1]}"
        if item[0] == "hidden":
            return f"h{item[1]}"
        return self.path(self.outcome.inputs[item[1]].source)

    def _held(self, item: Tuple) -> str:
        kind, index = item
        if kind == "node":
            variable = self.path(self.outcome.inputs[index].source)
            self.lines.append(f"{variable}._node._data = {self.arrays[self.outcome.inputs[index].source]}")
            return f"{variable}._node"
        if kind == "input":
            return self.values[self.outcome.inputs[index].value]
        return f"r{index}"

    # --- results and writes -------------------------------------------------------------------------------------------

    def _writes(self, end: End) -> None:
        self.made: Dict[int, str] = {}
        self.shared = self._shared_builds(end)
        first = next((k for k, write in enumerate(end.writes) if isinstance(write, WriteArray)), len(end.writes))
        self.lines += texts_of(end.writes[:first], self)
        for call, places in self.in_place.calls:                # before other writes: these may be into what they read
            operands = [self.values[self.outcome.inputs[k].value] if kind == "input" else f"r{k}" for kind, k in places]
            self.lines.append(f"{self.bound(call, 'update')}({', '.join(operands)})")
        self.lines += texts_of([write for write in end.writes[first:] if write not in self.in_place.writes], self)

    def _shared_builds(self, end: End) -> set:
        seen, shared = set(), set()
        for build in end.parts():
            (shared if id(build) in seen else seen).add(id(build))
        return shared

    def expression(self, build: Build) -> str:
        """Text that makes the object; objects that are used twice get a name."""
        if id(build) in self.made:
            return self.made[id(build)]
        text = build.text(self)
        if id(build) in self.shared and build.is_object:
            name = f"made{len(self.made)}"
            self.lines.append(f"{name} = {text}")
            self.made[id(build)] = text = name
        return text


def compile_entry(entry: Entry) -> Tuple[Any, str]:
    """The entry function and its text."""
    text = entry.generate()
    return compile_text(text, f"<dy2static entry {next(_serial)}>", entry.namespace, keep=kept.code_of)["call"], text
