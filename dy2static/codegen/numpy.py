"""Graphs as readable Python functions that call NumPy: the backend that is always there."""
from __future__ import annotations

import ast
import itertools
import operator
import re
from dataclasses import replace
from typing import Any, Callable, Collection, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from ..errors import InternalError
from ..ir.dims import Dim
from ..ir.graph import Graph, Node, Value
from ..ir.interpret import make_exception
from ..ir.template import attr_source, fills_out, numpy_source
from ..ir.types import Extent, Scalar, Stack, Tensor
from ..ir.types import List as ListType
from ..lowering.host import Call
from ..passes.dead import eliminate_dead
from ..passes.effects import must_run
from ..runtime.clocks import Clock
from ..runtime.result_types import check_result
from .blocks import BlockWriter
from .buffers import Slot, plan
from .c.lists import as_array, as_items, grown
from .c.partition import is_native
from .c.regions import as_stack, pushed
from .c.scalars import enters_as_array
from .calls import call_text, has_text, part_text
from .extents import made_in_regions, made_symbols, symbol_sources, symbols_in
from .flatten import Block, Step, all_steps, flatten
from .linear import InPlaceChanges
from .names import Names
from .numpy_function import NumpyFunction, tuple_text
from .placement import Placement
from .special import SPECIAL
from .text import Line

#: Working memory of so many bytes is shared with other functions; less stays in the arena, which costs nothing to take.
_LEAST_SHARED = 1 << 18


def emit(graph: Graph, *, name: str, escaping: Collection[Value], saved: Tuple[Value, ...] = (),
         reserved: Collection[str] = (), clock: Optional[Clock] = None) -> NumpyFunction:
    """A NumPy function for a graph; branches and loops become ``if``, ``while`` and ``for``.

    escaping: values whose arrays somebody outside will hold.  They, and everything they may be views of, get new
        memory in every call; everything else is computed into the arena.
    saved: values that the function also returns; they stay as they are in the arena until it is used again.
    reserved: names the text must not use.
    clock: what is told when each node has run.

    Linear in nodes + edges.
    """
    if any(node.regions for node in graph.nodes):
        graph = eliminate_dead(graph.with_(outputs=graph.outputs + saved)).with_(outputs=graph.outputs)
    return _Emitter(graph, escaping, saved, reserved, clock).run(name)


