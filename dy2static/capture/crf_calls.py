"""Conditional random fields (`L.CRF1d` with ``transpose=True``) over lists of sequences whose lengths are known only at run time.

Chainer sorts the sequences, and takes their rows apart moment by moment.  Here one loop over the moments goes through all sequences
in the order in which they are given; what is known of one that has ended stays what it is.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence, Tuple

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer.functions.array.permutate import Permutate

from ..ir.op import OPS
from ..runtime import dy
from ..symbolic.list_functions import stack
from ..symbolic.lists import StagedList
from ..symbolic.sequences import Backwards, Rows, Together
from ..symbolic.sizes import Size
from ..symbolic.values import SymbolicArray, SymbolicVariable
from .recurrent_calls import sequences_of, stands

if TYPE_CHECKING:
    from .protocols import Calls


def _loss(calls: Calls, function: Callable, link: Any, xs: Any, ys: Any, reduce: Any = "mean", transpose: Any = False) -> Any:
    """The loss of labels: the mean over the sequences, or of each, the longest first."""
    is_known = transpose is True and reduce in ("mean", "no") and _are_labels(ys, xs)
    field = _field(calls, link, xs, F.crf1d) if is_known else None
    if field is None:
        return calls.capture.functions.staged(function)(link, xs, ys, reduce, transpose)
    losses = field.normalizers() - field.scores(ys)
    return F.sum(losses) / len(xs) if reduce == "mean" else field.sorted(losses)


def _argmax(calls: Calls, function: Callable, link: Any, xs: Any, transpose: Any = False) -> Any:
    """The scores of the best labels, the longest sequence first, and these labels, in the order of the sequences."""
    field = _field(calls, link, xs, F.argmax_crf1d) if transpose is True else None
    return calls.capture.functions.staged(function)(link, xs, transpose) if field is None else field.best()


def _are_labels(ys: Any, xs: Any) -> bool:
    """Whether these are the labels of the sequences; if not, Chainer says what it has to say."""
    found, labels = sequences_of(xs), sequences_of(ys, 1)
    return found is not None and labels is not None and len(labels) == len(found) and all(
        y.dtype.kind == "i" and y.shape == x.shape[:1] for x, y in zip(found, labels))


def _field(calls: Calls, link: Any, xs: Any, function: Callable) -> Optional[_Field]:
    """What answers for a call of a link; None if Chainer is to answer."""
    called = function, F.transpose_sequence
    found = sequences_of(xs)
    if found is None or chainer.is_debug() or not all(map(stands, called)) or \
            not all(isinstance(x, SymbolicVariable) for x in found):
        return None
    labels, dtype = found[0].shape[1], found[0].dtype
    if not isinstance(link.cost, SymbolicVariable) or (link.cost.shape, link.cost.dtype) != ((labels, labels), dtype) or \
            dtype.kind != "f":
        return None
    for each in called:
        calls.capture.heap.rely_on_names(each)
    calls.capture.event("staged", function.__name__)
    return _Field(calls, link.cost, found)


class _Field:
    """One call of a link.  moments: the rows of all sequences at each moment, ``(moments, sequences, labels)``.

    runs: whether a sequence runs at a moment; where it has ended, its row is one of its own.  follows: whether it also ran before.
    """

    def __init__(self, calls: Calls, cost: SymbolicVariable, xs: Sequence[SymbolicVariable]):
        self.calls, self.capture, self.cost, self.xs = calls, calls.capture, cost, xs
        self.sizes = tuple([n.plain if isinstance(n, Size) else n for n in (x.shape[0] for x in xs)])
        found = [SymbolicArray(self.capture, value) for value in OPS["sequence_places"](sizes=self.sizes)]
        self.table, _, self.runs, self.places, _ = found
        self.follows = self.runs & (self.table != self.table[0])[:, :, None]
        self.moments = self._taken(F.concat(xs, axis=0), self.table)

    def normalizers(self) -> Any:
        """The logarithm of the sum over all labels, for each sequence."""
        def turn(item: Tuple, alpha: Any) -> Tuple:
            row, follows = item
            return self._where(follows, F.logsumexp(self._sums(alpha, follows), axis=1) + row, alpha),
        alpha, = dy.for_(self._turns(), turn, (self.moments[0],), names=("alpha",))
        return F.logsumexp(alpha, axis=1)

    def scores(self, ys: Sequence[Any]) -> Any:
        """What the labels score, for each sequence."""
        labels, size, shape = F.concat(list(ys), axis=0), self.cost.shape[0], (-1, len(self.xs), 1)
        now, before = [F.reshape(self._taken(labels, rows), (-1,)) for rows in (self.table, self.table - self.follows[:, :, 0])]
        own = F.select_item(F.reshape(self.moments, (-1, size)), now)
        pairs = F.embed_id(before * size + now, F.reshape(self.cost, (-1, 1)))
        found = self._where(self.runs, F.reshape(own, shape)) + self._where(self.follows, F.reshape(pairs, shape))
        return F.reshape(F.sum(found, axis=0), (-1,))

    def best(self) -> Tuple[Any, List[Any]]:
        """The scores of the best labels, and these."""
        same = np.arange(self.cost.shape[0], dtype=np.int32)

        def turn(item: Tuple, befores: StagedList, alpha: Any) -> Tuple:
            row, follows = item
            sums = self._sums(alpha, follows)
            befores.append(self._where(follows, F.argmax(sums, axis=1), same))
            return befores, self._where(follows, F.max(sums, axis=1) + row, alpha)
        befores, alpha = dy.for_(self._turns(), turn, (StagedList(self.capture, []), self.moments[0]), names=("befores", "alpha"))

        def back(before: Any, path: StagedList, label: Any) -> Tuple:
            path.append(label)
            return path, F.select_item(before, label)
        turns = Backwards(self.capture, Rows(self.capture, stack(self.calls, F.stack, befores)))
        path, _ = dy.for_(turns, back, (StagedList(self.capture, []), F.argmax(alpha, axis=1)), names=("path", "label"))
        rows = self._taken(F.reshape(stack(self.calls, F.stack, path)[::-1], (-1,)), self.places)
        bounds = [sum(self.sizes[:i]) for i in range(1, len(self.sizes))]
        paths = F.split_axis(rows, bounds, 0) if bounds else (rows,)
        return self.sorted(F.max(alpha, axis=1)), [labels.array for labels in paths]

    def sorted(self, x: Any) -> Any:
        """One number for each sequence, in Chainer's order of the sequences."""
        return self._taken(x, self.calls.callee(np.argsort)(-self.runs.sum(axis=0)[:, 0]))

    def _turns(self) -> Together:
        """All moments, with whether sequences go on."""
        return Together(self.capture, (Rows(self.capture, self.moments), Rows(self.capture, self.follows)), True)

    def _sums(self, alpha: Any, follows: Any) -> Any:
        """What is known of the last labels, and the costs of the next ones; of sequences that have ended, the costs alone."""
        before, cost = F.broadcast(F.expand_dims(self._where(follows, alpha), 2), self.cost)
        return before + cost

    def _where(self, mask: SymbolicArray, new: Any, old: Any = None) -> Any:
        """The new values of the sequences that a mask ``(..., sequences, 1)`` names; of others the old ones, an array, or zeros."""
        other = old.value if isinstance(old, SymbolicVariable) else \
            OPS["constant"](value=np.zeros((), new.dtype) if old is None else np.asarray(old, new.dtype))
        value = OPS["where"](OPS["broadcast_to"](mask.now(), shape=new.shape), new.value, other)
        requires_grad = new.requires_grad or isinstance(old, SymbolicVariable) and old.requires_grad
        return self.capture.chainer.result(value, [], requires_grad, requires_grad and bool(chainer.config.enable_backprop))

    def _taken(self, x: Any, rows: SymbolicArray) -> Any:
        return self.capture.chainer.apply(Permutate(rows, 0, False), (x,))[0]


#: What is called for these methods: ``handler(calls, function, *args)``.
FIELDS = {L.CRF1d.forward: _loss, L.CRF1d.argmax: _argmax}
