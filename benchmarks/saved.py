"""Saved models: size, seconds to save and load, and the first call of what is loaded, native code beside it or not.

    python benchmarks/saved.py [--models MLP ResNet50] [--threads 1]

Each first call is made in a process of its own, with an empty cache of native code.  Weights are random.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dy2static
import chainer
import chainer.functions as F
import chainer.links as L

ROOT = Path(__file__).resolve().parent.parent


class MLP(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1, self.l2, self.l3 = L.Linear(784, 1000), L.Linear(1000, 1000), L.Linear(1000, 10)

    def forward(self, x):
        return self.l3(F.relu(self.l2(F.relu(self.l1(x)))))


class ResNet50(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.base = L.ResNet50Layers(pretrained_model=None)

    def forward(self, x):
        return self.base(x, layers=["prob"])["prob"]


#: The models, and the shape of one of their inputs.
MODELS = {"MLP": (MLP, (784,)), "ResNet50": (ResNet50, (3, 224, 224))}

FIRST_CALL = """
import json, sys, time
begun = time.perf_counter()
import dy2static, chainer, numpy as np
path, shape, backend, native = json.loads(sys.argv[1])
imported = time.perf_counter()
model = dy2static.load(path, backend=backend, native=native)
loaded = time.perf_counter()
x = np.random.RandomState(0).uniform(-1, 1, shape).astype("f")
with chainer.using_config("train", False), chainer.no_backprop_mode():
    start = time.perf_counter()
    model(x)
    first = time.perf_counter()
    model(x)
    second = time.perf_counter()
print(json.dumps([loaded - imported, first - start, second - first]))
"""


def size(folder, pattern="**/*"):
    """Megabytes of the files in a folder."""
    return sum(file.stat().st_size for file in Path(folder).glob(pattern) if file.is_file()) / 1e6


def first_call(path, shape, backend, native):
    """Seconds to load, and of the first and the second call, in a new process."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run([sys.executable, "-c", FIRST_CALL, json.dumps([str(path), shape, backend, native])], check=True,
                              stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT), "DY2STATIC_CACHE_DIR": cache,
                                                           "DY2STATIC_BACKGROUND": "0"})
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--threads", default="1")
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = given.threads
    print("| model | save | of it native code | arrays, MB | programs, MB | native, MB | load | first call: NumPy | C, compiled | "
          "C, stored | second call: NumPy | C |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name in given.models:
        make, shape = MODELS[name]
        model = make()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m"
            specs = [dy2static.InputSpec([None, *shape])]
            start = time.perf_counter()
            dy2static.save(model, path, specs)
            plain = time.perf_counter() - start
            start = time.perf_counter()
            dy2static.save(model, path, specs, native=True)
            ahead = time.perf_counter() - start
            on_numpy, compiled, stored = [first_call(path, (1, *shape), *how) for how in
                                          (("numpy", False), ("c", False), ("c", True))]
            cells = [f"{plain:.2f} s", f"{ahead - plain:.1f} s", f"{size(path, '*.safetensors'):.1f}",
                     f"{size(path, 'programs.json'):.2f}", f"{size(path, 'native/*'):.2f}",
                     f"{on_numpy[0]:.2f} s", f"{on_numpy[1]:.2f} s", f"{compiled[1]:.2f} s",
                     f"{stored[1]:.2f} s", f"{1000 * on_numpy[2]:.1f} ms", f"{1000 * stored[2]:.1f} ms"]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