class _Emitter(BlockWriter):
    """The state of `emit`: what each value is called, and the lines so far."""

    def __init__(self, graph: Graph, escaping: Collection[Value], saved: Tuple[Value, ...], reserved: Collection[str],
                 clock: Optional[Clock] = None):
        self.graph, self.saved, self.clock = graph, saved, clock
        self.returned = (*graph.outputs, *saved)
        self.block = flatten(graph)
        steps = list(all_steps(self.block))
        self.producers = {value: step.node for step in steps for value in step.node.outputs}
        self.operands = {step.node: self._direct_operands(step.node) for step in steps}
        self.uses, self.reads = self._count_uses(), self._read_positions(steps)
        self.placement = Placement(self.block, escaping, self.uses, self.operands)
        self.held = self.placement.held
        self.plan = plan(self.block, self.placement, self.returned, self._overwritable, self._as_view)
        self.changes = InPlaceChanges(self.block, self.plan.places.keys())
        self.symbols = symbols_in(graph)
        self.names = Names({*reserved, *self.symbols, "work", "take_work", "give_work"})
        self.constants: Dict[Any, np.ndarray] = {}
        self.texts: Dict[Value, str] = {}
        self.slot_names: Dict[int, str] = {}
        self.lines: List[Line] = []
        self.indent = ""
        self.preferred: Dict[Value, Tuple[str, bool]] = {}

    def run(self, name: str) -> NumpyFunction:
        params = tuple(self.names.fresh(value.name or "x") for value in self.graph.inputs)
        self.texts.update(zip(self.graph.inputs, params))
        if self.clock is not None:
            self._line(f"{self.names.bind('start', self.clock.start)}()")
        self._bind_symbols()
        self._block(self.block)
        self.texts.update((v, v.type.symbol) for v in self.returned if isinstance(v.type, Extent))
        results = tuple(self.texts[v] for v in self.returned)
        made = NumpyFunction(name, params, self._names_in(lambda slot: True), tuple(self.lines), results, self.names.namespace,
                             self.plan)
        kept, work = self.plan.parted()
        if work.nbytes < _LEAST_SHARED:
            return made
        return replace(made, arena=self._names_in(lambda slot: slot.storage in self.plan.kept), plan=kept,
                       work=self._names_in(lambda slot: slot.storage not in self.plan.kept), work_plan=work)

    def _names_in(self, chosen: Callable[[Slot], bool]) -> Tuple[str, ...]:
        return tuple(self.slot_names[i] for i, slot in enumerate(self.plan.slots) if chosen(slot))

    # What a node reads, and where its result goes

    def _direct_operands(self, node: Node) -> Tuple[Value, ...]:
        """The operands, without the broadcasts that NumPy does by itself."""
        operands = list(node.inputs)
        if node.op.kind == "elementwise" and isinstance(node.op.numpy, str):
            for i, value in enumerate(operands):
                producer = self.producers.get(value)
                if producer is not None and producer.op.name == "broadcast_to":
                    operands[i] = producer.inputs[0]
                    if _broadcast(operands) != node.outputs[0].shape:
                        operands[i] = value
        return tuple(operands)

    def _count_uses(self) -> Dict[Value, int]:
        """How often the text reads each value; values that nothing needs are absent."""
        uses: Dict[Value, int] = {}
        for value in self.returned:
            uses[value] = uses.get(value, 0) + 2              # returned values get a name of their own
        self._count_in(self.block, uses)
        return uses

    def _count_in(self, block: Block, uses: Dict[Value, int]) -> None:
        for value in block.results:
            uses[value] = uses.get(value, 0) + 2
        for step in reversed(block.steps):
            if must_run(step.node) or any(v in uses for v in step.node.outputs):
                for inner in reversed(step.blocks):
                    self._count_in(inner, uses)
                for value in self.operands[step.node]:
                    uses[value] = uses.get(value, 0) + 1
                if is_native(step.node):
                    for value in step.node.outputs:
                        uses.setdefault(value, 1)               # it writes all of them

    def _read_positions(self, steps: Sequence[Step]) -> Dict[Value, int]:
        """Where each value, or what may be it or a view of it, is read for the last time in the order of the text."""
        last: Dict[Value, int] = {}
        for step in reversed(steps):
            for block in step.blocks:
                for value in block.results:
                    last[value] = max(last.get(value, 0), block.end)
            until = max([step.position] + ([] if fills_out(step.node.op) else
                                           [last[v] for v in step.node.outputs if v in last]))
            for value in self.operands[step.node]:
                last[value] = max(last.get(value, 0), until)
        return last

    def _overwritable(self, node: Node) -> Tuple[Value, ...]:
        """The operands a node may write its result over: no other operand is, or is a view of, the same array."""
        if not node.op.inplace_ok:
            return ()
        direct = self.operands[node]
        roots = [self._root(v) for v in direct]
        if any(v in self.producers and self.producers[v].regions for v in roots):
            return ()                                          # they may be, or be views of, what a branch captured
        return tuple(v for i, v in enumerate(direct)
                     if v is roots[i] and all(v is other or root is not v for other, root in zip(direct, roots)))

    def _root(self, value: Value) -> Value:
        """The value whose memory a chain of views ends at."""
        producer = self.producers.get(value)
        while producer is not None and producer.op.view:
            value = producer.inputs[0]
            producer = self.producers.get(value)
        return value

    def _as_view(self, node: Node) -> Optional[Tuple[str, Tuple[Any, ...]]]:
        """How to make a node's result once, with the arena: a view of a buffer that is always the same."""
        if node.op.name not in ("transpose", "reshape") or node.outputs[0] not in self.uses:
            return None
        base = self.producers.get(node.inputs[0])
        if node.op.name == "transpose":
            return "transpose", node.attrs["axes"]
        if base is None or not fills_out(base.op) or any(isinstance(n, Dim) for n in node.outputs[0].shape):
            return None                                        # only the buffer itself is sure to be contiguous
        return "reshape", (node.outputs[0].shape,)

    # Text

    def _block(self, block: Block) -> None:
        quiet: List[Step] = []
        for step in block.steps:
            if must_run(step.node) or any(self.uses.get(v) for v in step.node.outputs):
                if step.node.again:
                    quiet.append(step)
                else:
                    self._quiet(quiet)
                    self._timed(step)
        self._quiet(quiet)

    def _quiet(self, steps: List[Step]) -> None:
        """Write what has been computed before, where NumPy said what there is to say, and forget these steps."""
        lines = self._indented(lambda: [self._timed(step) for step in steps])
        steps.clear()
        if lines:
            self._line(f"with {self.names.bind('errstate', np.errstate)}(all='ignore'):")
            self.lines += lines

    def _timed(self, step: Step) -> None:
        written = len(self.lines)
        self._step(step)
        if self.clock is not None and len(self.lines) > written:
            number = self.clock.part([step.node], is_native(step.node))
            self._line(f"{self.names.bind('tick', self.clock.tick)}({number})", step.node)

    def _step(self, step: Step) -> None:
        if step.node.op.name == "if_":
            self._branch(step)
        elif step.blocks:
            self._loop(step)
        else:
            self._node(step.node)

    def _node(self, node: Node) -> None:
        if node.op.name == "constant":
            self._constant(node)
        elif node.op.name == "py_constant" and type(node.attrs["value"]) in (bool, int):
            self.texts[node.outputs[0]] = _literal(node.attrs["value"])
        elif node.op.name == "nothing":
            self.texts[node.outputs[0]] = "None"
        elif node.op.name == "raise_":
            self._raise(node)
        elif is_native(node):
            self._native(node)
        elif node in self.changes.nodes:
            self._change(node)
        elif len(node.outputs) > 1 and fills_out(node.op):
            self._into_several(node)
        elif any(v in self.plan.places for v in node.outputs):
            self._into_buffer(node)
        elif isinstance(node.op.numpy, str):
            self._fresh(node)
        elif node.op.numpy is not None:
            self._call(node)
        else:
            raise InternalError(f"{node.op.name} has no NumPy form", node.loc)
        for symbol, value, axis in made_symbols(node):
            text = self.texts[value]
            self._line(f"{symbol} = len({text})" if axis < 0 else f"{symbol} = {text}.shape[{axis}]", node)
        call = node.attrs.get("call")
        if isinstance(call, Call) and not call.trusted:
            self._check_results(node)

    def _check_results(self, node: Node) -> None:
        for value in node.outputs:
            inner = value.type.elem if isinstance(value.type, ListType) else value.type
            if isinstance(inner, (Tensor, Scalar)):
                check, type_ = self.names.bind("check_result", check_result), self.names.bind("said_type", value.type)
                self._line(f"{check}({self.texts[value]}, {type_}, {attr_source(inner.shape)})", node)

    def _change(self, node: Node) -> None:
        """An append to a list, or a write into an array, that is our own."""
        target, *rest = (self.texts[v] for v in node.inputs)
        if node.op.name == "list_append":
            self._line(f"{target}.append({rest[0]})", node)
        else:
            call = node.attrs["call"]
            steps, function, args, kwargs = call.args[1:]
            if not steps and function is operator.setitem and has_text(args):
                key, item = (part_text(part, [target, *rest], self.names.bind) for part in args)
                self._line(f"{target}[{key}] = {item}", node)
            else:
                write = Call(call.function.in_place, call.args, call.kwargs, call.flatten, call.name, call.single,
                             trusted=call.trusted)
                name = self.names.bind("write", write)
                self._line(f"{name}({', '.join((target, *rest))})", node)
        self.texts[node.outputs[0]] = target

    def _constant(self, node: Node) -> None:
        """A 0-d array or an array in the namespace; a copy of it where somebody could write into it."""
        (value,) = node.outputs
        text = self._number(np.array(node.attrs["value"]), value.name)
        if value in self.held:
            self._line(f"{self._new_name(value)} = {text}.copy()", node)
        else:
            self.texts[value] = text

    def _into_buffer(self, node: Node) -> None:
        (value,) = node.outputs
        self.texts[value] = out = self._buffer(value)
        if self.plan.slots[self.plan.places[value]].view is None:
            for line in self._filling(self._source(node, out), node, out):
                self._line(line, node)

    def _into_several(self, node: Node) -> None:
        """Several results, each in its buffer or in new memory; None stands for one that nobody reads."""
        outs = []
        for value in node.outputs:
            self.preferred.pop(value, None)
            if value in self.plan.places:
                self.texts[value] = self._buffer(value)
            elif value in self.uses:
                self._line(f"{self._new_name(value)} = {self._empty(value)}", node)
            outs.append(self.texts.get(value, "None"))
        for line in self._source(node, outs):
            self._line(line, node)

    def _native(self, node: Node) -> None:
        """A call of native code: what it reads, then the arrays that it fills; it gives the other results."""
        arguments, others, region = [], [], node.attrs["call"]
        for value in node.inputs:
            text = value.type.symbol if isinstance(value.type, Extent) else self.texts[value]
            if isinstance(value.type, Stack):
                text = f"{self.names.bind('as_stack', as_stack)}({text}, {self.names.bind('stack_type', value.type)})"
            elif isinstance(value.type, ListType):
                text = f"{self.names.bind('as_array', as_array)}({text}, {self.names.bind('list_type', value.type)})"
            elif not isinstance(value.type, Tensor) and enters_as_array(value.type):
                text = f"{self._numpy('asarray')}({text})"
            arguments.append(text)
        found_out = {value for value, inside in zip(node.outputs, region.graph.outputs) if inside in region.grown}
        for value in node.outputs:
            self.preferred.pop(value, None)
            if not enters_as_array(value.type) or value in found_out:
                others.append(value)
                continue
            if value in self.plan.places:
                self.texts[value] = self._buffer(value)
            else:
                self._line(f"{self._new_name(value)} = {self._empty(value)}", node)
            arguments.append(self.texts[value])
        call = f"{self.names.bind('native', node.attrs['call'].call)}({', '.join(arguments)})"
        names = [v.type.symbol if isinstance(v.type, Extent) else self._new_name(v) for v in others]
        self._line(f"{', '.join(names)} = {call}" if names else call, node)
        for value in node.outputs:
            if isinstance(value.type, Scalar) and enters_as_array(value.type):
                self._line(f"{self.texts[value]} = {self.texts[value]}[()]", node)
        for value, name in zip(others, names):
            bind = self.names.bind
            if value in found_out:
                shape, dtype = attr_source(value.shape), self._numpy(f"dtype('{value.dtype}')")
                self._line(f"{name} = {bind('grown', grown)}({name}, {dtype}, {shape})", node)
            elif isinstance(value.type, ListType):
                self._line(f"{name} = {bind('as_items', as_items)}({name}, {bind('list_type', value.type)})", node)
            elif isinstance(value.type, Stack):
                self._line(f"{name} = {bind('pushed', pushed)}({name}, {bind('stack_type', value.type)})", node)

    def _fresh(self, node: Node) -> None:
        """A result in memory of its own, or a view of an operand."""
        value = node.outputs[0]
        if not fills_out(node.op):
            (text,) = self._source(node, "out")
            if text.isidentifier() or self.uses.get(value) == 1 and _TURNED.fullmatch(text):
                self.texts[value] = text
                return
            if _is_scalar_like(node):
                text = f"{self._numpy('asarray')}({text})"
            self._line(f"{self._assigned(node)} = {text}", node)
            return
        lines = self._source(node, _OUT)
        simple = _without_out(lines[0], _OUT) if len(lines) == 1 and value.ndim else None
        if simple is None and self.preferred.get(value, ("", False))[1]:
            del self.preferred[value]                          # the name is that of an operand, still to be read
        out = self._new_name(value)
        if simple is not None:
            self._line(f"{out} = {simple}", node)
        else:
            self._line(f"{out} = {self._empty(value)}", node)
            for line in self._filling(lines, node, _OUT):
                self._line(line.replace(_OUT, out), node)

    def _filling(self, lines: List[str], node: Node, out: str) -> List[str]:
        """The lines without the ``out=`` that NumPy before 2.2 gets wrong: of maxima along an axis that runs backwards."""
        if node.op.name not in ("max", "min") or not self._may_run_backwards(node.inputs[0]):
            return lines
        return [f"{self._numpy('copyto')}({out}, {_without_out(line, out)})" for line in lines]

    def _may_run_backwards(self, value: Value) -> bool:
        """Whether an array may have a negative stride: its memory is not from here, or a view has turned it."""
        producer = self.producers.get(value)
        while producer is not None and producer.op.view:
            if any(isinstance(entry, tuple) and entry[2] < 0 for entry in producer.attrs.get("index", ())):
                return True
            producer = self.producers.get(producer.inputs[0])
        return producer is None or not fills_out(producer.op)

    def _empty(self, value: Value) -> str:
        return self.names.numpy(f"np.empty({attr_source(value.shape)}, {attr_source(value.dtype)})")

    def _call(self, node: Node) -> None:
        """A call of an op that is a Python function, or the call that such an op makes."""
        if isinstance(node.attrs.get("call"), Call):
            written = call_text(node.attrs["call"], [self.texts[v] for v in node.inputs], self.names.bind)
            if written is not None:
                self._line(f"{self._assigned(node)} = {written}", node)
                return
        function = self.names.bind(f"do_{node.op.name}", node.op.numpy)
        arguments = [self.texts[v] for v in node.inputs]
        arguments += [f"{name}={self._attr(name, attr)}" for name, attr in node.attrs.items()]
        if node.regions:
            arguments.append(f"regions={self.names.bind('regions', node.regions)}")
        text = f"{function}({', '.join(arguments)})"
        if _is_scalar_like(node):
            text = f"{self._numpy('asarray')}({text})"
        self._line(f"{self._assigned(node)} = {text}" if node.outputs else text, node)

    def _raise(self, node: Node) -> None:
        make = self.names.bind("make_exception", make_exception)
        exception = self.names.bind("exception", node.attrs["exception"])
        operands = f"[{', '.join(self.texts[v] for v in node.inputs)}]"
        self._line(f"raise {make}({exception}, {self._attr('message', node.attrs['message'])}, {operands})", node)

    def _source(self, node: Node, out: Union[str, Sequence[str]]) -> List[str]:
        """The lines of a node's template."""
        direct = self.operands[node]
        operands = [self.texts[v] for v in direct]
        special = SPECIAL.get(node.op.name)
        text = special(node, operands, out) if special is not None and isinstance(out, str) else None
        if text is None:
            types = [v.type for v in node.inputs]
            text = numpy_source(node.op, operands, out, types, node.outputs[0].type, node.attrs)
        lines = [_COMMENT.sub("", line) if "#" in line else line for line in text.split("\n")]
        if node.op.kind == "reduction":
            lines = [_ONE_AXIS.sub(r"axis=\1", line) for line in lines]     # NumPy takes it faster
        if node.op.kind == "elementwise" or node.op.name == "mean":
            lines = [line if "axis=" in line else self._with_typed_numbers(line, node) for line in lines]
        for function in node.op.calls:
            name = self.names.bind(function.__name__, function)
            lines = [re.sub(rf"\b{function.__name__}(?=\()", name, line) for line in lines]
        return [self.names.numpy(line) for line in lines]

    def _with_typed_numbers(self, line: str, node: Node) -> str:
        """The line with arrays of no dimensions for Python numbers: NumPy converts those in every call."""
        dtype = node.outputs[0].dtype
        if dtype.kind != "f" or any(v.dtype != dtype for v in node.inputs) or not line.startswith("np."):
            return line
        return _NUMBER.sub(lambda number: self._number(np.array(ast.literal_eval(number.group()), dtype)), line)

    def _number(self, array: np.ndarray, name: str = "") -> str:
        """The name of a constant; equal constants have one name."""
        key = (array.dtype.str, array.shape, array.tobytes())
        array = self.constants.setdefault(key, array)
        array.flags.writeable = False
        return self.names.bind(_constant_hint(array, name), array)

    def _assigned(self, node: Node) -> str:
        names = [self._new_name(v) for v in node.outputs]
        return names[0] if len(names) == 1 else tuple_text(names)

    def _new_name(self, value: Value) -> str:
        preferred = self.preferred.get(value)
        self.texts[value] = preferred[0] if preferred else self.names.fresh(value.name or "v")
        return self.texts[value]

    def _buffer(self, value: Value) -> str:
        """The name of the buffer a value lives in: that of the first value there."""
        slot = self.plan.places[value]
        if slot not in self.slot_names:
            self.slot_names[slot] = self.names.fresh(value.name or "v")
        return self.slot_names[slot]

    def _numpy(self, name: str) -> str:
        return self.names.numpy(f"np.{name}")

    def _attr(self, name: str, attr: Any) -> str:
        if attr is None or isinstance(attr, (bool, int, str)) or isinstance(attr, tuple) and \
                all(item is None or isinstance(item, (bool, int, str)) for item in attr):
            return repr(attr)
        if name != "extent" and (isinstance(attr, Dim) or isinstance(attr, tuple) and any(isinstance(item, Dim) for item in attr)):
            return attr_source(attr)
        return self.names.bind(name, attr)

    def _bind_symbols(self) -> None:
        """Let each unknown size be read from an input; those that a branch finds out have a number in any case."""
        for symbol, value, axis in symbol_sources(self.graph):
            text = self.texts[value]
            self._line(f"{symbol} = {text}" if axis < 0 else f"{symbol} = {text}.shape[{axis}]")
        for symbol in made_in_regions(self.graph):
            self._line(f"{symbol} = 0")


