"""Many exported programs in one library, so that tests start the compiler once."""
import ctypes
import os
import shutil
import subprocess

import numpy as np

from dy2static.backends.c.closed import ClosedText
from dy2static.export.program import Argument, ExportedProgram, Result, unique
from dy2static.export.to_c.folder import model
from dy2static.export.to_c.loader import Loaded
from dy2static.export.to_c.source import functions, preamble

STRICT = ("-std=c11", "-Wall", "-Wextra", "-Werror")
GCC = shutil.which(os.environ.get("DY2STATIC_CC") or "cc")


class CLibrary:
    """Programs that are compiled together, and called one by one."""

    def __init__(self):
        self._text, self._models = ClosedText(), []

    def add(self, program):
        """One more program, or two, the other with gradients.  Raises ExportError."""
        programs = program if isinstance(program, list) else [program]
        self._models.append(model(programs, f"model_{len(self._models)}", self._text))

    @property
    def text(self):
        heads = [interface.header("a test") for interface in self._models]
        text = "\n".join(functions(interface, self._text) for interface in self._models)
        return "\n".join(heads) + preamble(text) + text

    def build(self, folder, flags=("-O1",), compiler=GCC):
        """Compile all with every warning an error; gives the models, which are called with arrays."""
        source, library = folder / "all.c", folder / "all.so"
        source.write_text(self.text)
        done = subprocess.run([compiler, *STRICT, *flags, "-shared", "-fPIC", "-o", str(library), str(source), "-lm"],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:4000]
        loaded = ctypes.CDLL(str(library))
        return [Loaded(interface.entries[-1], loaded, interface.weights.block()) for interface in self._models]

    def check(self, folder, compiler, *flags):
        """Whether a compiler accepts the text without a warning; asserts that it does."""
        source = folder / "checked.c"
        source.write_text(self.text)
        done = subprocess.run([compiler, *STRICT, "-fsyntax-only", *flags, str(source)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:4000]


def closed(graph, name="sample"):
    """A graph without parameters as an exported program."""
    return ExportedProgram(name, graph, tuple(Argument(v, v.name) for v in graph.inputs), (),
                           tuple(map(Result, graph.outputs, unique(["y"] * len(graph.outputs)))), {}, {})


def close(actual, expected, tolerance=1e-5):
    """Assert that results are alike: shapes, dtypes, values."""
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
