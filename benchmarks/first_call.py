"""The first call of two functions of 50 lines: what it costs to import, to convert, to capture, and to capture again.

    python benchmarks/first_call.py [--processes 3]

CPU milliseconds, each the least of some fresh processes.  ``imported``: the module of the function.  ``converted``:
source to source, with what of Chainer's links it calls.  ``captured``: the rest of the first call.  ``again``: the first
call of a second static function of the same code, for another network; its conversions are known.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap

HEAD = """
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a, self.b, self.c = L.Linear(8, 16), L.Linear(16, 16), L.Linear(16, 4)
            self.e = L.EmbedID(10, 8)

    def forward(self, x, ids, t, scale=1.0):
"""

#: Decisions on numbers and shapes only: nothing but a straight line is left of them.
STRAIGHT = """
h = self.a(x)
e = self.e(ids)
if scale > 0.5:
    h = h * scale
else:
    h = h / 2
h = h + F.tanh(self.a(e))
gate = F.sigmoid(self.b(h))
h = gate * h + (1 - gate) * F.relu(self.b(h))
h = F.normalize(h)
if h.shape[1] == 16:
    h = h - F.mean(h, axis=1, keepdims=True)
elif h.shape[1] == 8:
    h = h + 1
u = F.leaky_relu(self.b(h), 0.1)
v = F.softplus(self.b(h))
w = F.elu(u - v)
h = h + 0.1 * w
h = F.dropout(h, 0.0)
if scale and x.ndim == 2:
    rows = F.sum(h, axis=1, keepdims=True)
    h = h / (1 + F.broadcast_to(abs(rows), h.shape))
query, key = self.b(h), self.b(u)
scores = F.matmul(query, key, transb=True)
scores = scores / np.sqrt(float(h.shape[1]))
attention = F.softmax(scores, axis=1)
h = F.matmul(attention, h) + v
left, right = h[:, :8], h[:, 8:]
h = F.concat([right, left], axis=1)
h = F.maximum(h, 0.1 * h)
squares = F.sum(h * h) * 1e-4
smooth = F.mean(F.absolute(left - right))
if not squares.requires_grad:
    smooth = smooth * 0
y = self.c(h)
logp = F.log_softmax(y)
mask = t >= 0
weights = np.where(mask, 1.0, 0.0).astype(np.float32)
picked = F.select_item(logp, t)
count = max(len(t), 1)
loss = -F.sum(picked * weights) / count
loss = loss + squares + 1e-3 * smooth
accuracy = F.accuracy(y, t)
entropy = -F.sum(F.exp(logp) * logp) / count
if scale > 10:
    loss = loss - 1e-2 * entropy
result = {'loss': loss, 'entropy': entropy}
result['accuracy'] = accuracy
return loss, result
"""

#: Decisions on array values: branches, a loop and what leads out of it.
STAGED = """
h = self.a(x)
e = self.e(ids)
h = h + F.tanh(self.a(e))
if scale > 0.5:
    h = h * scale
else:
    h = h / 2
gate = F.sigmoid(self.b(h))
h = gate * h + (1 - gate) * F.relu(self.b(h))
if float(F.sum(h).array) > 0:
    h = F.normalize(h)
    bonus = 1.0
elif float(F.max(h).array) > 3:
    h = h - 1
    bonus = 2.0
else:
    h = h * 2
    bonus = 0.0
total = 0
steps = 0
while float(F.sum(h * h).array) > 1.0:
    h = h * 0.5
    steps += 1
    if steps > 10:
        break
for k in range(3):
    h = F.dropout(self.b(h), 0.0)
    total = total + F.sum(h) * k
    if k == 1 and scale < 0:
        continue
    total = total + 0.1
parts = []
for part in F.split_axis(h, 4, axis=1):
    parts.append(F.mean(part, axis=1))
h = F.stack(parts, axis=1)
mask = t >= 0
weights = np.where(mask, 1.0, 0.0).astype(np.float32)
y = self.c(F.concat([h, h, h, h], axis=1))
logp = F.log_softmax(y)
picked = F.select_item(logp, t)
loss = -F.sum(picked * weights) / max(len(t), 1)
loss = loss + total * 1e-3 + bonus * 1e-2
names = {'loss': loss, 'steps': steps}
acc = F.accuracy(y, t)
names['accuracy'] = acc
result = {k: v for k, v in names.items()}
assert result['loss'].shape == ()
return result['loss'], result
"""

BODIES = {"straight": STRAIGHT, "staged": STAGED}


def measured(body: str) -> dict:
    """The figures of this process."""
    import time

    import dy2static
    import numpy as np
    from dy2static.runtime import hooks

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "first_call_module.py")
        path.write_text(HEAD + textwrap.indent(body.strip("\n"), " " * 8) + "\n")
        spec = importlib.util.spec_from_file_location("first_call_module", path)
        started = time.process_time()
        module = importlib.util.module_from_spec(spec)
        sys.modules["first_call_module"] = module
        spec.loader.exec_module(module)
        figures = {"imported": time.process_time() - started, "converted": 0.0}

        convert = hooks.convert

        def timed(function):
            started = time.process_time()
            try:
                return convert(function)
            finally:
                figures["converted"] += time.process_time() - started

        hooks.convert = timed
        ids = np.arange(5, dtype=np.int32)
        args = np.random.RandomState(0).rand(5, 8).astype(np.float32), ids, ids % 4
        first, second = module.Net(), module.Net()
        first.forward(*args)                            # what Chainer itself does once
        for name, net in (("first", first), ("again", second)):
            static = dy2static.to_static(module.Net.forward, strict=True)
            started = time.process_time()
            static(net, *args)
            figures[name] = time.process_time() - started
        figures["captured"] = figures["first"] - figures["converted"]
        return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=3, help="fresh processes per function")
    parser.add_argument("--one", choices=sorted(BODIES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(BODIES[options.one])))
        return
    columns = ("imported", "first", "converted", "captured", "again")
    print(f"{'ms':12}" + "".join(f"{column:>11}" for column in columns))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for name in BODIES:
        command = [sys.executable, __file__, "--one", name]
        runs = [json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)
                for _ in range(options.processes)]
        least = min(runs, key=lambda run: run["first"])
        least["again"] = min(run["again"] for run in runs)
        print(f"{name:12}" + "".join(f"{1e3 * least[column]:11.1f}" for column in columns))


if __name__ == "__main__":
    main()
