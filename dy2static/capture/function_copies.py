"""What `copy` does: of function nodes that a link keeps, `L.BinaryHierarchicalSoftmax` applies a copy of its own."""
from __future__ import annotations

import copy
import copyreg
from typing import TYPE_CHECKING, Any, Iterable

import chainer

from ..heap.attributes import is_of_user
from ..heap.ownership import is_library_class
from ..record.guards import KeysMatch
from ..record.paths import InstanceDict, Item
from ..symbolic.host_objects import SymbolicObject

if TYPE_CHECKING:
    from .protocols import Calls


def copied_function(calls: Calls, function: Any, item: Any) -> Any:
    """``copy.copy(item)``: of a function of Chainer's that was never applied, a node with the user's arrays in it."""
    _check_reducers(calls, [copyreg.dispatch_table.get(type(item.real if isinstance(item, SymbolicObject) else item))])
    if type(item) is not SymbolicObject or not _is_template(item.real):
        return calls.native(function)(item)
    heap = calls.capture.heap
    source = calls.capture.inputs.source_of(item.value)
    attributes = heap.source(InstanceDict, source)
    heap.guard(KeysMatch(attributes, tuple(item.real.__dict__)))
    made = copy.copy(item.real)
    for name, value in item.real.__dict__.items():
        made.__dict__[name] = heap.shadow(value, heap.source(Item, attributes, name))
    return made


def copied_deeply(calls: Calls, function: Any, *args: Any, **kwargs: Any) -> Any:
    """``copy.deepcopy(item)``, also with a memo."""
    _check_reducers(calls, copyreg.dispatch_table.values())         # whatever the item holds is copied, too
    return calls.native(function)(*args, **kwargs)


def _check_reducers(calls: Calls, reducers: Iterable[Any]) -> None:
    """Stop where these functions, which `copyreg` has and `copy` calls unseen, are the user's."""
    if any([reducer is not None and is_of_user(reducer) for reducer in reducers]):
        calls.capture.abort("`copy` calls a function that is registered with `copyreg`")


def _is_template(real: Any) -> bool:
    """Whether an object is a function that was not applied yet, and is written by Chainer."""
    if isinstance(real, chainer.FunctionNode):
        applied = real.inputs is not None
    else:
        applied = not isinstance(real, chainer.Function) or real._node is not None
    return not applied and is_library_class(type(real)) and isinstance(getattr(real, "__dict__", None), dict)
