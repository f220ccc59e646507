"""Files of saved models that someone has written with intent: none of them runs what it names."""
import collections
import copy
import json
import os
import random
import warnings

import chainer
import native_cases
import numpy as np
import pytest
from saved_model import FILES

from dy2static import InputSpec, LoadError, load, save
from dy2static.ir.op import OPS
from dy2static.record.guards import IdentityMatch
from dy2static.record.paths import Item
from dy2static.saved.attributes import _OF_OPS, KINDS
from dy2static.saved.functions import _tables, function_of

# Forgery -------------------------------------------------------------------------------------------------------------


def graph_of(document):
    return next(graph for graph in document["graphs"] if len(graph["nodes"]) > 20)


def node_of(document, op):
    found = []

    def look(graph):
        for node in graph["nodes"]:
            found.extend([node] * (node["op"] == op))
            for region in node.get("regions", ()):
                look(region)
    for graph in document["graphs"]:
        look(graph)
    return found[0]


def set_call(op, **said):
    def change(document):
        node_of(document, op)["with"]["call"].update(said)
    return change


def set_attribute(op, name, value):
    def change(document):
        node_of(document, op).setdefault("with", {})[name] = value
    return change


def program_of(document):
    return document["programs"][0]


def add_path(*rows):
    """More paths, the first of them from the one with number ``-1``: the layer; and an input that reads the last."""
    def change(document):
        paths = document["paths"]
        layer = next(k for k, row in enumerate(paths) if row[:2] == [None, "object"])
        for row in rows:
            paths.append([layer if row[0] is None else len(paths) - 1, *row[1:]])
    return change


INJECTED = "__import__('os').mkdir('made')"

