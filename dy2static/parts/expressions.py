"""Expressions that cannot be compiled, taken out of their statements: what is evaluated before and behind them can be."""
from __future__ import annotations

from typing import AbstractSet, Dict, Iterator, List, NamedTuple, Optional, Set

import gast

from ..library_facts.python import BUILTINS
from ..library_facts.table import named
from ..pyast import assigned, scopes, templates
from ..pyast.parser import RESERVED
from .statements import Block, Place, at_lines, blocks, computes, head_nodes, within

#: The names of what has been evaluated begin like this; each is read once.
VALUE = f"{RESERVED}_at_"

#: Builtins that stay with an operand that cannot be compiled.
_CONVERTING = named("leaves", BUILTINS)

#: What is evaluated in a statement before anything else of it has an effect.
_VALUES = {gast.Assign: "value", gast.AnnAssign: "value", gast.AugAssign: "value", gast.Return: "value", gast.Expr: "value",
           gast.If: "test"}

#: The operands of an expression that are evaluated in any case, in this order.
_OPERANDS = {
    gast.Attribute: ("value",), gast.Subscript: ("value", "slice"), gast.Slice: ("lower", "upper", "step"),
    gast.Starred: ("value",), gast.BinOp: ("left", "right"), gast.UnaryOp: ("operand",), gast.NamedExpr: ("value",),
    gast.IfExp: ("test",), gast.Tuple: ("elts",), gast.List: ("elts",), gast.Set: ("elts",),
    gast.Call: ("func", "args", "keywords"),
}

#: Functions that go by the graph of what they are given: what is computed for them in their statement stays with them.
_OF_GRAPHS = frozenset(("grad", "backward"))

#: Expressions in which no capture stops, or that have no value of their own.
_WITHOUT_SPOT = (gast.Name, gast.Constant, gast.Starred, gast.Slice)


def places_in(tree: gast.FunctionDef, spots: AbstractSet[Place]) -> Set[Place]:
    """Those of some places at which there is an expression that can be taken out."""
    return {spot for statement in _at(tree, spots) for node in head_nodes(statement) for spot in [_spot_of(node, spots)] if spot}


def _at(tree: gast.FunctionDef, spots: AbstractSet[Place]) -> List[gast.AST]:
    """The statements of the user's that hold some places, in a function or a part."""
    lines = {spot.line for spot in spots}
    return [statement for statement in within(tree.body) if not getattr(statement, "is_added", False)
            and not lines.isdisjoint(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))]


def take_out(tree: gast.FunctionDef, spots: AbstractSet[Place], lines: AbstractSet[int]) -> Set[gast.AST]:
    """Make statements of the expressions at some places, and of what is evaluated before them; gives those for Python.

    The tree is changed in place.  lines: of statements that Python carries out as a whole.

    Before:  y = x + F.relu(block(h))
    After:   _dy_1 = F.relu; _dy_2 = block(h); y = x + _dy_1(_dy_2)
    """
    if not spots:
        return set()
    found = scopes.analyse(tree)
    before = assigned.analyse(tree, found).before
    inner = [scope.nonlocals for scope in found.values() if scope.node is not tree]
    fixed = found[tree].locals.difference(*inner)
    whole, broken = at_lines(tree.body, lines), set()
    made: Dict[gast.AST, Block] = {}
    for statement in _at(tree, spots):
        cuts = {node for node in head_nodes(statement) if _spot_of(node, spots)}
        if cuts and statement in before and statement not in whole:
            taken = _Taken(statement, cuts, fixed & before[statement].certain)
            made[statement] = taken.block()
            broken |= taken.broken
    _replace(tree.body, made)
    for statements in made.values():
        names = {target.id for statement in statements[:-1] for target in statement.targets}
        tree.names.update(names)
        tree.bound.update(names)
    return broken


def _replace(block: Block, made: Dict[gast.AST, Block]) -> None:
    for statement in block:
        for inner in blocks(statement):
            _replace(inner, made)
    block[:] = [each for statement in block for each in made.get(statement, [statement])]


