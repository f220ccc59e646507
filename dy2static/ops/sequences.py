"""Sequences of different lengths that are joined along their first axis: where the rows of each are.

Moments are counted from the front of each sequence; ``sizes`` are their lengths, each one or more.
"""
from __future__ import annotations

from typing import Any, Dict, Sequence, Tuple

import numpy as np

from ..ir.op import ON_HOST, declare, sample
from ..ir.size_bounds import maximum
from ..ir.types import Tensor
from .onnx_forms import sequences as forms

_INT = np.dtype("int64")
_ATTRS: Dict[str, Any] = {"sizes": (1,)}


def _canonical(*, sizes: Sequence[Any]) -> Dict[str, Any]:
    return {"sizes": tuple(sizes)}


def _rows(sizes: Sequence[Any]) -> Tensor:
    return Tensor((sum(sizes),), _INT)


def _places_infer(*, sizes: Tuple[Any, ...]) -> Tuple[Tensor, ...]:
    moments = maximum(*sizes)
    table, rows = Tensor((moments, len(sizes)), _INT), _rows(sizes)
    return table, table, Tensor((moments, len(sizes), 1), np.dtype(bool)), rows, rows


def find_places(lengths: Sequence[int]) -> Tuple[np.ndarray, ...]:
    """Where the rows of joined sequences are in an array of all moments, and the other way round."""
    sizes = np.array(lengths, _INT)
    starts, moments = np.cumsum(sizes) - sizes, np.arange(sizes.max())[:, None]
    onwards = starts + np.minimum(moments, sizes - 1)
    backwards = starts + np.maximum(sizes - 1 - moments, 0)
    sequences = np.repeat(np.arange(len(sizes)), sizes)
    places = np.arange(len(sequences)) - starts[sequences]
    return (onwards, backwards, (moments < sizes)[:, :, None], places * len(sizes) + sequences,
            (sizes[sequences] - 1 - places) * len(sizes) + sequences)


#: Five tables: the row of each sequence at each moment (of some moment of the sequence where it has ended), and the same counted
#: from its end; whether it still runs then; and for each row its place among ``moments * sequences`` places, counted both ways.
places_of_sequences = declare(
    "sequence_places", "", _ATTRS, kind="creation", canonical=_canonical, infer=_places_infer,
    numpy="find_places({sizes})", calls=(find_places,), cupy=ON_HOST,
    onnx=forms.places(find_places),
    samples=(sample(sizes=(3, 1, 4)), sample(sizes=(2,)), sample(sizes=(1, 1))),
)


def find_order(lengths: Sequence[int]) -> Tuple[np.ndarray, np.ndarray]:
    """The rows of joined sequences, moment by moment, the longest sequence first; and where each row is in that order."""
    sizes = np.array(lengths, _INT)
    starts = np.cumsum(sizes) - sizes
    longest_first = np.argsort(-sizes).astype(np.int32)     # as Chainer sorts: equal lengths stay in the order that this gives
    rows = np.concatenate([starts[longest_first[:np.count_nonzero(sizes > moment)]] + moment for moment in range(sizes.max())])
    places = np.empty_like(rows)
    places[rows] = np.arange(len(rows))
    return rows, places


#: The order in which Chainer goes through the rows of sequences, moment by moment, and where each row is in it.
order_of_sequences = declare(
    "sequence_order", "", _ATTRS, kind="creation", canonical=_canonical, infer=lambda *, sizes: (_rows(sizes), _rows(sizes)),
    numpy="find_order({sizes})", calls=(find_order,), cupy=ON_HOST,
    onnx=forms.order(find_order),
    samples=(sample(sizes=(3, 1, 4)), sample(sizes=(2, 2))),
)
