"""Who may import whom, and the doors that only one module may use.

A room is a module or folder directly under ``dy2static``.  Imports point strictly down the table, never to
another room of the same row; inside one room modules import each other without cycles.  Imports for type checkers count, too.
"""
import ast
import functools
import re
from pathlib import Path

import pytest

import dy2static
from dy2static.paddle.names import PaddleNames

pytestmark = pytest.mark.any_python

PACKAGE = Path(dy2static.__file__).parent

ROWS = (
    ("errors", "library_facts", "markup", "threads"), # below the others: even compat raises errors of ours
    ("config", "compat"),
    ("pyast", "ir", "options", "input_spec"),
    ("ops", "transformers", "runtime", "native"),
    ("lowering", "passes", "conversion"),
    ("record",),
    ("capture_context",),
    ("heap",),
    ("symbolic",),
    ("control_flow",),
    ("capture",),
    ("backends", "diagnostics"),
    ("program",),
    ("pipeline", "call_specs", "parts"),
    ("dispatch", "explorer"),
    ("static_function",),
    ("lazy", "saved", "static_graph", "training", "extensions", "freezing"),
    ("api", "export"),
    ("paddle", "cli", "check_gpu"),
    ("__init__", "__main__"),
)
ROW = {room: number for number, rooms in enumerate(ROWS) for room in rooms}

# imported inside functions, because not everybody has them
OPTIONAL = {"cupy", "onnx", "onnxruntime", "mpi4py", "scipy"}

# what a room must never import, besides what the rows forbid
NEVER = {
    "pyast": {"numpy", "chainer"},
    "ir": {"chainer"},
    "ops": {"chainer"},
    "passes": {"chainer", "dy2static.runtime"},
}

# what one place alone may import
ONE_DOOR_IMPORTS = {
    "inspect": {"pyast/source.py"},
    "safetensors": {"saved/files.py"},
    "subprocess": {"native/process.py", "compat/doctor.py"},
}

# what one place alone may read or call
ONE_DOOR_USES = {
    "os.environ": {"config.py"},
    "os.getenv": {"config.py"},
    "os.putenv": set(),
    "exec": {"pyast/loader.py"},
    "compile": {"pyast/loader.py", "pyast/source.py"},  # source.py: to tell lambdas of one line apart
    "eval": set(),
    "os.system": set(),
    "os.popen": set(),
    "warnings.catch_warnings": {"check_gpu/calls.py", "check_gpu/samples.py"},   # else `quiet`
}


class Import:
    """One import statement's target: the module's dotted name, its line, and whether it is in a function."""

    def __init__(self, name, line, inside_function):
        self.name, self.line, self.inside_function = name, line, inside_function
        self.top = name.split(".")[0]

    @property
    def room(self):
        """The room of a module of ours; ``__init__`` for ``dy2static`` itself, None for others."""
        parts = self.name.split(".")
        if self.top != "dy2static":
            return None
        return parts[1] if len(parts) > 1 else "__init__"


class Module:
    """One source file of the package: its place, its room, its imports, and what else is asked of it; its tree is not kept.

    imports: what the run imports.  type_imports: what only type checkers import.
    uses, asked, annotated: what `_uses`, `_asked_of_captures` and `_annotated` find in it.  functions: their names, with lines.
    missing: line, class and name of what `_missing` finds in its classes.
    """

    def __init__(self, path):
        self.path = path
        self.place = path.relative_to(PACKAGE).as_posix()
        self.room = self.place.split("/")[0].replace(".py", "")
        parts = ("dy2static",) + path.relative_to(PACKAGE).with_suffix("").parts
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        nodes = list(ast.walk(tree))
        self.imports = list(self._imports(tree.body, False))
        self.type_imports = [one for node in nodes if _for_type_checkers(node) for one in self._imports(node.body, False)]
        self.uses, self.asked, self.annotated = list(_uses(nodes)), list(_asked_of_captures(nodes)), list(_annotated(nodes))
        self.functions = [(node.lineno, node.name) for node in nodes if isinstance(node, ast.FunctionDef)]
        known = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        self.missing = [(line, node.name, name) for node in nodes if isinstance(node, ast.ClassDef) and self.room in INSIDE
                        for name, line in _missing(node, known)]

    def at(self, line):
        """A place for a message."""
        return f"dy2static/{self.place}:{line}"

    def _imports(self, nodes, inside_function):
        for child in nodes:
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(alias.name, child.lineno, inside_function)
            elif isinstance(child, ast.ImportFrom):
                base = self._absolute(child)
                for alias in child.names:
                    inner = f"{base}.{alias.name}"
                    yield Import(inner if inner in NAMES else base, child.lineno, inside_function)
            elif not isinstance(child, ast.expr) and not _for_type_checkers(child):        # no expression holds an import
                function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
                yield from self._imports(ast.iter_child_nodes(child), inside_function or function)

    def _absolute(self, node):
        """The full name of the module that ``from ... import`` names."""
        if not node.level:
            return node.module
        package = self.name.split(".")
        package = package[:len(package) - node.level + self.is_package]
        return ".".join(package + ([node.module] if node.module else []))