def _spot_of(node: gast.AST, spots: AbstractSet[Place]) -> Optional[Place]:
    """The place at which a capture stopped in this very expression.  Of one of several lines the place may be known in part."""
    if not isinstance(node, gast.expr) or isinstance(node, _WITHOUT_SPOT) or getattr(node, "lineno", None) is None:
        return None
    if isinstance(node, gast.Call) and getattr(node.func, "attr", getattr(node.func, "id", None)) in _OF_GRAPHS:
        return None
    place = Place.of(node)
    start = Place(place.line, place.col, place.line, place.col)
    return place if place in spots else start if start in spots and place.end_line > place.line else None


class _Slot(NamedTuple):
    """Where an operand stands: in a field of a node, or in a list there."""

    node: gast.AST
    field: str
    index: Optional[int] = None

    def get(self) -> gast.AST:
        """The operand."""
        value = getattr(self.node, self.field)
        return value if self.index is None else value[self.index]

    def put(self, operand: gast.AST) -> None:
        """Put another one in its place."""
        if self.index is None:
            setattr(self.node, self.field, operand)
        else:
            getattr(self.node, self.field)[self.index] = operand


def _operands(node: gast.AST) -> List[_Slot]:
    """The operands of an expression that are evaluated in any case, in the order of their evaluation."""
    if isinstance(node, gast.Compare):
        return [_Slot(node, "left"), _Slot(node, "comparators", 0)]
    if isinstance(node, gast.BoolOp):
        return [_Slot(node, "values", 0)]
    if isinstance(node, gast.Dict):
        pairs = [_Slot(node, field, number) for number in range(len(node.keys)) for field in ("keys", "values")]
        return [slot for slot in pairs if slot.get() is not None]
    if isinstance(node, gast.Subscript) and any(isinstance(item, gast.Slice) for item in getattr(node.slice, "elts", ())):
        return [_Slot(node, "value")]
    if isinstance(node, scopes.COMPREHENSIONS):
        return [_Slot(node.generators[0], "iter")]
    return [slot for field in _OPERANDS.get(type(node), ()) for slot in _in_field(node, field)]


def _in_field(node: gast.AST, field: str) -> Iterator[_Slot]:
    value = getattr(node, field)
    if field == "keywords":
        yield from (_Slot(keyword, "value") for keyword in value)
    elif isinstance(value, list):
        yield from (_Slot(node, field, number) for number in range(len(value)))
    elif value is not None:
        yield _Slot(node, field)


