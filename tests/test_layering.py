"""Who may import whom, and the doors that only one module may use.

A room is a module or folder directly under ``dy2static``.  Imports point strictly down the table, never to
another room of the same row; inside one room modules import each other without cycles.
"""
import ast
from pathlib import Path

import pytest

import dy2static

PACKAGE = Path(dy2static.__file__).parent

ROWS = (
    ("errors",),                            # below the others: even compat raises errors of ours
    ("config", "compat"),
    ("pyast", "ir", "options", "input_spec"),
    ("ops", "transformers", "runtime", "native"),
    ("lowering", "passes", "conversion"),
    ("world",),
    ("symbolic",),
    ("staging",),
    ("capture",),
    ("codegen", "explain", "changes", "check"),
    ("pipeline", "call_specs"),
    ("dispatch",),
    ("concrete",),
    ("static_function",),
    ("export", "lazy", "saved", "static_graph"),
    ("api", "cli"),
    ("inference",),
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
    """One source file of the package: its place, its room, its imports."""

    def __init__(self, path):
        self.path = path
        self.place = path.relative_to(PACKAGE).as_posix()
        self.room = self.place.split("/")[0].replace(".py", "")
        parts = ("dy2static",) + path.relative_to(PACKAGE).with_suffix("").parts
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        self.imports = list(self._imports(self.tree, False))

    def at(self, line):
        """A place for a message."""
        return f"dy2static/{self.place}:{line}"

    def _imports(self, node, inside_function):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(alias.name, child.lineno, inside_function)
            elif isinstance(child, ast.ImportFrom):
                base = self._absolute(child)
                for alias in child.names:
                    inner = f"{base}.{alias.name}"
                    yield Import(inner if inner in NAMES else base, child.lineno, inside_function)
            elif not _for_type_checkers(child):
                function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
                yield from self._imports(child, inside_function or function)

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
MODULES = [Module(path) for path in FILES]
BY_NAME = {module.name: module for module in MODULES}


def report(problems):
    """Fail with one problem a line."""
    problems = sorted(set(problems))
    if problems:
        pytest.fail("\n" + "\n".join(problems), pytrace=False)


def test_every_room_has_a_row():
    report(f"{module.at(1)}: {module.room!r} is not in ROWS" for module in MODULES if module.room not in ROW)


def test_imports_point_down():
    report(
        f"{module.at(imported.line)}: {module.room} imports {imported.name}, "
        "which is not below it in ROWS"
        for module in MODULES for imported in module.imports
        if imported.room in ROW and module.room in ROW
        and imported.room != module.room and ROW[imported.room] >= ROW[module.room])


def test_only_rooms_are_imported():
    report(
        f"{module.at(imported.line)}: there is no {imported.name}"
        for module in MODULES for imported in module.imports
        if imported.top == "dy2static" and imported.name not in NAMES)


def test_no_cycle():
    edges = {
        module.name: {i.name: i.line for i in module.imports if i.name in NAMES and i.name != module.name}
        for module in MODULES}
    done, problems = set(), []

    def visit(name, way):
        if name in way:
            circle = way[way.index(name):] + [name]
            place = BY_NAME[way[-1]].at(edges[way[-1]][name])
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
        for module in MODULES for imported in module.imports
        if imported.inside_function and imported.top not in OPTIONAL)


def test_optional_packages_are_imported_inside_functions():
    report(
        f"{module.at(imported.line)}: {imported.name} is optional: import it in the function that needs it"
        for module in MODULES for imported in module.imports
        if not imported.inside_function and imported.top in OPTIONAL)


def test_what_a_room_must_never_know():
    report(
        f"{module.at(imported.line)}: {module.room} must not import {imported.name}"
        for module in MODULES for imported in module.imports
        if NEVER.get(module.room, set()) & {imported.top, f"{imported.top}.{imported.room}"})


def test_one_door_for_imports():
    report(
        f"{module.at(imported.line)}: {imported.top} is for {_places(ONE_DOOR_IMPORTS[imported.top])}"
        for module in MODULES for imported in module.imports
        if module.place not in ONE_DOOR_IMPORTS.get(imported.top, {module.place}))


def test_one_door_for_uses():
    report(
        f"{module.at(node.lineno)}: {used} is for {_places(ONE_DOOR_USES[used])}"
        for module in MODULES for node, used in _uses(module.tree)
        if module.place not in ONE_DOOR_USES.get(used, {module.place}))


def test_nothing_is_reached_by_import_module_to_get_round_these_rules():
    report(
        f"{module.at(node.lineno)}: {used} hides an import"
        for module in MODULES for node, used in _uses(module.tree)
        if used in ("__import__", "importlib.import_module") and module.room != "compat")


def _uses(tree):
    """Each name of ONE_DOOR_USES' kind in a tree: called builtins, and attributes of modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node, node.func.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node, f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


def _places(places):
    return " and ".join(sorted(places)) or "nobody"
