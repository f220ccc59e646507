"""The tables of library facts name what is there, and no other file has a list of such names."""
import ast
import builtins
import functools
import itertools
import logging
import math
import operator
import random
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import dy2static
from dy2static.ir.op import OPS
from dy2static.library_facts import chainer as chainer_facts
from dy2static.library_facts import lazy as lazy_facts
from dy2static.library_facts import numpy as numpy_facts
from dy2static.library_facts import python as python_facts
from dy2static.library_facts.table import MARKS, VERSIONS, read

MAJOR = np.__version__.split(".")[0]

#: The tables, and where their names are.
TABLES = {
    "numpy": (numpy_facts.FUNCTIONS, (np,)), "numpy.linalg": (numpy_facts.LINALG, (np.linalg,)),
    "numpy.random": (numpy_facts.RANDOM, (np.random, np.random.Generator)), "methods of arrays": (numpy_facts.METHODS, (np.ndarray,)),
    "attributes of arrays": (numpy_facts.ATTRIBUTES, (np.ndarray,)), "methods of ufuncs": (numpy_facts.UFUNC_METHODS, (np.ufunc,)),
    "functions of lazy arrays": (lazy_facts.FUNCTIONS, (np,)), "lazy numpy.linalg": (lazy_facts.LINALG, (np.linalg,)),
    "methods of lazy arrays": (lazy_facts.METHODS, (np.ndarray,)),
    "operator": (python_facts.OPERATOR_FUNCTIONS, (operator,)), "builtins": (python_facts.BUILTINS, (builtins,)),
    "math": (python_facts.MATH, (math,)), "random": (python_facts.RANDOM, (random,)), "functools": (python_facts.FUNCTOOLS, (functools,)),
    "itertools": (python_facts.ITERTOOLS, (itertools,)), "logging": (python_facts.LOGGING, (logging,)),
    "time": (python_facts.TIME, (time,)),
}

#: Folders that have names of libraries for a reason: the tables themselves, and a namespace like that of NumPy.
NAMING = ("library_facts", "lazy/numpy")

#: Rows that need something else: `numpy.lib` and its kin are modules that are imported when somebody asks.
MODULES = {"testing", "ctypeslib", "f2py"}


@pytest.mark.parametrize("place", TABLES)
def test_names_are_there(place):
    table, owners = TABLES[place]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, row in table.items():
            versions = row.intersection(VERSIONS)
            there = any(hasattr(owner, name) for owner in owners)
            assert there == (not versions or MAJOR in versions) or name in MODULES, (place, name)
            assert (row - set(VERSIONS)) <= MARKS.keys()


def test_every_mark_is_used():
    rows = [row for table, _ in TABLES.values() for row in table.values()]
    rows += [*python_facts.METHODS.values(), *chainer_facts.NODES.values()]
    assert MARKS.keys() == frozenset().union(*rows) - set(VERSIONS)


def test_names_stand_once():
    with pytest.raises(ValueError, match="sum stands twice"):
        read("saved: sum\nfollows: sum")
    with pytest.raises(ValueError, match="unknown: loud"):
        read("loud: sum")


def test_operators():
    for row in python_facts.OPERATORS:
        assert python_facts.OPERATOR_FUNCTIONS[row.name], row
        assert row.in_place is None or row.in_place.__name__ in python_facts.OPERATOR_FUNCTIONS


# No second copy ---------------------------------------------------------------------------------------------------------

PACKAGE = Path(dy2static.__file__).parent
_OWNERS = (np, np.linalg, np.random, np.ndarray, math, random, builtins, operator)
_ROOTS = {"np": np, "numpy": np, "math": math, "operator": operator, "random": random, "time": time, "itertools": itertools}

#: Lists of such names elsewhere, by file, and why they are no facts about the libraries.
OTHER_LISTS = {
    "backends/host/calls.py": "builtins that generated Python writes by their names",
    "capture/handlers.py": "handlers: what a call becomes",
    "export/draws.py": "lowerings of draws",
    "heap/global_state_guard.py": "methods of generators that draw nothing",
    "heap/objects.py": "operators for which the right operand may be asked first",
    "runtime/functions.py": "the messages of errors about matrices",
    "control_flow/staging.py": "handlers of calls that transformers write",
    "export/to_c/entry.py": "the words of C and C++",
    "ops/onnx_forms/contents.py": "forms of calls",
    "lowering/numpy/selections.py": "arithmetic through which an order that nobody sees is followed",
    "lowering/numpy/table.py": "lowerings",
    "lowering/numpy/writes.py": "lowerings of writes",
    "symbolic/sizes.py": "the operators that sizes have",
    "transformers/function_parts.py": "attributes of the stand-ins of a capture",
}


def is_library_function(node):
    """Whether an expression names a function of a library, by itself or as a text."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in _ROOTS:
        found = getattr(_ROOTS[node.value.id], node.attr, None)
    elif isinstance(node, ast.Name):
        found = getattr(builtins, node.id, None)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in OPS:
        return any(callable(getattr(owner, node.value, None)) and not isinstance(getattr(owner, node.value), type)
                   for owner in _OWNERS) and not node.value.startswith("__")
    else:
        return False
    return callable(found) and not isinstance(found, type)


def lists_of_names(path):
    """The places in a file with four or more such names side by side: in a display, or in a text of words."""
    for node in ast.walk(ast.parse(path.read_text())):
        parts = []
        if isinstance(node, (ast.Set, ast.Tuple, ast.List)):
            parts = node.elts
        elif isinstance(node, ast.Dict):
            parts = [key for key in node.keys if key is not None]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split()
            parts = [ast.Constant(word) for word in words] if all(word.isidentifier() for word in words) else []
        if sum(map(is_library_function, parts)) >= 4:
            yield node.lineno


def test_no_second_list():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {f"{path.relative_to(PACKAGE).as_posix()}:{line}" for path in sorted(PACKAGE.rglob("*.py"))
                 if not path.relative_to(PACKAGE).as_posix().startswith(NAMING) for line in lists_of_names(path)}
    assert not [place for place in sorted(found) if place.partition(":")[0] not in OTHER_LISTS]
    assert {place.partition(":")[0] for place in found} == set(OTHER_LISTS)
