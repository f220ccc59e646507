"""What the analyses of names say of small functions."""

import textwrap

import gast
import pytest
from parsed_text import parse_text

from dy2static.pyast import assigned, liveness, scopes


def function(body):
    return parse_text("def f(a, b):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    "))


SCOPES = [
    # body, locals, captured, used by comprehensions at once
    ("c = a", "abc", "", ""),
    ("global c; c = a", "ab", "", ""),
    ("import os.path, m.n as c; from x import y", "a b os c y", "", ""),
    ("for c, (d, *e) in a: pass", "abcde", "", ""),
    ("with a as c, b as (d, e.x): pass", "abcd", "", ""),
    ("try: pass\nexcept E as c: pass", "abc", "", ""),
    ("def g(x=a, *y: b) -> a:\n    z = b\n    return c", "abg", "b", ""),
    ("def g():\n    nonlocal a\n    a = 1", "abg", "a", ""),
    ("def g():\n    def h():\n        return a", "abg", "a", ""),
    ("def g():\n    a = 1\n    def h():\n        return a", "abg", "", ""),
    ("def g():\n    global a\n    def h():\n        return a", "abg", "", ""),
    ("class C(a):\n    b = b\n    def g(self): return b", "abC", "b", ""),
    ("class C:\n    x = a", "abC", "a", ""),
    ("c = [a + x for x in b for y in x]", "abc", "", "a"),
    ("c = (a + x for x in b)", "abc", "a", ""),
    ("c = [lambda: a + x for x in b]", "abc", "a", ""),
    ("c = {x: [a for y in x] for x in b}", "abc", "", "a"),
    ("c = [d := x for x in b]", "abcd", "", "d"),
    ("c = lambda x=a: b", "abc", "b", ""),
    ("(c := a); d: int; e: int = 3; e += 1; del d", "abcde", "", ""),
]


def names(text):
    return set(text.split() if " " in text else text)


@pytest.mark.parametrize("body, local, captured, inside", SCOPES)
def test_scopes(body, local, captured, inside):
    tree = function(body)
    scope = scopes.analyse(tree)[tree]
    assert (scope.locals, scope.captured, scope.used_inside) == (names(local), names(captured), names(inside))


LIVE = [
    # body, live after the first `if`, in its body, in its else, and if it raises
    ("if a: c = 1\nelse: c = 2\nreturn c", "c", "", "", ""),
    ("if a: c = b\nreturn c", "c", "b", "c", ""),
    ("if a: c += 1\nreturn b", "b", "bc", "b", ""),
    ("while a:\n    if b: c = 1\n    d = c", "abc", "ab", "abc", ""),
    ("while a:\n    if b: break\n    c = 1\nreturn c", "a b", "c", "a b", ""),
    ("for c in a:\n    if b: d = 1\n    else: continue\nelse: return d\nreturn b", "b d", "b", "b d", ""),
    ("try:\n    if a: c = 1\nexcept E: return c\nreturn b", "b", "b c", "b", "c"),
    ("try:\n    if a: c = 1\nfinally: d = c", "c", "c", "c", "c"),
    ("with a:\n    if b: c = 1\nreturn c", "c", "c", "c", "c"),
    ("if a: return c\nreturn b", "b", "c", "b", ""),
    ("if a: c = 1\nx = lambda: c", "c", "", "c", ""),
    ("if a: c = 1\ndel c", "c", "", "c", ""),
    ("if a: c = 1\nd.x, e = 1, 2\ne += d", "d", "d", "d", ""),
    ("if a: c = 1\nreturn [c for c in b]", "b", "b", "b", ""),
]


@pytest.mark.parametrize("body, after, then, orelse, on_raise", LIVE)
def test_liveness(body, after, then, orelse, on_raise):
    tree = function(body)
    live = liveness.analyse(tree, scopes.analyse(tree))
    first = min((node for node in live if isinstance(node, gast.If)), key=lambda node: node.lineno)
    builtin = {"E"}
    assert [set(part) - builtin for part in live[first]] == [
        names(part) for part in (after, then, orelse, on_raise)
    ]


ASSIGNED = [
    # body, the names read that may have no value
    ("c = a; return c", ""),
    ("return c, open; c = 1", "c"),
    ("if a: c = 1\nreturn c", "c"),
    ("if a: c = 1\nelse: c = 2\nreturn c", ""),
    ("if a: c = 1\nelse: raise b\nreturn c", ""),
    ("for c in a: pass\nreturn c", "c"),
    ("for c in a: d = c\nelse: d = 1\nreturn d", ""),
    ("while True:\n    c = 1\n    if c: break\nreturn c", ""),
    ("while a:\n    c = 1\n    break\nreturn c", "c"),
    ("while a:\n    d = c\n    c = 1", "c"),
    ("c = 1\nwhile a:\n    d = c\n    del c", "c"),
    ("try: c = 1\nexcept E: c = 2\nreturn c", ""),
    ("try: c = 1\nexcept E: pass\nreturn c", "c"),
    ("try: c = 1\nexcept E: b = c\nreturn a", "c"),
    ("try: c = 1\nfinally: d = c", "c"),
    ("try: c = 1\nfinally: pass\nreturn c", ""),
    ("try: pass\nexcept E as c: b = c\nreturn c", "c"),
    ("c = 1\ntry: pass\nexcept E as c: pass\nreturn c", "c"),
    ("with a: c = 1\nreturn c", "c"),
    ("with a as c: return c\nreturn c", "c"),
    ("c += 1", "c"),
    ("c: int\nreturn c", "c"),
    ("c = 1\ndel c\nreturn c", "c"),
    ("del c", "c"),
    ("a and (c := 1)\nreturn c", "c"),
    ("(c := a) and c\nreturn c", ""),
    ("a < (c := 1) < (d := 2)\nreturn c, d", "d"),
    ("assert (c := 1)\nreturn c", "c"),
    ("return (c if a else b), (c := 1)", "c"),
    ("def c(): return d\nreturn c", ""),
    ("[c := x for x in a]\nreturn c", "c"),
]


@pytest.mark.parametrize("body, unsure", ASSIGNED)
def test_assigned(body, unsure):
    tree = function(body)
    found = assigned.analyse(tree, scopes.analyse(tree)).unsure
    assert {node.target.id if isinstance(node, gast.AugAssign) else node.id for node in found} == names(
        unsure
    )


def test_assigned_in_comprehension():
    tree = function("if a: c = 1\nreturn [c for _ in b]")
    found = assigned.analyse(tree, scopes.analyse(tree))
    assert not found.unsure and [node.id for node in found.unsure_inside] == ["c"]
