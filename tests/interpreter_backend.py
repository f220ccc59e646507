"""A third backend, as small as one can be: each line of a program asks `ir.interpret` for the results of one node.

It shows what a new backend takes: this file, and one call of `register`.  The programs of the conformance suite run on it with
``conformance.py cases_open.py --path CHECKOUT --path CHECKOUT/tests --impl interpreter_backend:to_static``.
"""
import functools
from itertools import compress

import numpy as np

import dy2static
from dy2static.backends.base import Backend, Done, Executable, results_of
from dy2static.backends.extents import made_in_regions
from dy2static.backends.names import Names
from dy2static.backends.registry import register
from dy2static.backends.text import function_text
from dy2static.ir.dims import evaluate
from dy2static.ir.interpret import Run, bind_sizes, interpret_node
from dy2static.ir.shapes import evaluate_shape
from dy2static.ir.types import Extent, Scalar, Tensor
from dy2static.ir.types import List as ListType
from dy2static.passes import Pipeline
from dy2static.pyast.loader import compile_text
from dy2static.runtime.host_calls import Call
from dy2static.runtime.result_types import check_result
from dy2static.runtime.segment import Footprint
from dy2static.runtime.traceback import show_user_line


class InterpreterBackend(Backend):
    """Graphs as they mean, node by node."""

    name = "interpreter"
    passes = Pipeline("interpreter", "nothing: graphs run as they are", ())

    def supports(self, node):
        """Whether a node can be interpreted: all of them can."""
        return True

    def start(self, graph, *, name, escaping, saved=(), recomputes=False, clock=None):
        """As `Backend.start`; every result is in new memory, and nothing is kept between calls."""
        return Done(_Program(graph, saved, clock).executable(name))


class _Program:
    """The text of one function, line by line."""

    def __init__(self, graph, saved, clock):
        self.graph, self.results, self.clock = graph, (*graph.outputs, *saved), clock
        self.names = Names({"run"})
        self.texts, self.lines = {}, []

    def executable(self, name):
        params = [self._new(v) for v in self.graph.inputs]
        begin = self.names.bind("begin", functools.partial(_begin, self.graph))
        self.lines.append((f"run, [{', '.join(params)}] = {begin}({', '.join(params)})", None))
        if self.clock is not None:
            self.lines.append((f"{self.names.bind('start', self.clock.start)}()", None))
        for node in self.graph.nodes:
            self._node(node)
        for value in self.results:
            if value not in self.texts and isinstance(value.type, Extent):
                self.lines.append((f"{self._new(value)} = run.sizes[{value.type.symbol!r}]", None))
        results = tuple(self.texts[v] for v in self.results)
        source = function_text(name, ["arena", *params], self.lines, f"({' '.join(f'{text},' for text in results)})")
        call = compile_text(source, f"<interpreted {name}>", self.names.namespace)[name]
        origins = {number: loc for number, (_, loc) in enumerate(self.lines, start=2) if loc is not None}
        return Executable(call, source, results, origins, footprint=Footprint(results=results_of(self.graph)))

    def _node(self, node):
        operands = ", ".join(self.texts[v] for v in node.inputs)
        call = f"{self.names.bind('interpret', _interpret)}({self.names.bind(node.op.name, node)}, [{operands}], run)"
        targets = ", ".join(self._new(v) for v in node.outputs)
        self.lines.append((f"[{targets}] = {call}" if targets else call, node.loc))
        if self.clock is not None:
            self.lines.append((f"{self.names.bind('tick', self.clock.tick)}({self.clock.part([node])})", None))

    def _new(self, value):
        self.texts[value] = self.names.fresh(value.name or "v")
        return self.texts[value]


def _begin(graph, *arrays):
    """The sizes that the inputs show, and those that are inputs; and the inputs, of which zeros may have come as one number."""
    types = [v.type for v in graph.inputs]
    whole = [not isinstance(type, Tensor) or np.ndim(x) == type.ndim for type, x in zip(types, arrays)]
    sizes = {**dict.fromkeys(made_in_regions(graph), 0),
             **bind_sizes(list(compress(types, whole)), list(compress(arrays, whole)))}
    sizes.update((type.symbol, x) for type, x in zip(types, arrays) if isinstance(type, Extent))
    return Run(sizes), [x if is_whole else np.broadcast_to(x, evaluate_shape(type.shape, sizes))
                        for type, x, is_whole in zip(types, arrays, whole)]


def _interpret(node, operands, run):
    try:
        with np.errstate(**({"all": "ignore"} if node.recomputed else {})):     # of what has been computed before, NumPy has warned
            results = interpret_node(node, operands, run)
    except Exception as error:
        raise _with_lines(error)    # noqa: B904  the same error, with one more entry
    call = node.attrs.get("call")
    for value, result in zip(node.outputs, results):
        inner = value.type.elem if isinstance(value.type, ListType) else value.type
        if isinstance(call, Call) and not call.trusted and isinstance(inner, (Tensor, Scalar)):
            check_result(result, value.type, tuple(evaluate(n, run.sizes) for n in inner.shape))
    if node.op.name == "constant":
        return [results[0].copy()]                          # somebody may write into it
    is_array = len(results) == 1 and isinstance(node.outputs[0].type, Tensor) and node.op.kind not in ("view", "opaque")
    return [np.asarray(results[0])] if is_array else results


def _with_lines(error):
    """The error, with the user's line of the innermost node."""
    step, place = error.__traceback__, None
    while step is not None:
        node = step.tb_frame.f_locals.get("node") if step.tb_frame.f_code is interpret_node.__code__ else None
        place, step = place if node is None or node.loc is None else node.loc, step.tb_next
    lines = {} if place is None else {error.__traceback__.tb_lineno: place}
    return show_user_line(error, _interpret.__code__, lines)


def to_static(target=None, **options):
    """`dy2static.to_static`, on this backend."""
    register(InterpreterBackend())
    return dy2static.to_static(target, backend="interpreter", **options)
