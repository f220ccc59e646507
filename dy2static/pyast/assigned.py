"""Which names certainly have a value, and which certainly have none, at each ``if``, loop and read."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Set

import gast

from dy2static.pyast.kinds import BINDS
from dy2static.pyast.managers import lets_through
from dy2static.pyast.scopes import (
    COMPREHENSIONS,
    SCOPES,
    Scopes,
    bound_by,
    children,
    evaluated_outside,
    inside,
    own_nodes,
    parameters,
    targets,
    walk,
    written,
)


class State(NamedTuple):
    """What is known of the locals of a function at one point."""

    certain: FrozenSet[str]  # have a value
    possible: FrozenSet[str]  # may have one


class Assigned:
    """The result: ``at`` has the state at every ``if`` once its test has run, and before every loop.

    ``before`` has the state before each statement.
    ``unsure`` are the nodes that read a local which may have no value: names, and augmented assignments.
    ``unsure_inside`` are the names read so within comprehensions.
    """

    def __init__(self) -> None:
        self.at: Dict[gast.AST, State] = {}
        self.before: Dict[gast.AST, State] = {}
        self.unsure: Set[gast.AST] = set()
        self.unsure_inside: Set[gast.AST] = set()


def analyse(function: gast.AST, scopes: Scopes, live: Optional[Dict[gast.AST, Any]] = None) -> Assigned:
    """Which locals of ``function`` have a value where.

    Errs to one side: a name with a value may be reported unsure, never the reverse.

    live: the result of `liveness.analyse`.  With it, a name that an ``if`` or loop writes, and whose present
    value is not read from the start of a block on, counts as having none there: so it is where the block has
    become a function.
    """
    params = frozenset(param.id for param in parameters(function.args))
    analysis = _Assignment(function, scopes, live or {})
    analysis.block(function.body, State(params, params))
    return analysis.result


class _Assignment:
    """Goes forward through a function once; names that a loop or an exception may unbind are removed beforehand."""

    def __init__(self, function: gast.AST, scopes: Scopes, live: Dict[gast.AST, Any]):
        self.scopes, self.scope, self.live = scopes, scopes[function], live
        self.locals = frozenset(self.scope.locals)
        self.unreachable = State(self.locals, self.locals)
        self.breaks: List[List[State]] = []
        self.written: Dict[gast.AST, Set[str]] = {}
        self.result = Assigned()

    # Statements: each takes the state before it and gives the state after it, None if that is never reached.

    def block(self, statements: List[gast.AST], state: Optional[State]) -> Optional[State]:
        for statement in statements:
            visit = getattr(self, "visit_" + type(statement).__name__, self.other)
            self.result.before[statement] = state or self.unreachable
            state = visit(statement, state or self.unreachable)
        return state

    def other(self, node: gast.AST, state: State) -> Optional[State]:
        state = self.evaluate(state, *children(node))
        return state._replace(possible=state.possible | written(node))

    def visit_Assign(self, node: gast.AST, state: State) -> Optional[State]:
        state = self.evaluate(state, node.value)
        for target in node.targets:
            state = self.store(state, target)
        return state

    def visit_AnnAssign(self, node: gast.AST, state: State) -> Optional[State]:
        if node.value is None:
            return self.evaluate(state, node.target)
        return self.store(self.evaluate(state, node.value), node.target)

    def visit_AugAssign(self, node: gast.AST, state: State) -> Optional[State]:
        if isinstance(node.target, gast.Name):
            self.read(node, node.target.id, state)
        return self.store(self.evaluate(state, node.target, node.value), node.target)

    def visit_Delete(self, node: gast.AST, state: State) -> Optional[State]:
        state = self.evaluate(state, *node.targets)
        names = [name for target in node.targets for name in targets(target)]
        return State(state.certain.difference(names), state.possible.difference(names))

    def visit_FunctionDef(self, node: gast.AST, state: State) -> Optional[State]:
        return _bind(self.evaluate(state, *evaluated_outside(node)), [node.name])

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_Import(self, node: gast.AST, state: State) -> Optional[State]:
        return _bind(state, bound_by(node))

    visit_ImportFrom = visit_Import

    def visit_Assert(self, node: gast.AST, state: State) -> Optional[State]:
        after = self.evaluate(state, node.test, node.msg)
        return state._replace(possible=after.possible)  # under -O it does not run

    def visit_Return(self, node: gast.AST, state: State) -> Optional[State]:
        self.evaluate(state, *children(node))
        return None

    visit_Raise = visit_Return

    def visit_Break(self, node: gast.AST, state: State) -> Optional[State]:
        # a finally on the way may delete names
        self.breaks[-1].append(state._replace(certain=state.certain - self.scope.deleted))
        return None

    def visit_Continue(self, node: gast.AST, state: State) -> Optional[State]:
        return None

    def visit_If(self, node: gast.AST, state: State) -> Optional[State]:
        state = self.result.at[node] = self.evaluate(state, node.test)
        return _merge(
            self.block(node.body, self.entering(node, state, "body")),
            self.block(node.orelse, self.entering(node, state, "orelse")),
        )

    def visit_While(self, node: gast.AST, state: State) -> Optional[State]:
        self.result.at[node] = state
        state = self.evaluate(self.rounds(node, state), node.test)
        self.breaks.append([])
        self.block(node.body, state)
        breaks = self.breaks.pop()
        forever = isinstance(node.test, gast.Constant) and bool(node.test.value)
        return _merge(None if forever else self.block(node.orelse, state), *breaks)

    def visit_For(self, node: gast.AST, state: State) -> Optional[State]:
        state = self.result.at[node] = self.evaluate(state, node.iter)
        state = self.rounds(node, state)
        self.breaks.append([])
        self.block(node.body, self.store(state, node.target))
        breaks = self.breaks.pop()
        return _merge(self.block(node.orelse, state), *breaks)

    visit_AsyncFor = visit_For

    def rounds(self, node: gast.AST, state: State) -> State:
        """The state where each round of a loop begins."""
        return self.entering(node, _interrupted(state, node), "body")

    def entering(self, node: gast.AST, state: State, block: str) -> State:
        """The state at the start of a block of ``node``: ``state`` without the names that are not read from there on."""
        if node not in self.live:
            return state
        if node not in self.written:
            self.written[node] = written(node)
        dropped = self.written[node] - getattr(self.live[node], block) - self.scope.captured
        return State(state.certain - dropped, state.possible - dropped)

    def visit_With(self, node: gast.AST, state: State) -> Optional[State]:
        swallowed = _interrupted(state, node)
        for item in node.items:
            state = self.evaluate(state, item.context_expr)
            if item.optional_vars is not None:
                state = self.store(state, item.optional_vars)
        end = self.block(node.body, state)
        return end if lets_through(node) else _merge(end, swallowed)

    visit_AsyncWith = visit_With

    def visit_Try(self, node: gast.AST, state: State) -> Optional[State]:
        raised = _interrupted(state, *node.body)
        ends = [
            self.block(node.orelse, self.block(node.body, state))
            if node.orelse
            else self.block(node.body, state)
        ]
        for handler in node.handlers:
            name = [handler.name.id] if handler.name is not None else []
            end = self.block(handler.body, _bind(self.evaluate(raised, handler.type), name))
            ends.append(end and State(end.certain.difference(name), end.possible.difference(name)))
        end = _merge(*ends)
        if not node.finalbody:
            return end
        final = self.block(
            node.finalbody, _merge(_interrupted(state, *node.body, *node.handlers, *node.orelse), end)
        )
        if final is None or end is None:
            return None
        kept = end.certain - _deleted(*node.finalbody)
        return State(kept | final.certain, end.possible | final.possible)

    visit_TryStar = visit_Try

    def visit_Match(self, node: gast.AST, state: State) -> Optional[State]:
        state = self.evaluate(state, node.subject)
        ends: List[Optional[State]] = []
        for case in node.cases:
            names = written(case.pattern)
            matched = self.evaluate(_bind(self.evaluate(state, case.pattern), names), case.guard)
            ends.append(self.block(case.body, matched))
            state = state._replace(possible=state.possible | matched.possible)
        last = node.cases[-1]
        always = (
            isinstance(last.pattern, gast.MatchAs) and last.pattern.pattern is None and last.guard is None
        )
        return _merge(None if always else state, *ends)

    # Expressions, in the order they are evaluated.

    def read(self, node: gast.AST, name: str, state: State) -> None:
        # `is_sure`: a transformer has made the name, and knows
        if name in self.locals and name not in state.certain and not getattr(node, "is_sure", False):
            self.result.unsure.add(node)

    def store(self, state: State, target: gast.AST) -> State:
        return _bind(self.evaluate(state, target), targets(target))

    def evaluate(self, state: State, *nodes: Optional[gast.AST]) -> State:
        for node in nodes:
            if node.__class__ not in _EVALUATED:
                state = self.evaluate(state, *children(node)) if node is not None else state
            elif isinstance(node, gast.Name):
                if not isinstance(node.ctx, (gast.Store, gast.Param)):
                    self.read(node, node.id, state)
            elif isinstance(node, gast.NamedExpr):
                state = self.store(self.evaluate(state, node.value), node.target)
            elif isinstance(node, gast.BoolOp):
                state = self.maybe(self.evaluate(state, node.values[0]), *node.values[1:])
            elif isinstance(node, gast.Compare):
                state = self.maybe(
                    self.evaluate(state, node.left, node.comparators[0]), *node.comparators[1:]
                )
            elif isinstance(node, gast.IfExp):
                state = self.evaluate(state, node.test)
                state = _merge(self.evaluate(state, node.body), self.evaluate(state, node.orelse)) or state
            elif isinstance(node, SCOPES):
                state = self.evaluate(state, *evaluated_outside(node))
                if isinstance(node, COMPREHENSIONS):
                    state = self.comprehension(state, node)
        return state

    def maybe(self, state: State, *nodes: gast.AST) -> State:
        """The state after expressions that may not be evaluated, or only the first few."""
        return state._replace(possible=self.evaluate(state, *nodes).possible)

    def comprehension(self, state: State, node: gast.AST) -> State:
        unsure = (self.scopes[node].free & self.locals) - state.certain
        if unsure:
            self.result.unsure_inside.update(
                part
                for part in walk(*inside(node))
                if isinstance(part, gast.Name) and isinstance(part.ctx, gast.Load) and part.id in unsure
            )
        return state._replace(possible=state.possible | written(node))


#: What more happens to than that its parts are evaluated, in order.
_EVALUATED = frozenset((gast.Name, gast.NamedExpr, gast.BoolOp, gast.Compare, gast.IfExp, *SCOPES))


def _bind(state: State, names: Iterable[str]) -> State:
    return State(state.certain.union(names), state.possible.union(names))


def _merge(*states: Optional[State]) -> Optional[State]:
    """What is known where several paths meet; unreachable ones are None."""
    reached = [state for state in states if state is not None]
    if not reached:
        return None
    return State(
        frozenset.intersection(*(state.certain for state in reached)),
        frozenset.union(*(state.possible for state in reached)),
    )


def _interrupted(state: State, *nodes: gast.AST) -> State:
    """The state where control leaves, or returns to, ``nodes``, begun in ``state`` and run in part."""
    return State(state.certain - _deleted(*nodes), state.possible | written(*nodes))


def _deleted(*nodes: gast.AST) -> Set[str]:
    names: Set[str] = set()
    for node in own_nodes(*nodes, bits=BINDS):
        if isinstance(node, gast.Name) and isinstance(node.ctx, gast.Del):
            names.add(node.id)
        elif isinstance(node, gast.ExceptHandler) and node.name is not None:
            names.add(node.name.id)
    return names
