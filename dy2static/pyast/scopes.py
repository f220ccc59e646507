"""Which names a function, and every scope in it, binds, reads and captures."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

import gast

from dy2static.pyast.kinds import BINDS, may_hold

FUNCTIONS = (gast.FunctionDef, gast.AsyncFunctionDef, gast.Lambda)
COMPREHENSIONS = (gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)
SCOPES = FUNCTIONS + COMPREHENSIONS + (gast.ClassDef,)
_SCOPES = frozenset(SCOPES)


class Scope:
    """The names of one function, lambda, comprehension or class body."""

    def __init__(self, node: gast.AST, parent: Optional["Scope"]):
        self.node, self.parent = node, parent
        self.bound: Set[str] = set()  # written here, parameters too
        self.read: Set[str] = set()  # read here, not in inner scopes
        self.deleted: Set[str] = set()  # by `del`, and by the end of `except ... as name`
        self.globals: Set[str] = set()
        self.nonlocals: Set[str] = set()
        self.free: Set[str] = set()  # taken from outside, by this scope or those in it; globals too
        self.captured: Set[str] = set()  # locals that an inner scope may use at any later time
        self.used_inside: Set[str] = set()  # locals that comprehensions use, at once

    @property
    def locals(self) -> Set[str]:
        """The names that live in this scope."""
        return self.bound - self.globals - self.nonlocals

    @property
    def is_immediate(self) -> bool:
        """Whether the code of this scope has run when the expression it stands in has its value."""
        return isinstance(self.node, (gast.ListComp, gast.SetComp, gast.DictComp))


Scopes = Dict[gast.AST, Scope]


def analyse(tree: gast.AST) -> Scopes:
    """The scope of a function definition and all scopes within, by their nodes."""
    scopes: Scopes = {}
    _enter(tree, None, scopes)
    for scope in scopes.values():
        for name in (scope.read | scope.nonlocals | scope.deleted) - scope.locals - scope.globals:
            _resolve(name, scope)
    return scopes


def parameters(arguments: gast.arguments) -> List[gast.Name]:
    """All parameters, positional ones first."""
    args = arguments
    named = args.posonlyargs + args.args + ([args.vararg] if args.vararg else []) + args.kwonlyargs
    return named + ([args.kwarg] if args.kwarg else [])


def own_nodes(*roots: gast.AST, bits: int = -1) -> Iterator[gast.AST]:
    """Every node that runs in the scope ``roots`` are in: what inner scopes hold is left out.

    bits: those that cannot hold these (`kinds.may_hold`) may be left out, too.
    """
    pending = list(reversed(roots))
    while pending:
        node = pending.pop()
        if node.__dict__.get("holds", -1) & bits or may_hold(node, bits):
            yield node
            found = evaluated_outside(node) if node.__class__ in _SCOPES else children(node)
            if found:
                found.reverse()
                pending += found


def walk(*roots: gast.AST) -> Iterator[gast.AST]:
    """Every node of some trees that may hold names, in the order of the source."""
    pending = list(reversed(roots))
    while pending:
        node = pending.pop()
        yield node
        found = children(node)
        if found:
            found.reverse()
            pending += found


def children(node: gast.AST) -> List[gast.AST]:
    """The child nodes that may hold names: all but contexts and operators."""
    found: List[gast.AST] = []
    for field in child_fields(node.__class__):
        value = getattr(node, field)
        if value.__class__ is list:
            if value:
                found += [item for item in value if isinstance(item, _AST)]
        elif value is not None and isinstance(value, _AST):
            found.append(value)
    return found


class _Fields(Dict[type, Tuple[str, ...]]):
    """By node type: the fields in which nodes may be that hold names."""

    def __missing__(self, kind: Any) -> Tuple[str, ...]:
        fields = self[kind] = tuple(
            field for field in kind._fields if field not in _NO_CHILDREN and (kind, field) not in _PLAIN
        )
        return fields


_AST = gast.AST
_NO_CHILDREN = ("ctx", "op", "ops", "id", "attr", "type_comment", "kind", "arg", "module", "level", "asname")
_PLAIN = (
    (gast.Constant, "value"),
    (gast.FunctionDef, "name"),
    (gast.Global, "names"),
    (gast.Nonlocal, "names"),
    (gast.alias, "name"),
)

#: The fields of a node type in which nodes may be that hold names.
child_fields = _Fields().__getitem__


def evaluated_outside(node: gast.AST) -> List[gast.AST]:
    """The parts of a scope's node that run in the scope around it."""
    if isinstance(node, COMPREHENSIONS):
        return [node.generators[0].iter]
    if isinstance(node, gast.ClassDef):
        return node.decorator_list + node.bases + node.keywords
    defaults = node.args.defaults + [default for default in node.args.kw_defaults if default is not None]
    if isinstance(node, gast.Lambda):
        return defaults
    annotations = [param.annotation for param in parameters(node.args) if param.annotation is not None]
    return node.decorator_list + defaults + annotations + ([node.returns] if node.returns is not None else [])


