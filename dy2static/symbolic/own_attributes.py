"""Attributes that the user's code gives to its Variables, such as a scale of the learning rate of a Parameter."""
from __future__ import annotations

from typing import Any, Optional

import chainer

from ..heap.dict_shadows import ShadowDict
from ..record.paths import InstanceDict


def read_own(variable: Any, name: str) -> Any:
    """An attribute of a symbolic Variable that its class does not have: that of the user's Variable, under a guard.

    Raises AttributeError where the user's Variable has none either.
    """
    if not name.startswith("__"):
        if _is_one_of_several(variable):
            variable.capture.abort(f"`.{name}` of a Variable that a decision or a loop on array values picks is used")
        attributes = _attributes(variable)
        if attributes is not None and name in attributes:
            return attributes[name]
    kind = chainer.Parameter if isinstance(variable, chainer.Parameter) else chainer.Variable
    raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")


def assign_own(variable: Any, name: str, item: Any) -> bool:
    """Set an attribute of a Variable of the caller's that is none of Chainer's; False if it is, or is made in the call."""
    if name.startswith("_") or hasattr(type(variable), name):
        return False
    attributes = _attributes(variable)
    if attributes is None:
        return False
    attributes[name] = item
    return True


def _is_one_of_several(variable: Any) -> bool:
    """Whether array values decide which Variable this is."""
    own, builder = variable.__dict__, variable.__dict__["capture"].builder
    if "source" in own:
        return False
    while builder.outer is not None and own["_data"][0].now() not in builder.inputs:
        builder = builder.outer
    return "origins" in own or "choice" in own or builder.outer is not None


def _attributes(variable: Any) -> Optional[ShadowDict]:
    """The attributes of the user's Variable; None for Variables that are made in the call."""
    own = variable.__dict__
    if "attributes" not in own:
        heap, source = own["capture"].heap, own.get("source")
        own["attributes"] = None if source is None else heap.track(
            ShadowDict(heap, vars(heap.real_of(variable)), heap.source(InstanceDict, source)))
    found: Optional[ShadowDict] = own["attributes"]
    return found
