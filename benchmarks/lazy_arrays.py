"""Lazy arrays beside NumPy, numexpr, Numba, JAX and MLX: array programs, each library in a process of its own.

    python benchmarks/lazy_arrays.py --install               # the others, each in an environment of its own
    python benchmarks/lazy_arrays.py [--cells chain,pairs] [--columns "lazy;JAX"] [--threads 1] [--rounds 15] [--seconds 0.15]

In a round each process runs for a moment while the others wait, and ratios are formed within rounds.  On one thread the lesser of
processor and wall time counts.  Results are compared with NumPy's.  What is not installed, or cannot do a cell, is left out.
"""
from rounds import Column, run

COLUMNS = (
    Column("NumPy", "numpy", ("numpy",)),
    Column("lazy", "numpy", ("lazy",)),
    Column("numexpr", "numexpr", ("evaluate",), "arrays"),
    Column("Numba", "numba", ("jit", "parallel"), "arrays"),
    Column("JAX", "jax", ("jit",), "jax"),
    Column("MLX", "mlx", ("compile", "lazy"), "arrays"),
)

if __name__ == "__main__":
    run(__doc__, ["arrays"], COLUMNS, "lazy")
