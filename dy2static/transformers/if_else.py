"""``if`` statements."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Set

import gast

from dy2static.pyast import assigned, liveness, scopes, templates
from dy2static.pyast.scopes import children, own_nodes, walk, written
from dy2static.transformers.base import Transformer
from dy2static.transformers.frames import counts_frames
from dy2static.transformers.super_calls import SuperCalls


class IfElse(Transformer):
    """Make the blocks of an ``if`` functions of the names that they write.

    Before:
        if h > 0:
            y = h
        return y
    After:
        def then_0(y):
            y = h
            return (y,)
        def else_0(y):
            return (y,)
        (y,) = _dy.cond(h > 0, then_0, else_0, (_dy.Undefined('y'),), names=('y',))
        return _dy.read(y)

    A name that may have no value enters as ``_dy.Undefined``; wherever it is read and may still have none,
    ``_dy.read`` raises what Python would.

    An ``if`` stays a plain Python one

    - if a block leaves it: return, break or continue of a loop around, yield, raise;
    - if a block has del, global, nonlocal, or writes a name that is global, nonlocal or captured by an inner
      function (or a generator expression), for which a variable is more than its value now;
    - if a block writes a name, does more that may fail, and a handler around (or what follows a ``with``)
      could then read it;
    - in a class body, and if a block has a call with ``stacklevel=``.
    """

    requires = (SuperCalls,)  # `super()` knows its function by the frame: it could not be moved

    def __init__(self) -> None:
        self.states: Dict[gast.AST, _State] = {}  # of every `if` to be converted
        self.checked: Set[gast.AST] = set()  # the reads of names that may have no value
        self.introduced: Dict[gast.AST, Set[str]] = {}  # by function

    def start(self) -> None:
        found = scopes.analyse(self.tree)
        for node in found:
            if isinstance(node, gast.FunctionDef):
                self.states.update(_plan(node, found, self.checked, self.introduced))

    def transform(self, tree: gast.FunctionDef) -> gast.FunctionDef:
        return self._introduce(super().transform(tree))

    def visit_FunctionDef(self, node: gast.FunctionDef) -> Any:
        return self._introduce(super().visit_FunctionDef(node))

    def visit_If(self, node: gast.If) -> Any:
        state = self.states.get(node)
        if state is None:
            return self.generic_visit(node)
        then, orelse = self.fresh("then", "else")
        self.generic_visit(node)
        return (
            self._function(then, node.body, state)
            + self._function(orelse, node.orelse, state)
            + self._cond(node.test, then, orelse, state)
        )

    def visit_Name(self, node: gast.Name) -> Any:
        return self.quote("_dy.read(name)", name=node) if node in self.checked else node

    def visit_AugAssign(self, node: gast.AugAssign) -> Any:
        self.generic_visit(node)
        if node not in self.checked:
            return node
        return self.quote_statements("_dy.read(name)", name=node.target.id) + [node]

    def _function(self, name: str, body: List[gast.AST], state: "_State") -> List[gast.AST]:
        made = self.quote_statements(
            "def function(params): body", function=name, params=_loads(state.names), body=body
        )
        end = body[-1] if body else self.at[-1]
        made[0].body += templates.statements("return (values,)", end, values=_loads(state.names))
        return made

    def _cond(self, test: gast.AST, then: str, orelse: str, state: "_State") -> List[gast.AST]:
        values = [
            self.quote("_dy.Undefined(name)", name=gast.Constant(name, None))
            if name in state.undefined
            else load
            for name, load in zip(state.names, _loads(state.names))
        ]
        template = "_dy.cond(test, then, orelse, (values,), names=(names,))"
        return self.quote_statements(
            f"(targets,) = {template}" if state.names else template,
            targets=_loads(state.names),
            test=test,
            then=then,
            orelse=orelse,
            values=values,
            names=[gast.Constant(name, None) for name in state.names],
        )

    def _introduce(self, function: gast.FunctionDef) -> gast.FunctionDef:
        """Give the names that may be used before they have a value one, at the start of their function."""
        names = sorted(self.introduced.get(function, ()))
        made = [
            statement
            for name in names
            for statement in templates.statements(
                "target = _dy.Undefined(name)", function, target=name, name=gast.Constant(name, None)
            )
        ]
        first = 1 if _has_docstring(function) else 0
        function.body[first:first] = made
        return function


class _State:
    """What passes through one ``if``: names, and those among them that certainly have no value before it."""

    def __init__(
        self, node: gast.If, names: Set[str], missing: Set[str], reads: Set[str], possible: Set[str]
    ):
        self.written = written(*node.body, *node.orelse)
        self.needed, self.missing, self.reads = names, missing, reads
        self.introduce = reads | (missing & possible)
        self.node = node
        self.names: List[str] = []
        self.undefined: Set[str] = set()

    def settle(self, introduced: Set[str]) -> None:
        """Fix names and their order; what the start of the function introduces passes every writer."""
        self.undefined = self.missing - introduced
        self.names = _in_order(self.node, self.needed | (self.written & introduced))


def _plan(
    function: gast.FunctionDef,
    found: scopes.Scopes,
    checked: Set[gast.AST],
    introduced: Dict[gast.AST, Set[str]],
) -> Dict[gast.AST, _State]:
    """The ``if`` statements of one function that become calls; adds what to check and introduce for them."""
    live = liveness.analyse(function, found)
    known = assigned.analyse(function, found)
    states: Dict[gast.AST, _State] = {}
    fixed = {node for node in walk(function) if counts_frames(node)}
    for node in reversed(list(known.at_if)):  # inner ones before outer
        state = _state(node, found[function], live[node], known, states, fixed) if node in live else None
        if state is not None:
            states[node] = state
    names = set().union(*(state.introduce for state in states.values()))
    managed = names.union(*(state.missing for state in states.values()))
    for state in states.values():
        state.settle(names)
    introduced[function] = names
    checked.update(node for node in known.unsure if _name_read(node) in managed)
    return states


def _state(
    node: gast.If,
    scope: scopes.Scope,
    live: liveness.Live,
    known: assigned.Assigned,
    states: Dict[gast.AST, _State],
    fixed: Set[gast.AST],
) -> Optional[_State]:
    """What passes through ``node``; None where it has to stay a plain ``if``."""
    blocks = node.body + node.orelse
    names = written(*blocks)
    if _must_stay(blocks, fixed) or names - scope.locals or names & scope.captured:
        return None
    for block in (node.body, node.orelse):
        if not _all_or_nothing(block, live.on_raise, states):
            return None
    unsure = {_name_read(inner) for inner in known.unsure}
    unsure_inside = {inner.id for inner in known.unsure_inside}
    # a name read without a value anywhere must stay a local of the function: also if what a block writes is
    # not read
    needed = names & (live.after | live.body | live.orelse | unsure)
    certain, possible = known.at_if[node]
    missing = needed - certain
    reads = {_name_read(inner) for inner in own_nodes(*blocks) if inner in known.unsure} - names
    if (
        names & unsure_inside
        or (missing | reads) & (scope.captured | unsure_inside)
        or (needed | reads) & scope.deleted
    ):
        return None
    if unsure_inside and any(inner in known.unsure_inside for inner in walk(*blocks)):
        return None
    return _State(node, needed, missing, reads, set(possible))


def _must_stay(blocks: List[gast.AST], fixed: Set[gast.AST]) -> bool:
    """Whether control leaves the blocks other than at their end, or they hold what cannot be moved."""
    if _breaks_out(blocks) or fixed and any(node in fixed for node in walk(*blocks)):
        return True
    return any(
        isinstance(node, _STAY) or isinstance(node, gast.Name) and isinstance(node.ctx, gast.Del)
        for node in own_nodes(*blocks)
    )


_STAY = (gast.Return, gast.Raise, gast.Yield, gast.YieldFrom, gast.Await, gast.Global, gast.Nonlocal)


def _breaks_out(statements: List[gast.AST]) -> bool:
    """Whether a ``break`` or ``continue`` among ``statements`` belongs to a loop around them."""
    for node in statements:
        if isinstance(node, (gast.Break, gast.Continue)):
            return True
        if isinstance(node, (gast.For, gast.While)):
            inner = node.orelse
        elif isinstance(node, (gast.FunctionDef, gast.ClassDef)):
            inner = []
        else:
            inner = [child for child in children(node) if not isinstance(child, gast.expr)]
        if _breaks_out(inner):
            return True
    return False


def _all_or_nothing(block: List[gast.AST], on_raise: liveness.Names, states: Dict[gast.AST, _State]) -> bool:
    """Whether nothing in ``block`` can fail once a name is written that an exception handler may read.

    So it is if such names are written by nothing but an assignment to names at its very end; a converted
    ``if`` is one.
    """
    exposed = written(*block) & on_raise
    if not exposed:
        return True
    last = block[-1]
    if exposed & written(*block[:-1]):
        return False
    if isinstance(last, gast.If):
        return last in states and not exposed & written(last.test)
    return (
        isinstance(last, gast.Assign)
        and all(_is_name(target) for target in last.targets)
        and not exposed & written(last.value)
    )


def _is_name(target: gast.AST) -> bool:
    return (
        isinstance(target, gast.Name)
        or isinstance(target, gast.Tuple)
        and all(_is_name(part) for part in target.elts)
    )


def _name_read(node: gast.AST) -> str:
    return node.target.id if isinstance(node, gast.AugAssign) else node.id


def _in_order(node: gast.If, names: Set[str]) -> List[str]:
    """``names`` in the order in which the blocks write them."""
    order: List[str] = []
    for inner in own_nodes(*node.body, *node.orelse):
        order += [
            name
            for name in sorted(
                written(inner) if isinstance(inner, scopes.COMPREHENSIONS) else scopes.bound_by(inner)
            )
            if name in names and name not in order
        ]
    return order


def _loads(names: List[str]) -> List[gast.AST]:
    return [gast.Name(name, gast.Load(), None, None) for name in names]


def _has_docstring(function: gast.FunctionDef) -> bool:
    first = function.body[0]
    return (
        isinstance(first, gast.Expr)
        and isinstance(first.value, gast.Constant)
        and isinstance(first.value.value, str)
    )
