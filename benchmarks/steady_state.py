"""A thousand training steps: nothing may be captured after the second, and memory has to stay flat.

    python benchmarks/steady_state.py [--steps 1000]

Exits with 1 if a step was captured or run eagerly, or if the memory that Python holds grew by more than 64 KiB.
"""
import argparse
import gc
import resource
import sys
import tracemalloc

from dy2static import to_static
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--steps", type=int, default=1000)
options = parser.parse_args()


class Classifier(chainer.Chain):
    def __init__(self):
        super().__init__()
        self.calls = 0
        with self.init_scope():
            self.l1 = L.Linear(64, 64)
            self.l2 = L.Linear(64, 10)

    @to_static(strict=True)
    def forward(self, x, t, weight):
        self.calls += 1
        y = self.l2(F.dropout(F.relu(self.l1(x)), 0.2))
        self.loss = F.softmax_cross_entropy(y, t) * weight
        return self.loss


def resident():
    """The peak of the memory of this process so far, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


np.random.seed(0)
model = Classifier()
optimizer = chainer.optimizers.Adam().setup(model)
x = np.random.rand(50, 100, 64).astype(np.float32)
t = np.random.randint(0, 10, (50, 100)).astype(np.int32)
tracemalloc.start()
rows = []
report_at = {2, 10, options.steps // 2, options.steps}
for step in range(options.steps):
    optimizer.update(model.forward, x[step % 50], t[step % 50], 1 / (1 + step))
    if step + 1 in report_at:
        gc.collect()
        info = model.forward.cache_info()
        rows.append((step + 1, info.captures, info.fallbacks, tracemalloc.get_traced_memory()[0], resident()))

print(f"{'steps':>8}{'captures':>10}{'fallbacks':>11}{'Python holds':>15}{'peak RSS':>12}")
for done, captures, fallbacks, held, peak in rows:
    print(f"{done:>8}{captures:>10}{fallbacks:>11}{held / 1024:>11.0f} KiB{peak / 1024:>8.0f} MiB")
captures, held = rows[0][1], rows[1][3]
_, last_captures, fallbacks, last_held, _ = rows[-1]
ok = last_captures == captures and fallbacks == 0 and last_held - held < 65536 and model.calls == options.steps
print("steady" if ok else "NOT STEADY", model.forward.stats())
sys.exit(0 if ok else 1)