FORGERIES = {
    "an op that runs code": lambda d: node_of(d, "relu").update(op="opaque"),
    "an op that is not there": lambda d: node_of(d, "relu").update(op="__class__"),
    "a keyword that is code": set_call("numpy_call", kwargs={"dict": [[f"axis={INJECTED}, x", 0]]}),
    "a keyword of Python": set_call("numpy_call", kwargs={"dict": [["lambda", 0]]}),
    "a function that is not listed": set_call("numpy_call", call="os.system"),
    "a function of NumPy that reads files": set_call("numpy_call", call="numpy.fromfile"),
    "a method that writes a file": set_call("numpy_call", call={"method": "tofile"}),
    "an attribute": set_call("numpy_call", call={"attribute": "__class__"}),
    "a template with attributes": set_call("numpy_call", call={"text format": "{0.__class__}"}),
    "a function to be called": set_call("numpy_call", call="builtins.sorted", kwargs={"dict": [["key", {"operand": 0}]]}),
    "a file to be written": set_call("host_call", kwargs={"dict": [["file", {"operand": 0}]]}),
    "a mode that is a function": set_call("numpy_call", call="numpy.pad", args=[{"operand": 0}, 1, {"operand": 0}]),
    "an operand that is not there": set_call("numpy_call", args=[{"operand": 99}]),
    "a name that is code": lambda d: graph_of(d)["inputs"][0].__setitem__(0, INJECTED),
    "a name of ours": lambda d: graph_of(d)["inputs"][0].__setitem__(0, "__builtins__"),
    "a text where a number is": set_attribute("split", "axis", INJECTED),
    "a text in a tuple": set_attribute("split", "sizes", [1, INJECTED]),
    "a text in a dict": set_attribute("split", "axis", {"dict": [[INJECTED, 0]]}),
    "a text in a slice": set_attribute("split", "axis", {"slice": [INJECTED, None, None]}),
    "a function as an axis": set_attribute("split", "axis", {"function": "builtins.print"}),
    "a size that is code": lambda d: graph_of(d)["inputs"][0][1].__setitem__(1, [INJECTED, 4]),
    "a size with the name of something": lambda d: graph_of(d)["inputs"][0][1].__setitem__(1, ["system", 4]),
    "a size that nothing gives": lambda d: graph_of(d)["nodes"][0]["gives"][0].__setitem__(1, ["float32", ["size_77", 5]]),
    "an array that is larger than guarded": lambda d: graph_of(d)["inputs"][0].__setitem__(1, ["float32", ["length_n0", 400]]),
    "no guards": lambda d: program_of(d).update(guards=[]),
    "a guard of another size": lambda d: next(g for g in program_of(d)["guards"] if g[0] == "variable")[2].__setitem__(2, [9, 9]),
    "a number that is code": lambda d: program_of(d)["guards"].append(["expr", None, [INJECTED, 0]]),
    "arithmetic with other names": lambda d: program_of(d)["guards"].append(["expr", None, [["+", "args", 1], 0]]),
    "arithmetic with too many": lambda d: program_of(d)["guards"].append(["expr", None, [["not", 1, 1], 0]]),
    "arithmetic with too few": lambda d: program_of(d)["guards"].append(["expr", None, [["**", 1], 0]]),
    "a function that computes no numbers": lambda d: program_of(d)["functions"].append(["f_1", {"function": "numpy.pad"}]),
    "a function with the name of something": lambda d: program_of(d)["functions"].append(["MISS", {"function": "math.sin"}]),
    "a named tuple with a keyword": lambda d: program_of(d)["builds"].insert(0, ["tuple", [["Out", ["lambda"]], []]]),
    "a named tuple that is code": lambda d: program_of(d)["builds"].insert(0, ["tuple", [[INJECTED, []], []]]),
    "a keyword argument that is no text": lambda d: program_of(d)["keywords"].append(1),
    "a build of itself": lambda d: program_of(d)["builds"].insert(0, ["list", [0]]),
    "an object of a class": lambda d: program_of(d)["builds"].insert(0, ["object", ["os.system", []]]),
    "an attribute of a class": add_path([None, "attr", "__class__"]),
    "the globals of a function": add_path([None, "dict", None], [0, "item", "function"], [0, "attr", "__globals__"]),
    "the function of the layer": add_path([None, "dict", None], [0, "item", "function"]),
    "a step that reads attributes": add_path([None, "slots", None], [0, "item", "xp"]),
    "an attribute of an argument": lambda d: d["paths"].append([0, "attr", "xp"]),
    "the attributes of an argument": lambda d: d["paths"].append([0, "dict", None]),
    "a path to itself": lambda d: d["paths"].append([len(d["paths"]), "dict", None]),
    "a link in itself": lambda d: d["objects"][d["layer"]]["children"].append(["me", d["layer"]]),
    "a method of a link": lambda d: d["objects"][d["layer"]]["children"][0].__setitem__(0, "forward"),
    "a layer that is no link": lambda d: d.update(layer=[o["kind"] for o in d["objects"]].index("parameter")),
    "a tuple in itself": lambda d: d["objects"].append({"kind": "tuple", "items": [{"object": len(d["objects"])}]}),
    "an array that is not there": lambda d: d["objects"].append({"kind": "array", "array": "../x"}),
    "a deque of no length": lambda d: d["objects"].append({"kind": "deque", "items": [], "maxlen": -1}),
    "a place with escapes": lambda d: d["places"].append(["\x1b[2J", 1, 1, "f", []]),
    "places in a circle": lambda d: d["places"].append(["f", 1, 1, "f", [len(d["places"])]]),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged(document, forged, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    changed = copy.deepcopy(document)
    FORGERIES[name](changed)
    with pytest.raises(LoadError) as caught:
        load(forged(changed))
    assert len(str(caught.value)) < 1000
    assert not os.path.exists("made")


def test_attributes_of_a_class_are_not_reached(document, forged):
    """What a path calls an attribute is an entry of what files hold: never a property or a method."""
    changed = copy.deepcopy(document)
    add_path([None, "attr", "xp"])(changed)
    program_of(changed)["guards"].insert(0, ["is", len(changed["paths"]) - 1, None])
    layer = load(forged(changed))
    first = next(guard for guard in layer.function.outcomes[0].guards if isinstance(guard, IdentityMatch))
    assert isinstance(first.source, Item)


@pytest.mark.parametrize("type_, match", [(["float32", [2, 4]], r"\(2, 3\)"), (["float64", [2, 3]], "float64"),
                                          ("py_int", "ndarray")])
def test_results_of_calls_are_what_the_file_says(tmp_path, forged, type_, match):
    """Native code looks at no array: what a function gives is compared with what the file says."""
    save(ordered, tmp_path / "ordered", [InputSpec([2, 3])])
    changed = json.loads((tmp_path / "ordered" / "programs.json").read_text())
    for graph in changed["graphs"]:
        for node in graph["nodes"]:
            if node["op"] == "checked_call":
                node["gives"][0][1] = type_
                node["with"]["types"] = [{"type": type_}]
    layer = load(forged(changed))
    with pytest.raises(LoadError, match=match):
        layer(np.ones((2, 3), np.float32))


def ordered(x):
    return np.sort(x, axis=0)


# Fuzz ----------------------------------------------------------------------------------------------------------------

WORDS = ("__class__", "__globals__", "lambda", "np", "x\ny", "'", '"', '"); system("id', "{0.__class__}", "", "n0", "args", "é", "x" * 300,
         "function", "xp", "builtins.print", "numpy.add", "_params", "size_1", "length_n0", INJECTED)
NUMBERS = (0, 1, -1, 2, 3, 7, -5, 2**31, 2**48, -2**63, 10**30, 0.5, 1e308)
KINDS_OF_VALUES = ("float", "list", "dict", "slice", "size", "dtype", "number", "array", "type", "operand", "function", "object", "value")


def places_in(document, path=()):
    if path:
        yield path
    if isinstance(document, (dict, list)):
        for key in document if isinstance(document, dict) else range(len(document)):
            yield from places_in(document[key], (*path, key))


def at(document, path):
    for key in path:
        document = document[key]
    return document


def mutated(document, places, rng):
    """The document with a few entries removed, repeated, renamed, changed, or replaced by others of it."""
    changed = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 2, 4))):
        *above, key = rng.choice(places)
        try:
            parent = at(changed, above)
            old = parent[key]
        except (LookupError, TypeError):
            continue
        if isinstance(parent, str):
            continue
        deep = 0
        for _ in range(rng.choice((5, 70, 150))):
            deep = [deep]
        new = rng.choice((None, rng.choice(NUMBERS), rng.choice(WORDS), [], {}, True, deep, at(document, rng.choice(places)),
                          {rng.choice(KINDS_OF_VALUES): rng.choice((0, [], "float32", [1, 2, 3], {"method": "sort"}, "nan"))}))
        action = rng.choice(("remove", "repeat", "rename", "count", "shuffle", "replace", "replace", "replace"))
        if action == "remove":
            del parent[key]
        elif action == "repeat" and isinstance(parent, list):
            parent.insert(rng.randrange(len(parent) + 1), copy.deepcopy(old))
        elif action == "rename" and isinstance(parent, dict):
            parent[rng.choice((*WORDS, *parent))] = parent.pop(key)
        elif action == "shuffle" and isinstance(parent, list):
            rng.shuffle(parent)
        else:
            parent[key] = old + rng.choice((1, -1, 1000, -old)) if action == "count" and type(old) is int else copy.deepcopy(new)
    return changed