#: The name of a result before it is known whether the text needs one.
_OUT = "result_0_"

_TURNED, _COMMENT, _ONE_AXIS = re.compile(r"\w+\.T"), re.compile(r"\s+#.*$"), re.compile(r"axis=\((\d+),\)")

#: A call of a function with arguments that hold no brackets and no text: what most templates are.
_PLAIN_CALL = re.compile(r"[\w.]+\([^()'\"]*\)")

#: A number as an argument of its own.
_NUMBER = re.compile(r"(?<=, )-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?=[,)])")


def _broadcast(values: Sequence[Value]) -> Optional[Tuple[Any, ...]]:
    """The shape NumPy gives these operands, None where it would not take them."""
    result: List[Any] = []
    for sizes in itertools.zip_longest(*(reversed(v.shape) for v in values), fillvalue=1):
        wide = {size for size in sizes if size != 1}
        if len(wide) > 1:
            return None
        result.append(wide.pop() if wide else 1)
    return tuple(reversed(result))


def _without_out(line: str, out: str) -> Optional[str]:
    """The call without its ``out=``, which then makes its result itself; None if it is not one such call."""
    end = f", out={out})"
    if not line.endswith(end):
        return None
    text = line[:-len(end)] + ")"
    if not _PLAIN_CALL.fullmatch(text):
        try:
            tree = ast.parse(text, mode="eval").body
        except SyntaxError:
            return None
        if not isinstance(tree, ast.Call):
            return None
    return None if re.search(rf"\b{out}\b", text) else text


def _is_scalar_like(node: Node) -> bool:
    """Whether NumPy may give a number where the graph has an array of no dimensions."""
    return (len(node.outputs) == 1 and isinstance(node.outputs[0].type, Tensor) and node.outputs[0].shape == ()
            and node.op.kind not in ("view", "opaque"))


def _literal(value: Any) -> str:
    """A number as an operand: in parentheses where a sign could join another operator."""
    return f"({value!r})" if value < 0 else repr(value)


def _constant_hint(array: np.ndarray, name: str) -> str:
    """A readable name for a constant: ``c0_5`` for 0.5."""
    if array.ndim:
        return name or "constant"
    text = f"{array.item()}".replace("-", "m").replace("+", "")
    return f"c{text[:-2] if text.endswith('.0') else text}"
