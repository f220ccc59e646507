"""Which nodes C takes."""
from __future__ import annotations

from typing import Callable, Dict

import numpy as np

from ...ir.c_forms import c_expression, c_type
from ...ir.dims import Dim, is_known
from ...ir.graph import Graph, Node, Value
from ...ir.sizes_read import dims_of
from ...ir.types import List as ListType
from ...ir.types import Scalar, Stack, Tensor, dims_in
from ...lowering.numpy.legalize import CALLS, call_as_ops
from ...passes.legalize.decompose import decomposes
from ..loops import layout
from ..loops.groups import REDUCTIONS
from . import kernels_blocks, kernels_convolution, kernels_indexing, kernels_picking, kernels_pooling, lists
from .draws import NATIVE_DRAWS, STANDALONE_DRAWS
from .kernels_dense import ALONE
from .lists import LISTS
from .scalars import has_scalar_form

#: Tables up to this size stand in the text; larger ones are inputs.
_LARGEST_TABLE = 64


def supported(node: Node, standalone: bool = False) -> bool:
    """Whether C computes a node, with all that is in its regions.

    standalone: in a function that no Python stands behind: also tables of any size, all draws, what raises, and lists and stacks
        whose items have sizes that only the run knows; none of these enters or leaves.
    """
    if node.op.name == "raise_":
        return standalone
    if not all(_has_memory_form(value, standalone) for value in (*node.inputs, *node.outputs)):
        return False
    name = node.op.name
    if name in CALLS:
        instead = call_as_ops(node)
        return instead is not None and all(supported(new, standalone) for new in instead)
    if not all(map(is_known, dims_of(node))) and not _fits_run_sizes(node):
        return False
    if name in LISTS:
        return lists.takes(node, standalone)
    if standalone and name in ("constant", *STANDALONE_DRAWS):
        return True
    if node.regions:
        return name in ("if_", "while_", "scan") and all(
            supported(inner, standalone) for region in node.regions for inner in region.nodes) \
            and all(_plain_control(node, region, standalone) for region in node.regions)
    if any(isinstance(v.type, Stack) for v in (*node.inputs, *node.outputs)):
        return name in ("stack_product", "stack_scatter") and node.outputs[0].dtype.kind == "f"
    if node.op.kind == "scalar":
        return has_scalar_form(node) or name in ("py_constant", "dimension") and _fits(node)
    if any(isinstance(v.type, Scalar) for v in node.inputs) and name not in ("getitem_at", "scatter_at", "put"):
        return False
    if node.op.kind == "elementwise":
        types = [v.type for v in node.inputs]
        return c_expression(node.op, [v.name for v in node.inputs], types, node.outputs[0].type, node.attrs) is not None
    if node.op.decompose is not None:
        return decomposes(node)
    return name in _TAKEN and _TAKEN[name](node)


#: Ops whose text is right for sizes that only the run knows.
_OF_ANY_SIZE = frozenset((
    *REDUCTIONS, *layout.RULES, "matmul", "take", "scatter_add", "concat", "stack", "reshape", "full", "getitem_at", "scatter_at",
    "take_along", "add_along", "stack_scatter", "sequence_places", "dimension", "argmax", "argmin", "arange", "argsort", "bincount",
    "cumprod", "cumsum", "linear_recurrence", "pad", "pretransposed", "put_diagonal", "put_diagonals", "select",
    "shift", "sort", "stack_product", "weighted_add", "weighted_take", *STANDALONE_DRAWS, *LISTS)) - {"diagonal"}


#: Ops whose text is right for any number of images of any size, if their channels and windows are known.
_OF_ANY_IMAGES = {**dict.fromkeys(kernels_convolution.CONVOLUTIONS, kernels_convolution.known_of),
                  **dict.fromkeys(kernels_pooling.WINDOWS, kernels_pooling.known_of)}


