"""The trees of a divided function: itself, with calls of its parts, and of each part."""
from __future__ import annotations

from typing import Any, Dict, List, Set

import gast

from ..pyast import scopes, templates
from ..pyast.parser import RESERVED
from ..pyast.trees import copy_of
from ..transformers.base import Transformer, has_docstring, is_dy
from .division import Division, Key, Run
from .expressions import VALUE
from .statements import Place, blocks, head_nodes, leaving, within

#: How the call of a part says which way it ended.
END, RETURN, BREAK, CONTINUE = range(4)

_CODES = {gast.Return: RETURN, gast.Break: BREAK, gast.Continue: CONTINUE}


def part_name(number: int) -> str:
    """Under which name the divided function finds a part."""
    return f"part_{number}"


def place_of_call(first: gast.AST) -> Place:
    """The place of the call of a part: the first line of its first statement."""
    place = Place.of(first)
    return place if place.end_line == place.line else Place(place.line, place.col, place.line, place.col)


def part_tree(tree: gast.FunctionDef, run: Run) -> gast.FunctionDef:
    """The definition of a part: a function of the names that come in, which gives those that go out.

    If a statement leaves the run, the part returns a pair: how it ended, and the names or the returned value.
    """
    key, first = run.key, run.statements[0]
    declared = [kind(list(names)) for kind, names in zip((gast.Global, gast.Nonlocal), run.declared) if names]
    body: List[gast.AST] = [templates.place(node, first) for node in declared]
    for name in key.ins:
        if name in key.unsure:
            body += _glue(f"if name is {RESERVED}.Unbound:\n    del name", first, name=name)
    statements = [copy_of(statement) for statement in run.statements]
    pairs = not key.is_tail and bool(run.leaves)
    if pairs:
        statements = _Leaving(statements, key).replaced()
    body += statements
    if not key.is_tail:
        body += _given(run, pairs)
    made = gast.FunctionDef(tree.name, _parameters(key.ins, tree), body, [], None, None, [])
    templates.place(made, tree)
    made.lineno, made.end_lineno, made.is_part = first.lineno, run.statements[-1].end_lineno, True
    return _described(made, tree)


def _parameters(names: Any, at: gast.AST) -> gast.arguments:
    params = [templates.place(gast.Name(name, gast.Param(), None, None), at) for name in names]
    return gast.arguments(params, [], None, [], [], None, [])


def _given(run: Run, pairs: bool) -> List[gast.AST]:
    """What a part ends with: it gives the names that go out."""
    key, last = run.key, run.statements[-1]
    found = _bound(key, last)
    names = _names(key.outs, gast.Load())
    if pairs:
        return found + _added(f"return {END}, names", last, names=names)
    return found + (_added("return names", last, names=names) if key.outs else [])


def _added(template: str, at: gast.AST, **holes: Any) -> List[gast.AST]:
    """Statements of a part that are none of the user's."""
    found = templates.statements(template, at, **holes)
    for statement in within(found):
        statement.is_added = True
    return found


def _glue(template: str, at: gast.AST, **holes: Any) -> List[gast.AST]:
    """Statements of a part that stay as they are where the part is divided: they see `Unbound`, as the user's never do."""
    found = _added(template, at, **holes)
    for statement in within(found):
        statement.is_glue = True
    return found


def _bound(key: Key, at: gast.AST) -> List[gast.AST]:
    """Statements that give each name that goes out a value, if it may have none."""
    found: List[gast.AST] = []
    for name in key.outs:
        if name in key.unsure:
            value = gast.Name(name, gast.Load(), None, None)
            value.is_sure = True                        # the call sees whether it has a value
            left = f"try:\n    name = {RESERVED}.leave(value)\nexcept NameError:\n    name = {RESERVED}.Unbound"
            found += _glue(left, at, name=name, value=value)
    return found


def _names(names: Any, context: gast.AST) -> gast.AST:
    found = [gast.Name(name, context, None, None) for name in names]
    return found[0] if len(found) == 1 else gast.Tuple(found, context)


class _Leaving:
    """Makes what leads out of a run a `return` that says so."""

    def __init__(self, statements: List[gast.AST], key: Key):
        self.statements, self.key = statements, key
        self.nodes: Set[gast.AST] = set(leaving(statements))

    def replaced(self) -> List[gast.AST]:
        """The statements, changed in place."""
        return self._block(self.statements)

    def _block(self, block: List[gast.AST]) -> List[gast.AST]:
        found: List[gast.AST] = []
        for statement in block:
            for inner in blocks(statement):
                inner[:] = self._block(inner)
            found += self._statement(statement) if statement in self.nodes else [statement]
        return found

    def _statement(self, node: gast.AST) -> List[gast.AST]:
        if isinstance(node, gast.Return):
            return templates.statements(f"return {RETURN}, value", node, value=node.value or gast.Constant(None, None))
        names = _names(self.key.outs, gast.Load())
        return _bound(self.key, node) + _added(f"return {_CODES[type(node)]}, names", node, names=names)


def divided_tree(tree: gast.FunctionDef, division: Division, numbers: Dict[gast.AST, int]) -> gast.FunctionDef:
    """Replace each part of the function by a call, in place.  numbers: the number of each part, by its first statement."""
    start, first = int(has_docstring(tree)), tree.body[0]
    tree.body = _Divided(tree, division, numbers).block(tree.body)
    tree.body[start:start] = _lost(tree, division, first)
    return _described(tree, tree)