def identifiers(node: gast.AST) -> List[str]:
    """The names of variables that one node itself mentions, not the nodes within it."""
    if isinstance(node, gast.Name):
        return [node.id]
    if isinstance(node, (gast.Global, gast.Nonlocal)):
        return node.names
    return bound_by(node)


def bound_by(node: gast.AST) -> List[str]:
    """The names that one node itself binds, not the nodes within it."""
    if node.__class__ not in _BINDING:
        return []
    if isinstance(node, gast.Name):
        return [] if isinstance(node.ctx, (gast.Load, gast.Del)) else [node.id]
    if isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef)):
        return [node.name]
    if isinstance(node, (gast.Import, gast.ImportFrom)):
        return [alias.asname or alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, (gast.MatchAs, gast.MatchStar)):
        return [node.name] if node.name is not None else []
    if isinstance(node, gast.MatchMapping):
        return [node.rest] if node.rest is not None else []
    return []


_BINDING = frozenset((
    *(gast.Name, gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef, gast.Import, gast.ImportFrom),
    *(gast.MatchAs, gast.MatchStar, gast.MatchMapping),
))  # fmt: skip


def targets(target: gast.AST) -> List[str]:
    """The names that a target of an assignment stores to."""
    if isinstance(target, gast.Name):
        return [target.id]
    if isinstance(target, gast.Starred):
        return targets(target.value)
    if isinstance(target, (gast.Tuple, gast.List)):
        return [name for element in target.elts for name in targets(element)]
    return []


def written(*roots: gast.AST) -> Set[str]:
    """The names that nodes of one scope bind in it, by any means (also ``:=`` in a comprehension)."""
    names: Set[str] = set()
    for node in own_nodes(*roots, bits=BINDS):
        names.update(bound_by(node))
        if isinstance(node, COMPREHENSIONS):
            names.update(_walrus_targets(node))
    return names


def _walrus_targets(comprehension: gast.AST) -> Iterator[str]:
    """The names that ``:=`` inside a comprehension binds outside it."""
    pending = children(comprehension)
    while pending:
        node = pending.pop()
        if isinstance(node, gast.NamedExpr):
            yield node.target.id
        if not isinstance(node, FUNCTIONS):
            pending.extend(children(node))


def _enter(node: gast.AST, parent: Optional[Scope], scopes: Scopes) -> None:
    scope = scopes[node] = Scope(node, parent)
    if isinstance(node, FUNCTIONS):
        scope.bound.update(param.id for param in parameters(node.args))
    for inner in own_nodes(*inside(node)):
        if inner.__class__ in _NOTED:
            _note(inner, scope)
            if inner.__class__ in _SCOPES:
                _enter(inner, scope, scopes)


def inside(node: gast.AST) -> List[gast.AST]:
    """The parts of a scope's node that run in it."""
    if isinstance(node, gast.Lambda):
        return [node.body]
    if not isinstance(node, COMPREHENSIONS):
        return node.body
    parts = [node.key, node.value] if isinstance(node, gast.DictComp) else [node.elt]
    for number, generator in enumerate(node.generators):
        parts += [generator.target, *generator.ifs] + ([generator.iter] if number else [])
    return parts


def _note(node: gast.AST, scope: Scope) -> None:
    scope.bound.update(bound_by(node))
    if isinstance(node, gast.Name) and isinstance(node.ctx, gast.Load):
        scope.read.add(node.id)
    elif isinstance(node, gast.Name) and isinstance(node.ctx, gast.Del):
        scope.bound.add(node.id)
        scope.deleted.add(node.id)
    elif isinstance(node, gast.AugAssign) and isinstance(node.target, gast.Name):
        scope.read.add(node.target.id)
    elif isinstance(node, gast.ExceptHandler) and node.name is not None:
        scope.deleted.add(node.name.id)
    elif isinstance(node, gast.Global):
        scope.globals.update(node.names)
    elif isinstance(node, gast.Nonlocal):
        scope.nonlocals.update(node.names)
    elif isinstance(node, gast.NamedExpr) and isinstance(scope.node, COMPREHENSIONS):
        scope.nonlocals.add(node.target.id)
        holder = scope
        while isinstance(holder.node, COMPREHENSIONS) and holder.parent is not None:
            holder = holder.parent
        holder.bound.add(node.target.id)


_NOTED = _BINDING.union(
    SCOPES, (gast.AugAssign, gast.ExceptHandler, gast.Global, gast.Nonlocal, gast.NamedExpr)
)


def _resolve(name: str, scope: Scope) -> None:
    """Note in the scopes around that ``scope`` takes ``name`` from them."""
    late = False
    while True:
        scope.free.add(name)
        late = late or not scope.is_immediate
        if scope.parent is None:
            return
        scope = scope.parent
        if isinstance(scope.node, gast.ClassDef):
            continue  # the names of a class body are not seen from the functions in it
        if name in scope.globals:
            return
        if name in scope.locals:
            (scope.captured if late else scope.used_inside).add(name)
            return