def _for_type_checkers(node):
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _name(path):
    return ".".join(("dy2static",) + path.relative_to(PACKAGE).with_suffix("").parts).replace(".__init__", "")


FILES = sorted(PACKAGE.rglob("*.py"))
NAMES = {_name(path) for path in FILES}


@functools.lru_cache(maxsize=None)
def modules():
    """All modules, read by the first test that asks for them, not by each worker that collects tests."""
    return [Module(path) for path in FILES]


def by_name():
    """The modules by their names."""
    return {module.name: module for module in modules()}


def report(problems):
    """Fail with one problem a line."""
    problems = sorted(set(problems))
    if problems:
        pytest.fail("\n" + "\n".join(problems), pytrace=False)


#: So many lines a file has at the most: of the package, and of tests.
MOST_LINES, MOST_LINES_OF_TESTS = 400, 650


def test_files_are_short():
    """A file that grows longer has two jobs: each gets a file with a name that says it."""
    for folder, most in ((PACKAGE, MOST_LINES), (PACKAGE.parent / "tests", MOST_LINES_OF_TESTS)):
        lengths = {path.relative_to(PACKAGE.parent).as_posix(): path.read_bytes().count(b"\n") for path in folder.rglob("*.py")}
        report(f"{name}: {lines} lines, of {most} at the most" for name, lines in lengths.items() if lines > most)


def test_rooms_and_rows_match():
    report(f"{module.at(1)}: {module.room!r} is not in ROWS" for module in modules() if module.room not in ROW)
    report(f"{room!r} of ROWS is no room" for room in ROW.keys() - {module.room for module in modules()})


#: What is set from above: the type of the capture that runs is that of a room above.
SET_FROM_ABOVE = ("runtime/hooks.py", "runtime/staticness.py")


def test_imports_point_down():
    report(
        f"{module.at(imported.line)}: {module.room} imports {imported.name}, "
        "which is not below it in ROWS"
        for module in modules() for imported in module.imports + module.type_imports * (module.place not in SET_FROM_ABOVE)
        if imported.room in ROW and module.room in ROW
        and imported.room != module.room and ROW[imported.room] >= ROW[module.room])


#: The folders and files of the CUDA backend: imports point up in this list, or stay in one folder.
CUDA = ("program", "text", "nests", "kernels", "counts", "views_first", "picks_first", "emit", "partition", "draws", "launches", "backend")


def test_imports_in_the_cuda_backend_point_down():
    def part(name):
        head, _, rest = name.partition("dy2static.backends.cuda.")
        return rest.split(".")[0] if not head and rest else None

    report(
        f"{module.at(imported.line)}: {imported.name} is not below it in CUDA"
        for module in modules() for imported in module.imports
        if part(module.name) and part(imported.name) and part(module.name) != part(imported.name)
        and CUDA.index(part(imported.name)) > CUDA.index(part(module.name)))


def test_only_rooms_are_imported():
    report(
        f"{module.at(imported.line)}: there is no {imported.name}"
        for module in modules() for imported in module.imports
        if imported.top == "dy2static" and imported.name not in NAMES)


def test_no_cycle():
    """Not of imports for type checkers either: what two files need of each other is a protocol below them."""
    edges = {
        module.name: {i.name: i.line for i in module.imports + module.type_imports if i.name in NAMES and i.name != module.name}
        for module in modules()}
    known, done, problems = by_name(), set(), []

    def visit(name, way):
        if name in way:
            circle = way[way.index(name):] + [name]
            place = known[way[-1]].at(edges[way[-1]][name])
            problems.append(f"{place}: import cycle {' -> '.join(circle)}")
        elif name not in done:
            for target in edges[name]:
                visit(target, way + [name])
            done.add(name)

    for name in edges:
        visit(name, [])
    report(problems)


