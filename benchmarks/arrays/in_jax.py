"""Array programs in JAX, under jit."""
import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402

from arrays import stepping, workloads  # noqa: E402
from cases import Cells  # noqa: E402

VERSION = jax.__version__
CELLS = Cells()


def begin(mode):
    pass


@CELLS.of(workloads.ELEMENTWISE, "jit")
def jit(data, cell, mode):
    data = {name: jnp.asarray(x) for name, x in data.items()}
    return stepping.case_of(jax.jit(workloads.programs(jnp)[cell]), data, jax.block_until_ready)


@CELLS.of("softmax", "jit")
def softmax(data, cell, mode):
    step = jax.jit(lambda *args: workloads.softmax_step(jnp, *args))
    return stepping.softmax(step, data, jnp.asarray, jax.block_until_ready)
