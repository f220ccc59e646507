"""``match`` statements."""

from __future__ import annotations

from typing import Any, List, Tuple

import gast

from dy2static.pyast import assigned, scopes, templates
from dy2static.pyast.scopes import walk
from dy2static.transformers.base import Transformer, count_as_truth
from dy2static.transformers.super_calls import SuperCalls


class Matches(Transformer):
    """Make the cases of a ``match`` an ``if`` each, which tests the subject against a pattern that is an object.

    What a case binds is bound where its pattern matches, before its guard is asked.  A ``match`` stays in a class
    body, and where a pattern reads a local that may have no value.

    Before:
        match h:
            case 0 | 1 if n:
                y = a
            case [c, *rest]:
                y = c
            case _:
                y = b
        return y
    After:
        subject_0 = h
        matched_0, bound_0 = _dy.match(subject_0, _dy.patterns.Either(_dy.patterns.Value(lambda: 0), _dy.patterns.Value(lambda: 1)))
        if matched_0 and n:
            y = a
        else:
            matched_1, bound_1 = _dy.match(subject_0, _dy.patterns.Sequence_(_dy.patterns.Name(), _dy.patterns.Rest()))
            if matched_1:
                c, rest = bound_1
                y = c
            else:
                y = b
        return y
    """

    requires = (SuperCalls,)
    changes = (gast.Match,) if hasattr(gast, "Match") else ()
    makes = (gast.If, gast.BoolOp, gast.UnaryOp)

    def visit_Match(self, node: gast.AST) -> Any:
        movable = not isinstance(self.within[-1], gast.ClassDef) and not self._unsure(node)
        self.generic_visit(node)
        if not movable:
            return node
        (subject,) = self.fresh("subject")
        made = templates.statements("subject = value", node.subject, subject=subject, value=node.subject)
        return made + self._cases(node.cases, subject)

    def _cases(self, cases: List[gast.AST], subject: str) -> List[gast.AST]:
        """The first case, and in its ``else`` the others."""
        if not cases:
            return []
        case, others = cases[0], cases[1:]
        at = case.pattern
        if isinstance(at, gast.MatchAs) and at.pattern is None:  # it matches everything
            made = templates.statements("name = value", at, name=at.name, value=subject) if at.name else []
            if case.guard is None:
                return made + case.body
            return made + self._if(case.guard, case.body, self._cases(others, subject))
        matched, bound = self.fresh("matched", "bound")
        pattern, names = self._pattern(at)
        made = templates.statements(
            "matched, bound = _dy.match(subject, pattern)",
            at, matched=matched, bound=bound, subject=subject, pattern=pattern,
        )  # fmt: skip
        test = templates.expression("matched", at, matched=matched)
        bind = templates.statements("(names,) = bound", at, names=_stores(names), bound=bound) if names else []
        if case.guard is not None and not bind:
            test = templates.expression("matched and guard", at, matched=matched, guard=case.guard)
        elif case.guard is not None:
            (took,) = self.fresh("took")
            guarded = templates.statements("took = not not guard", case.guard, took=took, guard=case.guard)
            none = templates.statements("took = False", at, took=took)
            made += self._if(test, bind + guarded, none)
            test, bind = templates.expression("took", at, took=took), []
        return made + self._if(test, bind + case.body, self._cases(others, subject))

    def _if(self, test: gast.AST, body: List[gast.AST], orelse: List[gast.AST]) -> List[gast.AST]:
        count_as_truth(test)
        made = templates.statements("if test: body", test, test=test, body=body)
        made[0].orelse = orelse
        return made

    def _pattern(self, node: gast.AST) -> Tuple[gast.AST, List[str]]:
        """The object for a pattern, and the names that it binds, in order."""
        return getattr(self, f"_{type(node).__name__}")(node)

    def _made(self, name: str, node: gast.AST, parts: List[gast.AST] = (), **holes: Any) -> Tuple[gast.AST, List[str]]:
        """``_dy.patterns.name(…)`` of patterns, and all their names."""
        patterns = [self._pattern(part) for part in parts]
        call = templates.expression(f"_dy.patterns.{name}", node, parts=[each for each, _ in patterns], **holes)
        return call, [bound for _, names in patterns for bound in names]

    def _MatchValue(self, node: gast.AST) -> Any:
        return self._made("Value(lambda: value)", node, value=node.value)

    def _MatchSingleton(self, node: gast.AST) -> Any:
        return self._made("Same(value)", node, value=gast.Constant(node.value, None))

    def _MatchAs(self, node: gast.AST) -> Any:
        if node.name is None:
            return self._made("Anything()", node)
        made, names = self._made("Name(parts)", node, [] if node.pattern is None else [node.pattern])
        return made, [*names, node.name]

    def _MatchStar(self, node: gast.AST) -> Any:
        if node.name is None:
            return self._made("Rest(0)", node)
        return self._made("Rest()", node)[0], [node.name]

    def _MatchSequence(self, node: gast.AST) -> Any:
        return self._made("Sequence_(parts)", node, node.patterns)

    def _MatchMapping(self, node: gast.AST) -> Any:
        keys = gast.Tuple(node.keys, gast.Load())
        made, names = self._made("Mapping(lambda: keys, parts)", node, node.patterns, keys=keys)
        if node.rest is not None:
            made.keywords = [gast.keyword("rest", templates.expression("True", node))]
            names.append(node.rest)
        return made, names

    def _MatchClass(self, node: gast.AST) -> Any:
        made, names = self._made("Instance(lambda: cls, parts)", node, node.patterns, cls=node.cls)
        for name, part in zip(node.kwd_attrs, node.kwd_patterns):
            pattern, bound = self._pattern(part)
            made.keywords.append(gast.keyword(name, pattern))
            made.holds |= pattern.holds
            names += bound
        return made, names

    def _MatchOr(self, node: gast.AST) -> Any:
        made, _ = self._made("Either(parts)", node, node.patterns)
        each = [self._pattern(part)[1] for part in node.patterns]
        if each[0]:
            order = repr(tuple(tuple(names.index(name) for name in each[0]) for names in each))
            made.keywords = [gast.keyword("order", templates.expression(order, node))]
        return made, each[0]

    def _unsure(self, node: gast.AST) -> bool:
        """Whether a pattern reads a local that may have no value."""
        found = scopes.analyse(self.tree)
        known = [assigned.analyse(function, found) for function in found if isinstance(function, gast.FunctionDef)]
        unsure = set().union(*(each.unsure | each.unsure_inside for each in known))
        return any(part in unsure for case in node.cases for part in walk(case.pattern))


def _stores(names: List[str]) -> List[gast.AST]:
    return [gast.Name(name, gast.Store(), None, None) for name in names]