@pytest.mark.parametrize("part", ["objects", "paths", "programs", "graphs", "places", ""])
def test_fuzzed_documents(document, forged, part, monkeypatch, tmp_path, capsys):
    """Loading gives a model or `LoadError`; calling the model may raise, but does nothing else."""
    monkeypatch.chdir(tmp_path)
    places = [path for path in places_in(document) if path[0] == part or not part]
    if not part:                                        # nothing is wrong with the document itself
        with chainer.using_config("train", False):
            load(forged(document))(np.ones((2, 4), np.float32))
    outcomes = collections.Counter()
    for seed in range(25):
        folder = forged(mutated(document, places, random.Random(f"{part}{seed}")))
        try:
            layer = load(folder)
        except LoadError as error:
            outcomes["refused"] += 1
            assert len(str(error)) < 2000
            continue
        outcomes["loaded"] += 1
        if seed % 4 == 0:
            with chainer.using_config("train", False), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    layer(np.ones((2, 4), np.float32))
                except Exception:
                    outcomes["raised"] += 1
    assert outcomes["refused"] + outcomes["loaded"] == 25
    assert sorted(os.listdir(tmp_path)) == sorted(FILES)


# Tables of what files may say ------------------------------------------------------------------------------------------


def test_every_attribute_has_a_kind():
    missing = [(op.name, name) for op in OPS.values() for name in op.attrs
               if name not in KINDS and (op.name, name) not in _OF_OPS and op.name not in ("opaque", "tape_vjp") and name != "call"]
    assert not missing