class _Taken:
    """One statement whose ``cuts`` are taken out of it.

    sure: the names that have a value, and keep it while the statement runs.  broken: the statements for Python.
    """

    def __init__(self, statement: gast.AST, cuts: Set[gast.AST], sure: AbstractSet[str]):
        self.statement, self.broken = statement, {statement}
        field = _VALUES.get(type(statement))
        self.value = None if field is None else _Slot(statement, field)
        self.sure = sure - (set() if self.value is None or self.value.get() is None else scopes.written(self.value.get()))
        self.parents = {child: node for node in head_nodes(statement) for child in gast.iter_child_nodes(node)}
        self.cuts = {self._with_conversion(node) for node in cuts}
        self.holding: Set[gast.AST] = set()
        for node in self.cuts:
            self.holding.update(self._upwards(node))
        self.made: Block = []
        self._before: List[tuple] = []                  # what stood in slots, to put it back

    def _upwards(self, node: gast.AST) -> Iterator[gast.AST]:
        while node is not self.statement:
            yield node
            node = self.parents[node]

    def _with_conversion(self, node: gast.AST) -> gast.AST:
        """The expression, or that around it which makes a host object of it."""
        for outer in list(self._upwards(node))[1:]:
            is_called = isinstance(outer, gast.Call) and (
                isinstance(outer.func, gast.Name) and outer.func.id in _CONVERTING and node in outer.args
                or isinstance(node, gast.Attribute) and outer.func is node and node.attr in ("item", "tolist"))
            if not is_called and not (isinstance(outer, gast.Attribute) and outer.value is node):
                break
            node = outer
        return node

    def block(self) -> Block:
        """The statements in place of this one; itself where there is nothing in them to compile."""
        value = self.value and self.value.get()
        if value not in self.holding or any(value not in self._upwards(cut) for cut in self.cuts) or self._reads_its_target():
            return [self.statement]
        self.broken = set()
        self._put(self.value, self._rest(value))
        self._finish()
        compiled = [made for made in self.made if made not in self.broken and computes(made)]
        if not compiled and (self.statement in self.broken or not computes(self.value.get())):
            for slot, operand in reversed(self._before):
                slot.put(operand)
            self.broken = {self.statement}
            return [self.statement]
        return [*self.made, self.statement]

    def _reads_its_target(self) -> bool:
        """Whether what is assigned to is read first, and need not be the same afterwards."""
        if not isinstance(self.statement, gast.AugAssign):
            return False
        target = self.statement.target
        return not isinstance(target, gast.Name) or target.id not in self.sure

    def _put(self, slot: _Slot, operand: gast.AST) -> None:
        self._before.append((slot, slot.get()))
        slot.put(operand)

    def _finish(self) -> None:
        """Let the statement itself end with the last cut, if that is its value; or begin with the rest of a test."""
        rest = self.value.get()
        if self.made and self.made[-1] in self.broken and self.made[-1].targets[0].id == getattr(rest, "id", None):
            last = self.made.pop()
            self.broken = self.broken - {last} | {self.statement}
            self.value.put(last.value)
        elif isinstance(self.statement, gast.If) and computes(rest):
            self._put(self.value, self._named(rest))

    def _rest(self, node: gast.AST) -> gast.AST:
        """What is left of an expression that holds a cut, once everything up to that has been evaluated."""
        slots, is_cut = _operands(node), node in self.cuts
        held = [number for number, slot in enumerate(slots) if slot.get() in self.holding]
        conditional = len(held) < sum(child in self.holding for child in _inner(node))
        last = max([*held, *(self._computing(slots) if is_cut else ())], default=-1)
        if conditional or not is_cut and not held or any(not _is_value(slot) for slot in slots[:last]):
            return self._named(node, is_cut=True)
        for number, slot in enumerate(slots[:last + 1]):
            operand = slot.get()
            rest = self._rest(operand) if number in held else operand
            if _is_value(slot) and (number < last or is_cut):
                rest = self._named(rest)
            self._put(slot, rest)
        return self._named(node, is_cut=True) if is_cut else node

    @staticmethod
    def _computing(slots: List[_Slot]) -> List[int]:
        """Which operands of a cut compute something, if all before the last of them can have names."""
        found = [number for number, slot in enumerate(slots) if computes(slot.get()) and _is_value(slot)]
        return found if found and all(_is_value(slot) for slot in slots[:found[-1]]) else []

    def _named(self, node: gast.AST, is_cut: bool = False) -> gast.AST:
        """A name for the value of an expression, which a statement gives it."""
        if isinstance(node, gast.Constant) or isinstance(node, gast.Name) and (node.id in self.sure or node.id.startswith(VALUE)):
            return node
        place = Place.of(node)
        ends = [place.end_col] if place.end_line == place.line else [place.end_line, place.end_col]
        name = VALUE + "_".join(map(str, [place.line, place.col, *ends]))
        made, = templates.statements("name = value", node, name=name, value=node)
        made.end_lineno, made.end_col_offset = place.end_line, place.end_col    # templates end on the first line
        self.made.append(made)
        if is_cut:
            self.broken.add(made)
        return templates.expression("name", node, name=name)


def _inner(node: gast.AST) -> Iterator[gast.AST]:
    """The expressions directly in one: also those in keywords and in the clauses of comprehensions."""
    for child in gast.iter_child_nodes(node):
        if isinstance(child, (gast.keyword, gast.comprehension)):
            yield from _inner(child)
        else:
            yield child


def _is_value(slot: _Slot) -> bool:
    """Whether an operand stands for one value: not for several, as ``*values``, and not for part of an index."""
    if isinstance(slot.get(), (gast.Starred, gast.Slice)):
        return False
    if isinstance(slot.node, gast.keyword):
        return slot.node.arg is not None
    if isinstance(slot.node, gast.Dict) and slot.field == "values":
        return slot.node.keys[slot.index] is not None
    return True
