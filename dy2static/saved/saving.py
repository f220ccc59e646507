"""`save`: the programs of a function or a Link, for calls that were made or that an `InputSpec` describes, into a folder."""
from __future__ import annotations

import os
import warnings
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import chainer

from ..errors import SaveError, SaveWarning
from ..heap.locations import caller_depth
from ..options import DEFAULTS, switch
from ..record.outcome import Outcome
from ..runtime.collection import uncollected
from ..runtime.devices import DEVICES
from . import files
from .aot import compiled
from .layer import Missing
from .loading import layer_of
from .notation import ArraysOut
from .paths import PathsOut
from .programs_out import Outdated, ProgramsOut
from .state import ObjectsOut
from .subject import Subject


def save(target: Any, path: Union[str, os.PathLike[str]], input_spec: Optional[Sequence[Any]] = None, *,
         native: bool = False) -> None:
    """Save a function, a method or a Link into a folder.  The folder holds programs and parameters, and no Python code.

    target: a target of `to_static`, compiled or not, or a loaded model.  A Link is saved with those of its other methods that are
        compiled and have been called, or have an ``input_spec``.
    path: the folder.  An existing saved model is replaced in one step, or not at all.
    input_spec: for each positional argument except ``self`` an `InputSpec`, or an array or Variable of the same kind, in lists,
        tuples and dicts like the arguments.  None in a shape means any size.  Other values are used as they are.
        Without it: the ``input_spec`` of `to_static`, and the calls that were made so far.
    native: also compile the programs, and store the native code beside them: see `load`.

    The folder gets one program for each setting of ``chainer.config.train`` and ``enable_backprop``, for arrays and for Variables.
    The model is not called and does not change.

    Raises `SaveError` for a program that cannot be saved: one that calls Python code of the user, has functions that stay whole, or
    takes or returns objects of the user's classes.  If only the training mode cannot be saved, there is a `SaveWarning`.
    Raises `SignatureError` for an invalid target, and for an ``input_spec`` that does not match it.
    """
    save_subject(Subject(target), path, input_spec, switch("native", native))


@uncollected()
def save_subject(subject: Subject, path: Union[str, os.PathLike[str]], input_spec: Optional[Sequence[Any]],
                 native: bool = False) -> None:
    """As `save`, of what a `Subject` says."""
    if isinstance(subject.instance, chainer.Link) and type(subject.instance.device) in DEVICES:
        raise SaveError(f"the model is on {subject.instance.device}, and programs for a GPU are not saved",
                        hint="send it to the host before: `model.to_cpu()`")
    arrays = ArraysOut()
    objects = ObjectsOut(arrays)
    paths = PathsOut(objects, subject.instance)
    out = ProgramsOut(paths, arrays)
    function = _function(out, subject, input_spec)
    root = objects.number(subject.instance, "") if isinstance(subject.instance, chainer.Link) else None
    methods = {}
    for name, method in subject.methods():
        try:
            methods[name] = _function(out, method, None)
        except SaveError as error:
            warnings.warn(f"{method.name} is not saved: {error.reason}", SaveWarning, stacklevel=caller_depth())
    document = {**function, "methods": methods, "layer": root, "objects": objects.described, "paths": paths.said(),
                "places": out.places.said(), "graphs": out.graphs}
    libraries = compiled(layer_of(document, arrays.named, DEFAULTS)) if native else {}
    files.write(path, document, arrays.named, {"name": subject.name}, libraries)


def _function(out: ProgramsOut, subject: Subject, input_spec: Optional[Sequence[Any]]) -> Dict[str, Any]:
    """The programs of one function as JSON."""
    outcomes, missing = subject.outcomes(input_spec)
    programs: List[Any] = []
    general: List[Outcome] = []                         # not only of arrays with axes of one or none
    refused: List[Tuple[Outcome, SaveError]] = []
    for outcome in outcomes:
        try:
            said = out.program(outcome)
        except Outdated:
            continue
        except SaveError as error:
            refused.append((outcome, error))
            continue
        general += [] if outcome in subject.of_small else [outcome]
        if said not in programs:
            programs.append(said)
    _check(general, [(outcome, error) for outcome, error in refused if outcome not in subject.of_small], subject.name)
    missing += [Missing(outcome.train, outcome.enable_backprop, error.reason, subject.of_small.get(outcome))
                for outcome, error in refused]
    return {"name": subject.name, "arguments": list(subject.arguments), "programs": programs, "missing": _distinct(missing),
            "feeds": [subject.feeds.get(k, name) for k, name in enumerate(subject.arguments)]}


def _check(saved: Sequence[Outcome], refused: Sequence[Tuple[Outcome, SaveError]], name: str) -> None:
    if not saved and refused:
        raise refused[0][1]
    if not saved:
        raise SaveError(f"there is nothing to save of {name}: it was not called yet", hint="give save an input_spec")
    modes = {outcome.train for outcome in saved}
    for outcome, error in refused:
        if outcome.train not in modes:
            if not outcome.train:
                raise error
            warnings.warn(f"{name} is saved for inference only (train=False); for training: {error.reason}", SaveWarning,
                          stacklevel=caller_depth())
            return


def _distinct(missing: Sequence[Missing]) -> List[List[Any]]:
    """What could not be saved, each reason once."""
    return [list(key) for key in dict.fromkeys(tuple(item.said()) for item in missing)]
