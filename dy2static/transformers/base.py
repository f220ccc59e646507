"""What every transformer is made of."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List, Optional, Tuple, Type

import gast

from dy2static.pyast import scopes, templates
from dy2static.pyast.kinds import bits_of, is_block
from dy2static.transformers.frames import reads_names_unseen


class Transformer:
    """Visits the body of one function and returns it changed.

    A subclass says in ``removes`` which node types are gone when it is done, and in ``requires`` which
    transformers must run before it.  Its docstring shows ``Before:`` and ``After:``; a test checks both.

    Left as they are: what runs outside the function (its own defaults and annotations), annotations
    that are not evaluated, and patterns.  A transformer that adds names leaves functions alone that could see them
    (``locals()``, ``eval``).
    """

    adds_names: ClassVar[bool] = True

    #: What the transformer changes: a function without any such node is not visited.
    changes: ClassVar[Tuple[type, ...]] = (gast.AST,)

    requires: ClassVar[Tuple[Type["Transformer"], ...]] = ()
    removes: ClassVar[Tuple[Type[gast.AST], ...]] = ()

    #: Node types among the ``changes`` of later transformers that it makes where there may have been none.
    makes: ClassVar[Tuple[Type[gast.AST], ...]] = ()

    def transform(self, tree: gast.FunctionDef) -> gast.FunctionDef:
        """The function definition ``tree``, changed in place."""
        if not tree.holds & self._change_bits or self.adds_names and reads_names_unseen(tree):
            return tree
        self.tree = tree
        self.at: List[gast.AST] = [tree]
        self.within: List[gast.AST] = [
            tree
        ]  # the functions, classes and comprehensions around, innermost last
        self.start()
        tree.body = self.visit_all(tree.body)
        tree.holds |= self._make_bits
        return tree

    def start(self) -> None:
        """Called before the first visit; for what a subclass wants to know beforehand."""

    _methods: ClassVar[Dict[type, Tuple[Any, int]]] = {}
    _change_bits = _make_bits = _own_bits = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._methods, cls._change_bits, cls._make_bits = {}, bits_of(cls.changes), bits_of(cls.makes)
        own = [name for base in cls.__mro__[: cls.__mro__.index(Transformer)] for name in vars(base)]
        visited = [name[len("visit_") :] for name in own if name.startswith("visit_")]
        cls._own_bits = bits_of(tuple(getattr(gast, name) for name in visited))

    def visit(self, node: gast.AST) -> Any:
        """The node changed; it is left alone if nothing that this transformer has a method for is in it."""
        method, bits = self._methods.get(node.__class__) or self._method(node.__class__)
        if not node.__dict__.get("holds", -1) & bits:
            return node
        self.at.append(node)
        try:
            return self.generic_visit(node) if method is None else method(self, node)
        finally:
            self.at.pop()

    @classmethod
    def _method(cls, kind: type) -> Tuple[Any, int]:
        """The method for nodes of a kind, and the bits of the kinds that make a visit worthwhile."""
        method = getattr(cls, f"visit_{kind.__name__}", None)
        # blocks come to hold more than they did in the source
        bits = -1 if is_block(kind) else 0 if method is None and kind in _HOLDING_NOTHING else cls._own_bits
        cls._methods[kind] = method, bits
        return method, bits

    def generic_visit(self, node: gast.AST) -> gast.AST:
        """Visit what ``node`` holds; as everywhere, but for contexts and operators, which hold nothing."""
        for field in scopes.child_fields(node.__class__):
            value = getattr(node, field)
            if value.__class__ is list:
                if value:
                    value[:] = self.visit_all(value)
            elif isinstance(value, gast.AST):
                setattr(node, field, self.visit(value))
        return node

    def visit_all(self, nodes: List[gast.AST]) -> List[gast.AST]:
        """The nodes of a list, each visited; one may become none or several."""
        visited: List[gast.AST] = []
        for node in nodes:
            result = self.visit(node) if isinstance(node, gast.AST) else [node]
            visited += result if isinstance(result, list) else [] if result is None else [result]
        return visited

    # What is inside another scope is visited with that scope on `within`.

    def visit_FunctionDef(self, node: gast.FunctionDef) -> Any:
        node.decorator_list = self.visit_all(node.decorator_list)
        self.visit_defaults(node.args)
        for parameter in scopes.parameters(node.args):
            parameter.annotation = self.visit_annotation(parameter.annotation)
        node.returns = self.visit_annotation(node.returns)
        self.within.append(node)
        node.body = self.visit_all(node.body)
        self.within.pop()
        return node

    def visit_Lambda(self, node: gast.Lambda) -> Any:
        self.visit_defaults(node.args)
        self.within.append(node)
        node.body = self.visit(node.body)
        self.within.pop()
        return node

    def visit_ClassDef(self, node: gast.ClassDef) -> Any:
        for field in (node.decorator_list, node.bases, node.keywords):
            field[:] = self.visit_all(field)
        self.within.append(node)
        node.body = self.visit_all(node.body)
        self.within.pop()
        return node

    def visit_comprehensions(self, node: gast.AST) -> Any:
        first = node.generators[0]
        iterable = first.iter = self.visit(first.iter)
        first.iter = gast.Constant(None, None)  # visited already, outside the scope of the rest
        self.within.append(node)
        self.generic_visit(node)
        self.within.pop()
        first.iter = iterable
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehensions

    def visit_AnnAssign(self, node: gast.AnnAssign) -> Any:
        node.target = self.visit(node.target)
        node.value = node.value and self.visit(node.value)
        if isinstance(self.within[-1], gast.ClassDef):
            node.annotation = self.visit_annotation(node.annotation)
        return node

    def visit_annotation(self, node: Optional[gast.AST]) -> Optional[gast.AST]:
        """Visit an annotation, unless it is kept as text."""
        return node if node is None or self.tree.postponed else self.visit(node)

    def visit_match_case(self, node: gast.AST) -> Any:
        node.guard = node.guard and self.visit(node.guard)
        node.body = self.visit_all(node.body)
        return node

    def visit_defaults(self, arguments: gast.arguments) -> None:
        """Visit the defaults of the parameters of an inner function."""
        arguments.defaults = self.visit_all(arguments.defaults)
        arguments.kw_defaults = [default and self.visit(default) for default in arguments.kw_defaults]

    def quote(self, template: str, **holes: templates.Hole) -> gast.AST:
        """The expression ``template``, its holes filled, at the place of the node being visited."""
        return templates.expression(template, self.at[-1], **holes)

    def quote_statements(self, template: str, **holes: templates.Hole) -> List[gast.AST]:
        """The statements ``template``, their holes filled, at the place of the node being visited."""
        return templates.statements(template, self.at[-1], **holes)

    def fresh(self, *stems: str) -> Tuple[str, ...]:
        """Names ``stem_k``, one k for all stems, that nothing in the function uses."""
        number = 0
        while any(f"{stem}_{number}" in self.tree.names for stem in stems):
            number += 1
        names = tuple(f"{stem}_{number}" for stem in stems)
        self.tree.names.update(names)
        self.tree.bound.update(names)
        return names


_HOLDING_NOTHING = (gast.Name, gast.Constant, gast.Pass, gast.Break, gast.Continue, gast.Global, gast.Nonlocal)


def count_as_truth(test: gast.AST) -> None:
    """Note that of this expression, and of the operands of an ``and``, ``or`` or ``not``, only the truth counts."""
    if isinstance(test, gast.BoolOp):
        test.counts_as_truth = True
        for value in test.values:
            count_as_truth(value)
    elif isinstance(test, gast.UnaryOp) and isinstance(test.op, gast.Not):
        count_as_truth(test.operand)


def has_docstring(function: gast.FunctionDef) -> bool:
    """Whether the first statement of a function is its docstring."""
    first = function.body[0]
    return (
        isinstance(first, gast.Expr)
        and isinstance(first.value, gast.Constant)
        and isinstance(first.value.value, str)
    )


def is_dy(node: gast.AST) -> bool:
    """Whether ``node`` is a call of something of ``_dy``: code that a transformer has made."""
    if not isinstance(node, gast.Call) or not isinstance(node.func, gast.Attribute):
        return False
    owner = node.func.value
    while isinstance(owner, gast.Attribute):
        owner = owner.value
    return isinstance(owner, gast.Name) and owner.id == "_dy"


def is_self(node: gast.AST) -> bool:
    """Whether a node is what methods call ``self``."""
    return isinstance(node, gast.Name) and node.id == "self"