def test_no_import_inside_a_function():
    report(
        f"{module.at(imported.line)}: imports {imported.name} inside a function"
        for module in modules() for imported in module.imports
        if imported.inside_function and imported.top not in OPTIONAL)


def test_optional_packages_are_imported_inside_functions():
    report(
        f"{module.at(imported.line)}: {imported.name} is optional: import it in the function that needs it"
        for module in modules() for imported in module.imports
        if not imported.inside_function and imported.top in OPTIONAL)


def test_what_a_room_must_never_know():
    report(
        f"{module.at(imported.line)}: {module.room} must not import {imported.name}"
        for module in modules() for imported in module.imports
        if NEVER.get(module.room, set()) & {imported.top, f"{imported.top}.{imported.room}"})


def test_backends_do_not_know_each_other():
    """NumPy's is what all fall back to; which others there are, only the registry knows, who saves native code, and who checks kernels.
    What is exported as C enters that backend by one door."""
    report(
        f"{module.at(imported.line)}: {imported.name} is for the registry"
        for module in modules() for imported in module.imports
        for folder in ("c", "cuda") if f"{imported.name}.".startswith(f"dy2static.backends.{folder}.")
        and not module.place.startswith((f"backends/{folder}/", "check_gpu/"))
        and not (module.place.startswith("export/to_c/") and imported.name == "dy2static.backends.c.closed")
        and module.place not in ("backends/registry.py", "saved/aot.py"))


def test_one_door_for_imports():
    report(
        f"{module.at(imported.line)}: {imported.top} is for {_places(ONE_DOOR_IMPORTS[imported.top])}"
        for module in modules() for imported in module.imports
        if module.place not in ONE_DOOR_IMPORTS.get(imported.top, {module.place}))


def test_one_door_for_uses():
    report(
        f"{module.at(line)}: {used} is for {_places(ONE_DOOR_USES[used])}"
        for module in modules() for line, used in module.uses
        if module.place not in ONE_DOOR_USES.get(used, {module.place}))


def test_nothing_is_reached_by_import_module_to_get_round_these_rules():
    report(
        f"{module.at(line)}: {used} hides an import"
        for module in modules() for line, used in module.uses
        if used in ("__import__", "importlib.import_module") and module.room != "compat")


def test_the_rooms_below_know_none_of_paddles_names():
    names = [name for name in vars(PaddleNames) if not name.startswith("_")]
    below = [module for module in modules() if module.room in ("static_function", "dispatch", "pipeline")]
    report(
        f"{module.at(line)}: {name} is for the room paddle"
        for module in below for line, name in module.functions if name in names)


# --- calls point down, too: what is asked of a capture is in its protocol ---------------------------------------------------

#: The rooms that work inside a capture.
INSIDE = ("heap", "symbolic", "control_flow", "capture")


class Protocols:
    """The protocols of `dy2static.capture_context`: their members, and what the parts of a capture are."""

    def __init__(self, *trees):
        classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
        self.members = {cls.name: {getattr(node, "name", None) or node.target.id for node in cls.body
                                   if isinstance(node, (ast.FunctionDef, ast.AnnAssign))} for cls in classes}
        self.parts = {node.name: ast.unparse(node.returns) for cls in classes if cls.name == "CaptureContext"
                      for node in cls.body if isinstance(node, ast.FunctionDef) and node.decorator_list}

    def refusal(self, asked):
        """Why rooms below may not ask for these attributes of a capture, one of the other; None if they may."""
        if asked[0] not in self.members["CaptureContext"]:
            return f"capture.{asked[0]} is not in CaptureContext"
        kind = self.parts.get(asked[0])
        if kind in self.members and len(asked) > 1 and asked[1] not in self.members[kind]:
            return f"capture.{asked[0]}.{asked[1]} is not in capture_context.{kind}"
        return None


@functools.lru_cache(maxsize=None)
def protocols():
    """Those of this package."""
    return Protocols(*[ast.parse(path.read_text(encoding="utf-8")) for path in sorted((PACKAGE / "capture_context").glob("*.py"))])


