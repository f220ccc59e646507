"""The forms of operands that several ops are tried with."""
from __future__ import annotations

from ..ir.op import sample

ONE = (sample((4, 3)), sample(()), sample((0, 3)), sample((1,)), sample((2, 1, 5)))
PAIR = (sample((4, 3), (4, 3)), sample((), ()), sample((0, 3), (0, 3)), sample((1,), (1,)), sample((2, 1, 5), (2, 1, 5)))
AWAY_FROM_ZERO = (sample((4, 3), (4, 3), low=0.5, high=2), sample((), (), low=-2, high=-0.5), sample((0, 3), (0, 3)))
