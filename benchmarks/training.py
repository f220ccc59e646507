"""Whole steps of training, as one compiled function each, beside the same steps of JAX and PyTorch.

    python benchmarks/training.py --install                  # JAX and PyTorch, each in an environment of its own
    python benchmarks/training.py [--cells W2,P300] [--columns "whole;JAX"] [--rounds 15] [--seconds 0.15]
    python benchmarks/training.py --memory                   # peak memory, a process each

A step is forward, cleargrads, backward and the update of all parameters.  Each framework has a process of its own; in a
round each of them runs for a moment while the others wait, and ratios are formed within rounds.  On one thread the lesser of
processor and wall time counts.  What is not installed is left out.
"""
from rounds import Column, run

COLUMNS = (
    Column("Chainer", "chainer", ("eager",)),
    Column("model compiled", "chainer", ("model",)),
    Column("whole", "chainer", ("whole",)),
    Column("JAX", "jax", ("jit", "jit_vmap", "jit_scan"), "jax"),
    Column("PyTorch", "torch", ("eager", "eager_fused"), "torch"),
    Column("torch.compile", "torch", ("compile_fused", "compile_foreach", "compile_single"), "torch"),
)

if __name__ == "__main__":
    run(__doc__, ["steps"], COLUMNS, "whole")
