"""Exported models in C: sizes, and time per call beside the native program in Python and onnxruntime, one thread each.

    python benchmarks/export_c.py [--models ResNet50 ...] [--flags "-O2 -march=native"] [--programs FILE] [--zoo]

The models are those of export.py, and so are ``--programs`` and ``--zoo``.  Weights are random, results are compared.
"""
import argparse
import ctypes
import os
import subprocess
import tempfile
import time
import warnings

import export
import chainer
import dy2static
import numpy as np
from dy2static.backends.c.closed import ClosedText
from dy2static.export.captured import exported
from dy2static.export.to_c.folder import model
from dy2static.export.to_c.loader import Loaded
from dy2static.export.to_c.source import source
from dy2static.export.to_onnx.door import model_of_program
from timing import seconds_per_call

FLAGS = ("-std=gnu11", "-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-fopenmp-simd")


class Built:
    """A program as a shared object: ``run()`` calls it for the arguments that it was made with."""

    def __init__(self, program, arrays, flags):
        text = ClosedText()
        interface = model([program], "model", text)
        entry = interface.entries[0]
        with tempfile.TemporaryDirectory() as folder:
            for name, contents in (("model.h", interface.header("model")), ("model.c", source(interface, text, "model", False))):
                with open(os.path.join(folder, name), "w") as file:
                    file.write(contents)
            library = os.path.join(folder, "model.so")
            text_file = os.path.join(folder, "model.c")
            subprocess.run(["cc", *FLAGS, *flags, "-shared", "-fPIC", "-o", library, text_file, "-lm"], check=True)
            stripped = os.path.join(folder, "stripped.so")
            subprocess.run(["strip", "-o", stripped, library], check=True)
            self.code_bytes = os.path.getsize(stripped)
            self.loaded = Loaded(entry, ctypes.CDLL(library), interface.weights.block())
        self.weights_bytes = interface.weights.nbytes
        self.arrays = arrays[:len(entry.arguments)]
        self.seeded = self.loaded.random(0) if entry.draws else None
        self.results = [np.asarray(x) for x in self.loaded(*self.arrays, random=self.seeded)]
        self.run = self.loaded.repeated(*self.arrays, random=self.seeded)
        self.arena_bytes = self.loaded.arena.nbytes


def row(name, make, flags):
    """One line of the table."""
    np.random.seed(0)
    target, args = make()
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        eager = target(*args)
        started = time.perf_counter()
        program = exported(target, args)
        built = Built(program, export.leaves(args), flags)
        seconds = time.perf_counter() - started
        worst = export.difference(built.results, export.leaves(eager))
        opened = export.session(model_of_program(program, export.OPTIONS).SerializeToString())
        inputs = export.fed(program, opened, args)
        ours = dy2static.to_static(target, backend="c") or target
        for _ in range(3):
            ours(*args)
        times = seconds_per_call([built.run, lambda: ours(*args), lambda: opened.run(None, inputs)], blocks=15, block_seconds=0.05)
    c, native, onnx = (1e3 * t for t in times)
    print(f"| {name} | {built.code_bytes / 1e3:.0f} kB | {built.weights_bytes / 1e6:.2f} MB | "
          f"{built.arena_bytes / 1e6:.2f} MB | {seconds:.1f} s | {c:.3f} ms | {native:.3f} ms | "
          f"{onnx:.3f} ms | {c / native:.2f} | {c / onnx:.2f} | {worst:.0e} |", flush=True)


def compare(target, args, expected):
    """Export for these arguments, compile, run, and compare."""
    program = exported(target, args)
    return export.difference(Built(program, export.leaves(args), ("-O0",)).results, export.leaves(expected))


def main():
    """Print the table, or the totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=None)
    parser.add_argument("--flags", default="-O2 -march=native")
    parser.add_argument("--programs", metavar="FILE")
    parser.add_argument("--zoo", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.programs or given.zoo:
        export.compare = compare                            # what these two call for each program
        if given.programs:
            export.programs(given.programs)
        if given.zoo:
            export.zoo()
        return
    print("| model | code | weights | arena | export | C | native | onnxruntime | C/native | C/onnxruntime | difference |")
    print(11 * "|---" + "|")
    for name, make in export.MODELS.items():
        if given.models is None or any(part in name for part in given.models):
            row(name, make, given.flags.split())


if __name__ == "__main__":
    main()