def _asked_of_captures(nodes):
    """(line, attributes) of each read or write through a name or attribute ``capture``: two attributes deep."""
    inner = {id(node.value): node for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and _is_capture(node.value):
            further = inner.get(id(node))
            yield node.lineno, (node.attr,) if further is None else (node.attr, further.attr)


def _is_capture(node):
    return (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")).lstrip("_") == "capture"


def test_below_captures_only_the_protocol_is_asked():
    report(
        f"{module.at(line)}: {protocols().refusal(asked)}"
        for module in modules() if ROW.get(module.room, ROW["capture"]) < ROW["capture"]
        for line, asked in module.asked if protocols().refusal(asked))


@pytest.mark.parametrize("text, reason", [
    ("self.capture.abort('no')", None), ("array.capture.host.call(f, (), {})", None), ("capture.heap.has_met(x)", None),
    ("self.capture.events", "capture.events is not in CaptureContext"),
    ("capture.array_writes.intercept(f)", "capture.array_writes.intercept is not in capture_context.ArrayWrites"),
    ("value._capture.staging.loops.while_", "capture.staging.loops is not in capture_context.Decisions"),
])
def test_what_is_not_in_the_protocol_is_refused(text, reason):
    (_, asked), = _asked_of_captures(list(ast.walk(ast.parse(text))))
    assert protocols().refusal(asked) == reason


def test_parts_of_captures_are_protocols():
    """No class of a room above is in their types, so that what a room asks of a part can be checked."""
    report(f"CaptureContext.{part} is of type {kind}, which is not in capture_context"
           for part, kind in protocols().parts.items() if kind not in protocols().members)


def test_parts_keep_their_secrets():
    """What begins with an underscore is read in its own class only."""
    report(
        f"{module.at(line)}: capture.{'.'.join(asked)} is private"
        for module in modules() for line, asked in module.asked
        if any(name.startswith("_") and not name.startswith("__") for name in asked))


def test_captures_have_a_type():
    report(
        f"{module.at(line)}: {name}: {annotation}"
        for module in modules() for line, name, annotation in module.annotated
        if (name == "capture" or module.room in INSIDE) and re.search(r"\bAny\b", annotation))


def _annotated(nodes):
    """(line, name, annotation) of what is annotated and named like a capture or one of its parts."""
    for node in nodes:
        if isinstance(node, ast.arg) and node.annotation is not None:
            name = node.arg
        elif isinstance(node, ast.AnnAssign):
            name = node.target.attr if isinstance(node.target, ast.Attribute) else getattr(node.target, "id", "")
        else:
            continue
        if name in ("capture", "heap", "staging", "calls"):
            yield node.lineno, name, ast.unparse(node.annotation)


def test_no_class_is_spread_over_files():
    """A class defines what it reads from ``self``, or one of its bases does: it relies on nothing that others mix in."""
    report(
        f"{module.at(line)}: {cls} reads self.{name}, which it does not define"
        for module in modules() for line, cls, name in module.missing)


def _missing(cls, known):
    """What a class reads from ``self`` and neither it nor its bases define; nothing if it has bases from elsewhere."""
    defined, read, waiting = set(), {}, [cls]
    declares = cls.decorator_list or any(cls.name in map(ast.unparse, other.bases) for other in known.values())
    while waiting:
        each = waiting.pop()
        for base in each.bases:
            if not isinstance(base, ast.Name) or base.id not in known:
                return ()
            waiting.append(known[base.id])
        defined |= {name for node in each.body for name in _names_of(node, declares)}
        for node in ast.walk(each):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                if isinstance(node.ctx, ast.Store):
                    defined.add(node.attr)
                else:
                    read.setdefault(node.attr, node.lineno)
    return {name: line for name, line in read.items() if name not in defined and not name.startswith("__")}.items()


def _names_of(node, declares):
    """What a statement of a class's body defines; an annotation alone only in a dataclass, or for subclasses in the file."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) and (
        declares or node.value is not None) else []
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


@pytest.mark.parametrize("text, missing", [
    ("class A:\n    b: int\n    def f(self): return self.b", ["b"]),
    ("class A:\n    def __init__(self): self.b = 1\n    def f(self): return self.b", []),
    ("class A:\n    def f(self): return self.g()\n    def g(self): pass", []),
    ("class A(dict):\n    def f(self): return self.g()", []),
])
def test_what_a_mixin_reads_is_missing(text, missing):
    cls, = ast.parse(text).body
    assert [name for name, _ in _missing(cls, {})] == missing


def _uses(nodes):
    """Each name of ONE_DOOR_USES' kind, with its line: called builtins, and attributes of modules."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.lineno, node.func.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.lineno, f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _places(places):
    return " and ".join(sorted(places)) or "nobody"