def _lost(tree: gast.FunctionDef, division: Division, at: gast.AST) -> List[gast.AST]:
    """Statements that never run, and keep names local that nothing binds any more: only parts did."""
    bound = scopes.written(*tree.body).union(param.id for param in scopes.parameters(tree.args))
    named = {node.id for node in scopes.walk(*tree.body) if isinstance(node, gast.Name)}
    return [made for name in sorted(named & division.scope.locals - bound)
            for made in templates.statements("if False:\n    name = None", at, name=name)]


class _Divided:
    """Replaces each run by the call of its part, and asks for each call that Python makes what to call."""

    def __init__(self, tree: gast.FunctionDef, division: Division, numbers: Dict[gast.AST, int]):
        self.division, self.numbers = division, numbers
        self.routing = _Routing()
        self.routing.tree, self.routing.at, self.routing.within = tree, [tree], [tree]

    def block(self, block: List[gast.AST]) -> List[gast.AST]:
        """The statements that stand for those of a block."""
        found: List[gast.AST] = []
        left = 0
        for statement in block:
            run = self.division.runs.get(statement)
            if run is not None:
                found += self._call(run)
                left = len(run.statements)
            if left:
                left -= 1
                continue
            inside = list(blocks(statement))
            made = [self.block(inner) for inner in inside]
            for inner in inside:
                inner[:] = [gast.Pass()]                # what was in them is done already
            statement = self.routing.visit(statement)
            for inner, new in zip(list(blocks(statement)), made):
                inner[:] = new
            stays = inside or isinstance(statement, gast.Return) or getattr(statement, "is_added", False)
            found += [statement] if stays else [statement, *_used_up(statement)]
        return found

    def _call(self, run: Run) -> List[gast.AST]:
        key, first = run.key, run.statements[0]
        found: List[gast.AST] = []
        given: List[gast.AST] = []
        for number, name in enumerate(key.ins):
            if name in key.unsure:
                found += templates.statements(f"try:\n    given = name\nexcept NameError:\n    given = {RESERVED}.Unbound", first,
                                              name=name, given=f"_dy_given_{number}")
                name = f"_dy_given_{number}"
            given.append(gast.Name(name, gast.Load(), None, None))
        call = templates.expression(f"{RESERVED}.{part_name(self.numbers[first])}(given)", first, given=given)
        if key.is_tail:
            return found + templates.statements("return call", first, call=call)
        return found + self._taken(run, call)

    def _taken(self, run: Run, call: gast.AST) -> List[gast.AST]:
        """The call of a part, what it gives put into names, and where it leads."""
        first, outs = run.statements[0], run.key.outs
        used_up = _used_up(call)
        if not run.leaves:
            found = templates.statements("outs = call" if outs else "call", first, outs=_names(outs, gast.Store()), call=call)
            return found + used_up + self._unbound(run)
        found = templates.statements("_dy_way, _dy_got = call", first, call=call) + used_up
        if gast.Return in run.leaves:
            found += templates.statements(f"if _dy_way == {RETURN}:\n    return _dy_got", first)
        if outs:
            found += templates.statements("outs = _dy_got", first, outs=_names(outs, gast.Store()))
        found += templates.statements("del _dy_got", first) + self._unbound(run)
        for kind, word in ((gast.Break, "break"), (gast.Continue, "continue")):
            if kind in run.leaves:
                found += templates.statements(f"if _dy_way == {_CODES[kind]}:\n    {word}", first)
        return found

    @staticmethod
    def _unbound(run: Run) -> List[gast.AST]:
        found: List[gast.AST] = []
        for name in run.key.outs:
            if name in run.key.unsure:
                found += templates.statements(f"if name is {RESERVED}.Unbound:\n    del name", run.statements[0], name=name)
        return found


def _used_up(node: gast.AST) -> List[gast.AST]:
    """A statement that forgets the values of expressions which a node reads: nothing else does."""
    read = sorted({each.id for each in head_nodes(node) if isinstance(each, gast.Name) and each.id.startswith(VALUE)
                   and isinstance(each.ctx, gast.Load)})
    return [made for name in read for made in templates.statements("del name", node, name=name)]


class _Routing(Transformer):
    """Calls that Python makes between parts go to compiled functions, where there are such.

    Before:  h = self.block(x) + helper(x)
    After:   h = _dy.call(self.block)(x) + _dy.call(helper)(x)
    """

    def visit_Call(self, node: gast.Call) -> Any:
        if is_dy(node):
            return node
        self.generic_visit(node)
        if not isinstance(node.func, (gast.Name, gast.Attribute, gast.Subscript, gast.Call)):
            return node
        if isinstance(node.func, gast.Name) and node.func.id == "super":
            return node
        node.func = self.quote(f"{RESERVED}.call(function)", function=node.func)
        return node

    def visit_Lambda(self, node: gast.Lambda) -> Any:
        return node

    def visit_FunctionDef(self, node: gast.FunctionDef) -> Any:
        return node

    def visit_ClassDef(self, node: gast.ClassDef) -> Any:
        return node


def _described(made: gast.FunctionDef, like: gast.FunctionDef) -> gast.FunctionDef:
    """A tree with what `parse` notes on one."""
    made.names = {*like.names, RESERVED}
    made.bound, made.deleted, made.keywords = set(like.bound), set(like.deleted) | set(like.bound), set(like.keywords)
    made.attributes = set(like.attributes)
    made.is_lambda, made.class_name, made.origin, made.holds = False, like.class_name, like.origin, -1
    made.postponed = like.postponed
    return made
