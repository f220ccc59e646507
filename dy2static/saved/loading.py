"""`load`: a saved model as a Link, without the code it was made from."""
from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional, Union

import chainer
import numpy as np

from ..errors import LoadError
from ..options import Options, switch
from ..record.documents import entry, need
from ..record.guards import TypeMatch
from . import files
from .aot import trust
from .graphs import GraphsIn, places_in
from .layer import Missing, SavedFunction, TranslatedLayer, make_layer
from .paths import OUTSIDE, paths_in
from .programs_in import ProgramIn
from .state import ObjectsIn


def load(path: Union[str, os.PathLike[str]], *, backend: Optional[str] = None, native: bool = False) -> TranslatedLayer:
    """Load a model that `save` wrote into a folder.  It is a `chainer.Link` that is called like the saved one.

    backend: as in `to_static`; with ``native``, "c".
    native: run the native code that is stored beside the model, if it was made for this CPU; otherwise it is compiled as usual.
        **This runs code from the folder**: use it only for models that you trust like a program.

    The source of the model and its imports are not needed.  Without ``native``, no code from the folder is run: the folder holds
    arrays, and graphs of operations of this package.  An optimizer can update the parameters, and the model can be saved again.

    Raises FileNotFoundError if there is no saved model, and `LoadError` for an unknown version, damaged files, and files with
    invalid contents.  Raises `SignatureError` for a ``backend`` that does not exist.
    """
    native = switch("native", native)
    if os.fspath(path).endswith(".onnx"):
        raise LoadError(f"{path} is no folder that `save` wrote",
                        hint="ONNX files are not loaded: onnxruntime runs them")
    options = Options(backend=backend or ("c" if native else None))
    manifest, document, arrays = files.read(path)
    if native:
        trust(path, manifest)
    try:
        return layer_of(document, arrays, options)
    except RecursionError:
        raise LoadError(f"{path} is nested too deeply") from None
    except LoadError:
        raise
    except _UNFORESEEN as error:
        raise LoadError(f"{path} does not hold together: {error!r}") from error


#: The exceptions that invalid parts of a file may cause where no check precedes.
_UNFORESEEN = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)


def layer_of(document: Dict[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]], options: Options) -> TranslatedLayer:
    """The model of a document.  Raises `LoadError`."""
    described = entry(document, "objects", list)
    root = document.get("layer")
    if root is not None and not 0 <= need(root, int, "'layer'") < len(described):
        raise LoadError(f"there is no object {root}, which should be the layer")
    objects = ObjectsIn(described, arrays, root, make_layer)
    layer = make_layer(chainer.Chain) if root is None else objects.made[root]
    if not isinstance(layer, TranslatedLayer):
        raise LoadError("the layer is no Link")
    outside = [number for number in range(len(described)) if number != root]
    layer.__dict__[OUTSIDE] = [objects.made[number] for number in outside]
    place, paths = paths_in(entry(document, "paths", list), arrays, root, outside)
    name = entry(document, "name", str)
    graphs = GraphsIn(entry(document, "graphs", list), arrays, places_in(entry(document, "places", list)), name)
    guard = TypeMatch(place, type(layer))

    def function(said: Dict[str, Any]) -> SavedFunction:
        arguments = [need(word, str, "the name of an argument") for word in entry(said, "arguments", list)]
        outcomes = [ProgramIn(program, graphs, paths, arrays).outcome(guard) for program in entry(said, "programs", list)]
        feeds = [need(word, str, "the name of an input") for word in entry(said, "feeds", list)]
        if len(feeds) != len(arguments):
            raise LoadError("the names of inputs are not those of the arguments")
        return SavedFunction(entry(said, "name", str), arguments, outcomes, _missing(said), options, feeds)
    layer.__dict__["function"] = function(document)
    methods = entry(document, "methods", dict)
    if root is None:
        _adopt(layer, objects)
    _check_tree(layer)
    if any(hasattr(layer, name) or not name.isidentifier() for name in methods):
        raise LoadError("a method in the file has the name of an attribute of Links, or no name")
    layer.__dict__["methods"] = {name: function(need(said, dict, "a method")) for name, said in methods.items()}
    return layer


def _missing(document: Dict[str, Any]) -> List[Missing]:
    found = []
    for item in entry(document, "missing", list):
        if type(item) is not list or [type(part) for part in item] not in ([bool, bool, str], [bool, bool, str, int]):
            raise LoadError(f"{str(item)[:80]} is no mode")
        found.append(Missing(*item))
    return found


def _adopt(layer: Any, objects: ObjectsIn) -> None:
    """The Links that a function uses, of its closure or of globals, become children of the layer that it has become."""
    links = [made for made in objects.made if isinstance(made, chainer.Link) and made is not layer]
    below = {id(child) for link in (*links, layer) for child in link.children()}
    for link in links:
        if id(link) not in below:
            name, count = link.name or "model", 1
            while hasattr(layer, name):
                name, count = f"{link.name or 'model'}_{count}", count + 1
            if isinstance(layer, chainer.ChainList):
                layer.append(link)
            else:
                layer.add_link(name, link)


def _check_tree(layer: chainer.Link) -> None:
    """Raise `LoadError` if a Link contains itself: iterating over its parameters would never end."""
    open_links: List[int] = []

    def visit(link: chainer.Link) -> None:
        if id(link) in open_links:
            raise LoadError("a Link contains itself")
        open_links.append(id(link))
        for child in link.children():
            visit(child)
        open_links.pop()
    visit(layer)
