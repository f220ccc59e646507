"""None of these networks is written in JAX."""
from cases import Cells
from nets.in_jax import VERSION, begin

__all__ = ["CELLS", "VERSION", "begin"]
CELLS = Cells()
