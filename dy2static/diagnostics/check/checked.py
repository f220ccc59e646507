"""A program whose first calls also run eagerly, and whose gradients are compared when backward runs."""
from __future__ import annotations

import contextlib
import types
import warnings
import weakref
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import chainer
import numpy as np

from ...errors import CheckWarning, DivergenceError, Location
from ...heap.locations import caller_depth
from ...ir.devices import is_gpu
from ...ir.types import Tensor
from ...runtime.devices import on_host
from ...runtime.hooks import stage
from ...runtime.node import CompiledFunction
from ...runtime.program import MISS, Program
from ...runtime.raised_errors import or_eagerly
from .compare import Comparison, Difference, different
from .locate import Applied, first_gradient, first_line
from .state import State
from .streams import first_difference, recorded

HINT = ("this is a bug in dy2static, or the function depends on something that a program cannot know (the time, files, "
        "objects of C code); mark what does with not_to_static, and report the rest")


class CheckedCall:
    """``call`` of a program, which runs the function eagerly first for the next ``left`` calls.

    done: called when none is left.
    """

    def __init__(self, function: types.FunctionType, program: Program, left: int, done: Callable[["CheckedCall"], Any]):
        self.function, self.program, self.left, self.done = function, program, left, done
        self.running = False

    def __call__(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        if not self.left:
            self.done(self)
        if self.running or stage.capture is not None or not self.left:
            return self.program.call(args, kwargs)
        if self.program.diagnose(args, kwargs):
            return MISS
        before = State([self.function, *args, *kwargs.values()])
        reason = f"it can reach a {type(before.lasting[0]).__name__}, which cannot be put back" if before.lasting else \
            "it draws from CuPy's generator, which cannot be put back" if _draws_on_gpu(self.program) else ""
        if reason:
            self._give_up(reason)
            return self.program.call(args, kwargs)
        self.running = True
        try:
            run = _Both(self.function, self.program, args, kwargs, before)
        finally:
            self.running = False
        if run.result is MISS:
            return MISS
        self.left -= 1
        if not self.left:
            self.done(self)
        run.judge()
        return run.result

    def _give_up(self, reason: str) -> None:
        self.left = 0
        self.done(self)
        warnings.warn(f"calls of {self.function.__qualname__} are not checked: {reason}", CheckWarning, stacklevel=caller_depth())


def _draws_on_gpu(program: Program) -> bool:
    """Whether a program draws arrays on a GPU: by an op for that, or by a call of a function of ``cupy.random``."""
    draws = [node for node in program.graph.walk() if node.op.effect and (
        not node.inputs or str(getattr(node.attrs.get("call"), "name", "")).startswith("random."))]
    return any(isinstance(value.type, Tensor) and is_gpu(value.type.device) for node in draws for value in node.outputs)


class _Both:
    """One call, run eagerly and compiled from the same state; the state it leaves is that of the compiled run."""

    def __init__(self, function: types.FunctionType, program: Program, args: Tuple, kwargs: Mapping[str, Any],
                 before: State):
        self.function, self.program = function, program
        self.eagerly = lambda: function(*args, **kwargs)
        self.compiled = lambda: or_eagerly(lambda: program.call(args, kwargs), self.eagerly)
        self.problem: Optional[Difference] = None
        self.at: Optional[Location] = None
        roots = [function, *args, *kwargs.values()]
        applied = Applied()
        with recorded(silent=True) as said, applied.taken_down():
            expected, failed = _outcome(self.eagerly)
        eager = State([*roots, expected])
        before.restore()
        with recorded(silent=False) as told:
            self.result, self.error = _outcome(self.compiled)
        if self.result is MISS:             # it may look at the standard streams
            told = said
            self.result, self.error = _outcome(self.compiled)
        if self.result is MISS:
            return
        after = State([*roots, self.result])
        comparison = Comparison(before, eager, after)
        self._compare(comparison, expected, failed, args, kwargs, first_difference(said, told))
        if self.problem is not None:
            if self.at is None:
                self.at = first_line(self.eagerly, program, self.compiled, before, self.problem.item)
                after.restore()
        elif self.error is None:
            _expect_gradients(comparison, applied, function)

    def _compare(self, comparison: Comparison, expected: Any, failed: Any, args: Tuple, kwargs: Mapping[str, Any],
                 text: Any) -> None:
        if type(failed) is not type(self.error):
            self.problem = Difference("the call", f"{_ending(failed)} eagerly, and {_ending(self.error)} compiled")
        else:
            pairs = [("result", expected, self.result)] if failed is None else []
            names = self.function.__code__.co_varnames[:self.function.__code__.co_argcount]
            pairs += [(names[i] if i < len(names) else f"argument {i}", arg, arg) for i, arg in enumerate(args)]
            pairs += [(name, arg, arg) for name, arg in kwargs.items()]
            self.problem = comparison.first([*pairs, ("", self.function, self.function)])
        if self.problem is None and text is not None:
            self.problem, self.at = Difference("", text[0]), text[1]

    def judge(self) -> None:
        """Raise what the compiled run raised, or that it differs."""
        if self.problem is not None:
            raise _divergence(self.function, str(self.problem).strip(), self.at)
        if self.error is not None:
            raise self.error


def _outcome(call: Callable[[], Any]) -> Tuple[Any, Optional[Exception]]:
    try:
        return call(), None
    except Exception as error:                          # an outcome like any other: it is compared
        return None, error


def _ending(error: Optional[BaseException]) -> str:
    return "returns" if error is None else f"raises {type(error).__name__}"


def _divergence(function: types.FunctionType, what: str, at: Optional[Location]) -> DivergenceError:
    code = function.__code__
    at = at or Location(code.co_filename, code.co_firstlineno, 0, function.__qualname__)
    return DivergenceError(f"the compiled call of {function.__qualname__} differs from the eager call: {what}", at, HINT)


# --- gradients ------------------------------------------------------------------------------------------------------


class CheckedFunction(CompiledFunction):
    """A node of a compiled call that knows the Variables of the eager one."""

    expected: "_Gradients"

    def backward(self, target_input_indexes: Tuple[int, ...], grad_outputs: Sequence[Any]) -> Tuple[Any, ...]:
        """As `CompiledFunction.backward`.  Raises `DivergenceError` if eager gives other gradients."""
        result = super().backward(target_input_indexes, grad_outputs)
        key = target_input_indexes, tuple([g is not None for g in grad_outputs]), chainer.config.enable_backprop
        self.expected.compare(target_input_indexes, grad_outputs, result, self.segment.backward[key],
                              lambda: CompiledFunction.backward(self, target_input_indexes, grad_outputs))
        return result

    def unchain(self) -> None:
        """Let go of the eager graph, too."""
        super().unchain()
        self.expected.outputs = ()


class _Gradients:
    """The gradients that one node should give.

    inputs, outputs: the Variables of the eager run that those of the node stand for.  made: those of the node that the
    compiled call has made.
    """

    def __init__(self, function: types.FunctionType, applied: Applied, segment: Any, inputs: Sequence[Any],
                 outputs: Sequence[Any], made: Sequence[Any]):
        self.function, self.applied, self.segment = function, applied, segment
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.made = [(weakref.ref(y), y.array.copy()) for y in made if y.array is not None]

    def _is_changed(self) -> bool:
        """Whether the user has written to what the compiled call gave; the eager Variables know nothing of that."""
        pairs = [(reference(), on_host(kept)) for reference, kept in self.made]
        return any(y is not None and not np.array_equal(on_host(y.array), kept, equal_nan=kept.dtype.kind in "fc")
                   for y, kept in pairs)

    def compare(self, targets: Sequence[int], given: Sequence[Any], found: Sequence[Any], program: Any,
                again: Callable[[], Any]) -> None:
        """Raise if the gradients found are not those of the eager graph."""
        pairs = [(y, chainer.Variable(chainer.as_variable(g).array)) for y, g in zip(self.outputs, given) if g is not None]
        if not pairs or any(y.creator is None for y, _ in pairs) or self._is_changed():
            return
        inputs = [self.inputs[i] for i in targets]

        def eagerly() -> Any:
            with _cut_at(self.inputs):
                return chainer.grad([y for y, _ in pairs], inputs, [g for _, g in pairs])
        for i, a, b in zip(targets, eagerly(), found):
            what = different(None if a is None else a.array, None if b is None else b.array)
            if what:
                plan = self.segment.plan
                value = plan.graph.inputs[plan.targets[i]]
                at = first_gradient(eagerly, self.applied.nodes, self.applied.places, again, program) or \
                    next((node.loc for node in plan.graph.nodes if value in node.inputs), None)
                raise _divergence(self.function, f"the gradient of {value.name} {what}", at)


@contextlib.contextmanager
def _cut_at(variables: Sequence[chainer.Variable]) -> Iterator[None]:
    """Inside the block, gradients end at these Variables, as they do at the inputs of a node."""
    cut = {id(x.node): (x.node, x.node._creator_node) for x in variables}
    for node, _ in cut.values():
        node._creator_node = None
    try:
        yield
    finally:
        for node, creator in cut.values():
            node._creator_node = creator


def _expect_gradients(comparison: Comparison, applied: Applied, function: types.FunctionType) -> None:
    """Let the nodes of a compiled call compare what their backward gives, where they have all their Variables."""
    eager: Dict[int, Any] = {id(b.node): a for a, b in comparison.variables}
    existing: List[Any] = [r.item for r in comparison.before.records.values() if r.kind == "variable"]
    eager.update((id(x.node), x) for x in existing)
    known = {id(x.node) for x in existing}
    nodes: Dict[int, Any] = {id(b.creator): b.creator for _, b in comparison.variables if type(b.creator) is CompiledFunction}
    for node in nodes.values():
        inputs = [eager.get(id(x)) for x in node.inputs]
        made = [reference() for reference in node.outputs]
        outputs = [None if y is None else eager.get(id(y)) for y in made]
        if all(x is not None for x in (*inputs, *outputs)):
            node.__class__ = CheckedFunction
            node.__dict__["expected"] = _Gradients(function, applied, node.segment, inputs, outputs,
                                                    [y.get_variable() for y in (*made, *node.inputs) if id(y) not in known])
