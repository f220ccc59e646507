"""Many steps of training in one call: the size of the graph, the first call, and the time of a step, beside JAX's ``lax.scan``.

    python benchmarks/loops_of_steps.py [--counts 4,64,1000] [--jax PYTHON]

An MLP 16-64-4 on batches of 8, with SGD and with Adam.  ``loop``: an epoch is one call.  ``written out``: the same without loops in
the graph.  ``a call each``: one call for each batch.  Each has a process of its own on one thread.  ``nodes``: of the graph of the
forward, those in regions included.  ``first``: CPU seconds of the first call, compiling C not included.  ``step``: the least of
many calls, in microseconds of CPU time.  Written out stops at 64 batches.
"""
import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

BATCH, SIZES, RATE = 8, (16, 64, 4), {"SGD": 0.01, "Adam": 0.001}
MOST_WRITTEN_OUT = 64


def arrays(count):
    import numpy as np
    draws = np.random.RandomState(0)
    return draws.rand(count * BATCH, SIZES[0]).astype("f"), draws.randint(0, SIZES[-1], count * BATCH).astype("i")


def least(call, seconds=1.0):
    """The least CPU time of calls that go on for about so long."""
    found, started = [], time.process_time()
    while time.process_time() - started < seconds or len(found) < 3:
        before = time.process_time()
        call()
        found.append(time.process_time() - before)
    return min(found)


def in_dy2static(name, count, mode):
    import dy2static
    import chainer
    import chainer.functions as F
    import chainer.links as L
    from dy2static.control_flow import trips

    if mode == "written out":
        trips.FEW = sys.maxsize
    model = chainer.Sequential(L.Linear(*SIZES[:2]), F.relu, L.Linear(*SIZES[1:]))
    optimizer = getattr(chainer.optimizers, name)(RATE[name]).setup(model)

    def epoch(x, t):
        for i in range(0, len(x), BATCH):
            loss = F.softmax_cross_entropy(model(x[i:i + BATCH]), t[i:i + BATCH])
            model.cleargrads()
            loss.backward()
            optimizer.update()
    compiled = dy2static.to_static(epoch, backend="c")
    x, t = arrays(count)
    if mode == "a call each":
        parts = [(x[i:i + BATCH], t[i:i + BATCH]) for i in range(0, len(x), BATCH)]

        def call():
            for part in parts:
                compiled(*part)
    else:
        def call():
            compiled(x, t)
    started = time.process_time()
    call()
    first = time.process_time() - started
    for _ in range(3):
        call()
    return {"nodes": _nodes(compiled.graph), "first": first, "step": least(call) / count * 1e6}


def _nodes(graph):
    return sum(1 + sum(map(_nodes, node.regions)) for node in graph.nodes)


def in_jax(name, count):
    import jax
    import jax.numpy as jnp
    import numpy as np

    draws = np.random.RandomState(1)
    weights = [(jnp.asarray(draws.randn(a, b).astype("f") * a ** -0.5), jnp.zeros(b, "f")) for a, b in zip(SIZES, SIZES[1:])]

    def loss(weights, x, t):
        (w1, b1), (w2, b2) = weights
        y = jax.nn.log_softmax(jax.nn.relu(x @ w1 + b1) @ w2 + b2)
        return -jnp.mean(jnp.take_along_axis(y, t[:, None], 1))

    def step(state, batch):
        weights, m, v, t = state
        gradients = jax.grad(loss)(weights, *batch)
        if name == "SGD":
            return (jax.tree.map(lambda w, g: w - RATE[name] * g, weights, gradients), m, v, t), None
        t = t + 1
        m = jax.tree.map(lambda m, g: m + 0.1 * (g - m), m, gradients)
        v = jax.tree.map(lambda v, g: v + 0.001 * (g * g - v), v, gradients)
        rate = RATE[name] * jnp.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
        return (jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-8), weights, m, v), m, v, t), None

    @jax.jit
    def epoch(state, x, t):
        return jax.lax.scan(step, state, (x.reshape(count, BATCH, -1), t.reshape(count, BATCH)))[0]
    zeros = jax.tree.map(jnp.zeros_like, weights)
    state, (x, t) = (weights, zeros, zeros, jnp.float32(0)), arrays(count)
    started = time.process_time()
    jax.block_until_ready(epoch(state, x, t))
    first = time.process_time() - started
    return {"nodes": 0, "first": first, "step": least(lambda: jax.block_until_ready(epoch(state, x, t))) / count * 1e6}


def measured(python, *arguments):
    """What a process of its own prints."""
    one = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "DY2STATIC_THREADS": "1",
           "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
           "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    return json.loads(subprocess.check_output([python, __file__, "--one", *map(str, arguments)], env=one).splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", default="4,64,1000")
    parser.add_argument("--jax", help="a Python that has JAX")
    parser.add_argument("--one", nargs=3, metavar=("OPTIMIZER", "COUNT", "COLUMN"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, count, mode = options.one
        print(json.dumps(in_jax(name, int(count)) if mode == "JAX" else in_dy2static(name, int(count), mode)))
        return
    columns = ["loop", "written out", "a call each", *(["JAX"] if options.jax else [])]
    for name in RATE:
        for count in map(int, options.counts.split(",")):
            for mode in columns:
                if mode == "written out" and count > MOST_WRITTEN_OUT:
                    continue
                found = measured(options.jax if mode == "JAX" else sys.executable, name, count, mode)
                print(f"{name:5} {count:5} batches  {mode:12} nodes {found['nodes']:6}  first {found['first']:7.2f} s  "
                      f"step {found['step']:8.2f} us", flush=True)


if __name__ == "__main__":
    main()
