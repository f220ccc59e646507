"""What every transformer is made of."""
from __future__ import annotations

from typing import Any, ClassVar, Tuple, Type

import gast


class Transformer(gast.NodeTransformer):
    pass
