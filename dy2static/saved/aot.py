"""Native code that is compiled when a model is saved, and stored beside it."""
from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Any, Dict, Union

import chainer

from .. import pipeline
from ..backends.c.backend import C
from ..native import shipped, store, team
from ..program.backward import compile_backward
from ..record.documents import entry
from . import files
from .layer import TranslatedLayer

_FOLDER = "native/"
_NAME = re.compile(rf"{_FOLDER}([0-9a-f]{{64}})\.so")


def compiled(layer: TranslatedLayer) -> Dict[str, bytes]:
    """The libraries that the programs of a saved model use, and their backwards for all gradients, as files beside it.

    layer: the model as it is loaded, since texts are compiled that a loaded model has.
    """
    with shipped.recorded() as builds:
        team.start(anyhow=True)                         # who loads it may have more threads
        for outcome in [outcome for function in (layer.function, *layer.methods.values()) for outcome in function.outcomes]:
            now = dataclasses.replace(outcome, config=dict(chainer.config._local.__dict__))
            program = pipeline.compile_outcome(now, backend=C)
            if outcome.enable_backprop:
                for segment in program.segments:
                    outputs = len(segment.plan.graph.outputs)
                    compile_backward(segment, tuple(range(len(segment.plan.targets))), (True,) * outputs, False)
        for build in builds.values():
            build.library()
    found = {name: store.body(build.key) or shipped.contents_of(name) for name, build in builds.items()}
    return {f"{_FOLDER}{name}.so": contents for name, contents in found.items() if contents is not None}


def trust(path: Union[str, os.PathLike], manifest: Dict[str, Any]) -> None:
    """Let the native code beside a model be used.  Raises `LoadError` where it is damaged."""
    names = {name: _NAME.fullmatch(name) for name in entry(manifest, "sha256", dict, "the manifest")}
    shipped.trust({match[1]: files.contents(Path(path), name, manifest) for name, match in names.items() if match is not None})
