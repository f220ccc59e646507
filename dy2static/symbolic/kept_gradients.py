"""What one Variable keeps in ``grad_var``: a place that decisions and loops may change."""
from __future__ import annotations

from typing import Any

#: Marks gradients of which a decision on array values says which exist.
LOST = object()
#: The loss scale that a Variable had before the call.
BEFORE = object()


class KeptGradient:
    """The gradient of one Variable now.

    initial: when this was made.  before: as last written back.  cleared, loss_scale: what else `cleargrad` and `backward` leave
    behind.  was_cleared: whether it was at all, written back or not.  is_shown: whether the user has read the Variable itself.
    """

    def __init__(self, variable: Any, gradient: Any):
        self.variable, self.gradient, self.before, self.initial = variable, gradient, gradient, gradient
        self.cleared = self.was_cleared = self.is_shown = False
        self.loss_scale = self.stored_scale = BEFORE