def test_samples_of_ops_have_attributes_of_their_kinds():
    wrong = []
    for op in OPS.values():
        for sample in op.samples if op.canonical is None else ():
            for name, value in sample.attrs.items():
                test = _OF_OPS.get((op.name, name)) or KINDS.get(name)
                if test is not None and not test(value):
                    wrong.append((op.name, name, value))
    assert not wrong


#: Ops whose native code trusts the shapes of their operands, and operands that do not belong together.
MISFITS = (
    ("batch_norm", [(5, 3), (3,), (4,)], {}), ("batch_norm", [(5, 3), (3,), (3,)], {"axis": (1,)}),
    ("batch_norm", [(5, 3), (3,), (3,)], {"axis": (0, 7)}), ("batch_norm_grad", [(5, 3), (3,), (4, 3), (3,), (3,)], {}),
    ("fixed_batch_norm", [(5, 3), (3,), (3,), (3,), (2,)], {}), ("fixed_batch_norm_grad", [(5, 3), *[(3,)] * 3, (9, 3), (3,), (3,)], {}),
    ("batch_renorm", [(5, 3), (3,), (3,), (1, 3), (3,)], {}), ("standardize", [(2, 3, 1)], {}),
    ("scale_shift", [(2, 3, 4), (1, 3), (3,)], {}), ("scale_shift_grad", [(2, 3, 4), (3,), (2, 3, 5)], {}),
    ("soft_labels", [(3, 3), (4, 3)], {}), ("contrast", [(3,), (3,), ()], {}), ("contrast", [(3, 2), (4,), ()], {}),
    ("conv_grad_weight", [(2, 3, 5), (4, 2, 3)], {"size": (3,)}), ("local_response_grad", [(2, 3), *[(2, 4)] * 4], {}))


@pytest.mark.parametrize("name, shapes, attributes", MISFITS)
def test_operands_that_do_not_belong_together(name, shapes, attributes):
    with pytest.raises(ValueError):
        native_cases.graph_of(OPS[name], [np.zeros(shape, np.float32) for shape in shapes], attributes)


@pytest.mark.parametrize("name", [
    "builtins.eval", "builtins.exec", "builtins.open", "builtins.__import__", "builtins.getattr", "builtins.setattr", "builtins.vars",
    "builtins.map", "builtins.filter", "builtins.compile", "builtins.input", "builtins.type", "builtins.object", "numpy.load", "numpy.save",
    "numpy.fromfile", "numpy.memmap", "numpy.loadtxt", "numpy.genfromtxt", "numpy.savetxt", "numpy.frompyfunc", "numpy.vectorize",
    "numpy.apply_along_axis", "numpy.apply_over_axes", "numpy.piecewise", "numpy.fromfunction", "numpy.fromiter", "numpy.random.seed",
    "numpy.random.set_state", "random.seed", "random.setstate", "random.shuffle", "operator.attrgetter", "operator.methodcaller",
    "operator.itemgetter", "operator.call", "warnings.filterwarnings", "os.system", "", "numpy", "numpy.add.at", "numpy.core", "math",
    {"method": "tofile"}, {"method": "dump"}, {"method": "setflags"}, {"method": "__reduce__"}, {"attribute": "base"}, {"attribute": "data"},
    {"attribute": "ctypes"}, {"attempt": "save"}, {"at": "load"}, {"into": "numpy.load"}, {"reduce": "load"}, {"reduce": 1}, {"reduce": ["add"]}, {"method": []},
    {"text format": "{0.x}"}, {"text format": "{0[x]}"}, {"text format": "{0:{0.x}}"}, {"text format": 1}, {"text encode": "x"}, {}, [], None,
    0, {"method": "sort", "attribute": "T"}], ids=str)
def test_functions_that_files_must_not_name(name):
    with pytest.raises(LoadError):
        function_of(name)


def test_functions_are_plain():
    """None opens files or imports: the modules that listed functions are from are these, and none is a class of ours."""
    modules = {(getattr(found, "__module__", None) or "numpy").split(".")[0] for found in _tables()[0].values()}
    assert modules <= {"numpy", "math", "_operator", "operator", "builtins", "random", "chainer", "warnings", "_warnings", "dy2static"}
