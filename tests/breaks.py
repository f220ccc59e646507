"""Breaks: calls that no capture follows and that leave every value as it is, put into random places of programs.

``insert(text, seed, often)`` gives a program with breaks.  What it calls stands below: a name of `NAMES` must be there when
the program runs.
"""
import ast
import random

from dy2static import register_lowering
from dy2static.runtime import hooks


def halt(value):
    """The value.  A capture stops here as at a debugger, whatever was decided before."""
    return value


halt.__module__ = "pdb"


def refuse(value):
    """The value.  A capture stops here as at an operation that it does not know."""
    return value


class _Refused:
    """What stands for `refuse` in a capture.  Its code is no line of the user's."""

    exec(compile("def __call__(self, value):\n    hooks.stage.capture.abort('this is refused')", "<refused>", "exec"),
         {"hooks": hooks}, locals())


register_lowering(refuse)(_Refused())


def inside(value):
    """The value, from a function that cannot be captured whole."""
    kept = refuse(value)
    return kept


def passed(value):
    """The value, from a function that calls one that cannot be captured whole."""
    found = [inside(item) for item in (value,)]
    return found[0]


def yielded(value):
    """Yield the value between breaks."""
    halt(0)
    yield value
    refuse(0)


class Held:
    """Keeps a value; its methods cannot be captured whole."""

    def __init__(self, value=None):
        self.kept = value

    @property
    def value(self):
        return refuse(self.kept)

    def __call__(self):
        halt(0)
        return self.kept

    def __iter__(self):
        yield refuse(self.kept)

    def __enter__(self):
        return halt(self)

    def __exit__(self, *error):
        refuse(0)


#: What the texts of programs use.
NAMES = {each.__name__: each for each in (halt, refuse, inside, passed, yielded, Held)}

_EXPRESSIONS = ("halt({})", "refuse({})", "refuse({})", "inside({})", "passed({})", "next(yielded({}))", "[*yielded({})][0]", "Held({}).value",
                "Held({})()", "(lambda held: refuse(held))({})")
_COMPREHENSION = "[held for held in Held({})][0]"                   # Python allows no `:=` there
_STATEMENTS = ("halt(0)", "refuse(0)", "refuse(0)", "inside(0)", "if refuse(1):\n    {}", "with Held():\n    {}", "try:\n    {}\nfinally:\n    halt(0)",
               "try:\n    refuse(0)\nfinally:\n    {}", "if halt(0):\n    pass\nelse:\n    {}")
_MODULES = ("F", "L", "np", "chainer")
_SKIPPED = (ast.Constant, ast.Starred, ast.Slice, ast.JoinedStr, ast.FormattedValue)


def insert(text, seed, often):
    """The text with breaks in its functions.

    often: the share of expressions that have one, twice that in some programs and one alone in others; of statements there
    are half as many.
    """
    tree, chosen = ast.parse(text), random.Random(f"{seed} breaks")
    places = [place for function in ast.walk(tree) if isinstance(function, ast.FunctionDef) for place in _places(function)]
    places = list({(id(parent), field, number): (parent, field, number) for parent, field, number in places}.values())
    often *= chosen.choice((0, 0.5, 1, 2))
    taken = [place for place in places if chosen.random() < often * (0.5 if _is_block(place) else 1)]
    taken = taken or chosen.sample(places, min(len(places), 1))
    for parent, field, number in sorted(taken, key=lambda place: -1 if place[2] is None else -place[2]):
        _break(parent, field, number, chosen)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _is_block(place):
    parent, field, number = place
    return number is not None and isinstance(getattr(parent, field)[number], ast.stmt)


def _places(function):
    """Where breaks may be in a function: parent, field, and number in a list."""
    waiting = [(function, "body")]
    while waiting:
        parent, field = waiting.pop()
        found = getattr(parent, field)
        for number, node in enumerate(found) if isinstance(found, list) else [(None, found)]:
            if isinstance(node, ast.stmt) and not isinstance(node, (ast.Global, ast.Nonlocal)) or _is_value(parent, field, node):
                yield parent, field, number
            if isinstance(node, ast.AST) and not isinstance(node, getattr(ast, "pattern", ())):
                waiting += [(node, name) for name in node._fields if name not in ("annotation", "returns", "decorator_list", "ctx", "op", "ops")]


def _is_value(parent, field, node):
    """Whether a break can be around an expression."""
    if not isinstance(node, ast.expr) or isinstance(node, _SKIPPED) or isinstance(parent, (ast.FormattedValue, ast.JoinedStr)):
        return False
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load) or isinstance(node, ast.Name) and node.id in _MODULES:
        return False
    if isinstance(node, ast.Tuple) and any(isinstance(item, ast.Slice) for item in node.elts):
        return False
    called = isinstance(parent, ast.Call) and field == "func" or isinstance(node, ast.Call) and getattr(node.func, "id", "") == "super"
    return not called and not isinstance(parent, (ast.ExceptHandler, ast.ClassDef))


def _break(parent, field, number, chosen):
    node = getattr(parent, field) if number is None else getattr(parent, field)[number]
    if not isinstance(node, ast.stmt):
        assigns = any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))
        form = chosen.choice((*_EXPRESSIONS, *[_COMPREHENSION] * (not assigns)))
        new = _with(ast.parse(form.format("HERE"), mode="eval").body, node)
        if number is None:
            setattr(parent, field, new)
        else:
            getattr(parent, field)[number] = new
        return
    form = chosen.choice(_STATEMENTS)
    made = [_with(each, node) for each in ast.parse(form.format("HERE")).body]
    first = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)         # a docstring
    getattr(parent, field)[number:number + 1] = made if "{" in form else [node, *made] if first else [*made, node]


class _Put(ast.NodeTransformer):
    """Put a node in the place of the name HERE."""

    def __init__(self, node):
        self.node = node

    def visit_Name(self, name):
        return self.node if name.id == "HERE" and isinstance(self.node, ast.expr) else name

    def visit_Expr(self, statement):
        if isinstance(statement.value, ast.Name) and statement.value.id == "HERE":
            return self.node
        return self.generic_visit(statement)


def _with(form, node):
    return _Put(node).visit(form)


# --- taking them out again, to see which are needed for a difference ------------------------------------------------------


def _breaks(tree):
    """The calls of breaks in a tree."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") in NAMES and len(node.args) == 1]


def count(text):
    """How many breaks with a value there are in a text."""
    return len(_breaks(ast.parse(text)))


def without(text, number):
    """The text with one of its breaks gone."""
    tree = ast.parse(text)
    gone = _breaks(tree)[number]
    return ast.unparse(ast.fix_missing_locations(_Without(gone).visit(tree))) + "\n"


class _Without(ast.NodeTransformer):
    """Put its value in the place of a break, and of what asks that for it."""

    def __init__(self, gone):
        self.gone = gone

    def visit(self, node):
        value = self.gone.args[0]
        inner = {ast.Attribute: lambda: node.value, ast.Subscript: lambda: node.value, ast.Call: lambda: node.func}.get(type(node), lambda: None)()
        if node is self.gone or inner is self.gone and self.gone.func.id in ("Held", "next"):
            return value
        if isinstance(node, ast.Call) and node.args == [self.gone] and getattr(node.func, "id", "") == "next":
            return value
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.List) and isinstance(node.value.elts[0], ast.Starred) and node.value.elts[0].value is self.gone:
            return value
        return super().visit(node)