def _fits_run_sizes(node: Node) -> bool:
    """Whether C computes a node for sizes that only the run knows."""
    if node.op.name in ("scatter_slice", "pick", "add_at", "put"):
        return all(entry[2] == 1 or entry[1:] == (None, -1) or all(e is None or is_known(e) for e in entry[:2])
                   for entry in node.attrs["index"] if isinstance(entry, tuple))
    if node.op.name in _OF_ANY_IMAGES:
        windows = tuple([attr for name, attr in node.attrs.items() if name != "size"])
        return not any(True for _ in dims_in((windows, _OF_ANY_IMAGES[node.op.name](node))))
    return bool(node.regions) or node.op.kind == "elementwise" or node.op.decompose is not None or node.op.name in _OF_ANY_SIZE


def _reduces(node: Node) -> bool:
    kind = node.outputs[0].dtype.kind
    return node.op.name in ("any", "all") or kind in "iu" or kind == "f" and node.inputs[0].dtype.kind == "f"


def _fits(node: Node) -> bool:
    value = node.attrs.get("value", node.attrs.get("size"))
    if isinstance(value, Dim):
        return True
    if isinstance(node.outputs[0].type, Tensor):
        return isinstance(value, (bool, int, float, np.generic)) and (
            node.outputs[0].dtype.kind == "f" or value in (0, 1, True, False))
    return isinstance(value, (bool, float)) or isinstance(value, int) and -2 ** 62 < value < 2 ** 62


def _has_memory_form(value: Value, standalone: bool = False) -> bool:
    type = value.type
    if isinstance(type, Stack):
        return not isinstance(type.elem, (Stack, ListType)) and _has_memory_form(Value(type.elem)) and all(
            n if is_known(n) else standalone for n in type.elem.shape)
    if isinstance(type, ListType):
        return lists.has_memory_form(type, standalone)
    if isinstance(type, Tensor):
        return c_type(type.dtype) is not None
    return isinstance(type, Scalar) and (type.kind != "numpy" or c_type(type.dtype) is not None)


def _plain_control(node: Node, region: Graph, standalone: bool) -> bool:
    """Whether a region gives what the node gives, and always ends; one that raises may be a side of a branch."""
    if standalone and node.op.name == "if_" and region.nodes and region.nodes[-1].op.name == "raise_":
        return True
    if node.op.name == "if_" and any(isinstance(v.type, Stack) for v in (*node.inputs, *node.outputs)):
        return False
    if node.op.name == "if_" and [v.type for v in region.outputs] != [v.type for v in node.outputs]:
        return False
    if standalone and any(inner.op.name in ("list_stack", "list_array") for inner in region.walk()):
        return False                                           # how much memory its result takes is known in there only
    carried = node.attrs.get("carried", 0)
    return not any(isinstance(v.type, Stack) for v in node.outputs[:carried]) and all(
        _has_memory_form(v, standalone) for v in region.outputs)


def _is_float(node: Node) -> bool:
    return node.outputs[0].dtype.kind == "f"


def _always(node: Node) -> bool:
    return True


#: For each op that is no list, no number and not elementwise, whether C takes a node of it; what comes later counts.
_TAKEN: Dict[str, Callable[[Node], bool]] = {
    **dict.fromkeys((*layout.RULES, *ALONE), _always),
    **dict.fromkeys(STANDALONE_DRAWS, lambda node: False),
    **dict.fromkeys(NATIVE_DRAWS, lambda node: node.outputs[0].ndim > 0),
    **dict.fromkeys(kernels_pooling.WINDOWS, kernels_pooling.takes),
    **dict.fromkeys(kernels_convolution.CONVOLUTIONS, kernels_convolution.takes),
    **dict.fromkeys(kernels_blocks.BLOCKS, kernels_blocks.takes),
    **dict.fromkeys(kernels_indexing.AXES, kernels_indexing.takes),
    **dict.fromkeys(kernels_picking.PICKS, kernels_picking.takes),
    "full": _fits, "matmul": _is_float,
    "constant": lambda node: node.attrs["value"].size <= _LARGEST_TABLE,
    "arange": lambda node: node.outputs[0].dtype.kind in "iuf" and all(isinstance(node.attrs[k], int) for k in ("start", "step")),
    **dict.fromkeys(REDUCTIONS, _reduces)}


