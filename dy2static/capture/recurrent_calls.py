"""Stacked recurrent networks (`L.NStepLSTM` and similar links) over lists of sequences whose lengths are known only at run time.

Chainer sorts the sequences, and takes their rows apart moment by moment.  Here one loop over the moments computes all sequences in
the order in which they are given; the state of one that has ended stays what it is.  Rows are projected before the loop, at once.
"""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import chainer
import chainer.functions as F
import chainer.links as L
from chainer.functions.array.permutate import Permutate

from ..ir.dims import Dim, less
from ..ir.graph import Value
from ..ir.op import OPS
from ..runtime import dy
from ..symbolic.list_functions import stack
from ..symbolic.lists import StagedList
from ..symbolic.sequences import Rows, Together
from ..symbolic.values import SymbolicArray, SymbolicVariable

if TYPE_CHECKING:
    from .protocols import Calls


class _Cell(NamedTuple):
    """One kind of network.

    function: of Chainer, which a link calls.  rows: what the loop reads of the rows, from rows, weights and biases.  weights: what
    else it reads, from weights and biases.  step: the next state, a tuple, from both and the state.
    """

    function: Callable
    rows: Callable[[Any, Sequence, Sequence], Any]
    weights: Callable[[Sequence, Sequence], Tuple]
    step: Callable[[Any, Tuple, Tuple], Tuple]


# Cells -------------------------------------------------------------------------------------------------------------


#: Where the weights of the gates a, i, f and o are.
_LSTM = 2, 0, 1, 3


def _joined(parts: Sequence[Any], places: Sequence[int]) -> Any:
    return F.concat([parts[k] for k in places], axis=0)


def _lstm_rows(x: Any, ws: Sequence, bs: Sequence) -> Any:
    return F.linear(x, _joined(ws, _LSTM), _joined(bs, _LSTM))


def _lstm_weights(ws: Sequence, bs: Sequence) -> Tuple:
    # both biases are added where Chainer adds them: their gradients are arrays of their own
    return _joined(ws[4:], _LSTM), _joined(bs[4:], _LSTM)


def _lstm_step(x: Any, state: Tuple, weights: Tuple) -> Tuple:
    h, c = state
    a, i, f, o = F.split_axis(x + F.linear(h, *weights), 4, axis=1)
    c = F.tanh(a) * F.sigmoid(i) + F.sigmoid(f) * c
    return F.sigmoid(o) * F.tanh(c), c


def _gru_rows(x: Any, ws: Sequence, bs: Sequence) -> Any:
    return F.linear(x, _joined(ws, (0, 1, 2)), _joined(bs, (0, 1, 2)))


def _gru_weights(ws: Sequence, bs: Sequence) -> Tuple:
    return _joined(ws, (3, 4, 5)), _joined(bs, (3, 4, 5))


def _gru_step(x: Any, state: Tuple, weights: Tuple) -> Tuple:
    h, = state
    r_x, z_x, h_x = F.split_axis(x, 3, axis=1)
    r_h, z_h, h_h = F.split_axis(F.linear(h, *weights), 3, axis=1)
    r, z = F.sigmoid(r_x + r_h), F.sigmoid(z_x + z_h)
    return (1 - z) * F.tanh(h_x + r * h_h) + z * h,


def _rnn(function: Callable, activation: Callable) -> _Cell:
    return _Cell(function, lambda x, ws, bs: F.linear(x, ws[0], bs[0]), lambda ws, bs: (ws[1], bs[1]),
                 lambda x, state, weights: (activation(x + F.linear(state[0], *weights)),))


def _lstm(function: Callable) -> _Cell:
    return _Cell(function, _lstm_rows, _lstm_weights, _lstm_step)


def _gru(function: Callable) -> _Cell:
    return _Cell(function, _gru_rows, _gru_weights, _gru_step)


#: What a link calls, by its class.
_CELLS: Dict[Callable, _Cell] = {
    L.NStepLSTM.rnn: _lstm(F.n_step_lstm), L.NStepBiLSTM.rnn: _lstm(F.n_step_bilstm),
    L.NStepGRU.rnn: _gru(F.n_step_gru), L.NStepBiGRU.rnn: _gru(F.n_step_bigru),
    L.NStepRNNTanh.rnn: _rnn(F.n_step_rnn, F.tanh), L.NStepBiRNNTanh.rnn: _rnn(F.n_step_birnn, F.tanh),
    L.NStepRNNReLU.rnn: _rnn(F.n_step_rnn, F.relu), L.NStepBiRNNReLU.rnn: _rnn(F.n_step_birnn, F.relu)}


# Networks ----------------------------------------------------------------------------------------------------------


def _n_step(calls: Calls, function: Callable, link: Any, hs: Any, xs: Any, **kwargs: Any) -> Any:
    """What a link gives for initial states, which may be None, and sequences: the last states, and a list of sequences."""
    sequences = sequences_of(xs)
    if sequences is not None and not kwargs and not chainer.is_debug():
        cell = _CELLS.get(getattr(link.rnn, "__func__", None))
        if cell is not None and stands(cell.function):
            network = _Network(calls, link, cell, sequences)
            states = [calls.callee(link.init_hx)(sequences) if h is None else h for h in hs]
            if network.fits(states):
                calls.capture.heap.rely_on_names(cell.function)
                calls.capture.event("staged", cell.function.__name__)
                return network.results(states)
    return calls.capture.functions.staged(function)(link, hs, xs, **kwargs)


def stands(function: Callable) -> bool:
    """Whether the name by which links call a function of Chainer's has not been given to another one."""
    return vars(sys.modules[function.__module__]).get(function.__name__) is function


def sequences_of(xs: Any, ndim: int = 2) -> Optional[List[Any]]:
    """The sequences, where only the run knows the length of one; None for anything that Chainer may not take."""
    if not isinstance(xs, (list, tuple)) or type(xs) is StagedList and xs.symbolic is not None:
        return None
    found = list(xs)
    fits = found and all(isinstance(x, (SymbolicVariable, SymbolicArray)) and len(x.shape) == ndim and less(0, x.shape[0]) and
                         all(type(n) is int for n in x.shape[1:]) and
                         (x.shape[1:], x.dtype) == (found[0].shape[1:], found[0].dtype) for x in found)
    return found if fits and any(isinstance(x.shape[0], Dim) for x in found) else None


class _Network:
    """One call of a link."""

    def __init__(self, calls: Calls, link: Any, cell: _Cell, xs: Sequence[Any]):
        self.calls, self.capture, self.link, self.cell, self.xs = calls, calls.capture, link, cell, xs
        self.layers, self.directions, self.units = link.n_layers, link.direction, link.out_size
        self.ws, self.bs = link.ws, link.bs

    def fits(self, states: Sequence[Any]) -> bool:
        """Whether shapes and dtypes are those that the weights ask for; if not, Chainer says what it has to say."""
        inner, dtype = self.xs[0].shape[1], self.xs[0].dtype
        shape = self.layers * self.directions, len(self.xs), self.units
        wide = [(self.units, inner if k < self.directions else self.units * self.directions) for k in range(shape[0])]
        return dtype.kind == "f" and all(
            isinstance(h, SymbolicVariable) and (h.shape, h.dtype) == (shape, dtype) for h in states) and all(
            w.shape == (size if j < len(ws) // 2 else (self.units, self.units)) and w.dtype == dtype and
            b.shape == (self.units,) and b.dtype == dtype
            for ws, bs, size in zip(self.ws, self.bs, wide) for j, (w, b) in enumerate(zip(ws, bs)))

    def results(self, states: Sequence[Any]) -> Tuple[List[Any], List[Any]]:
        """What the network gives for initial states."""
        sizes = tuple([n.plain if isinstance(n, Dim) else n for n in (x.shape[0] for x in self.xs)])
        *turned, runs, place, place_back = OPS["sequence_places"](sizes=sizes)
        self.runs = self.capture.chainer.result(runs, [], False, False)
        self.rows, self.places, self.sizes = turned, (place, place_back), sizes
        begins, last = [F.separate(h) for h in states], []
        x = F.concat(self.xs, axis=0)
        for layer in range(self.layers):
            found = []
            for way in range(self.directions):
                k = layer * self.directions + way
                end, y = self._direction(x if layer == 0 else self._dropped(x), tuple([h[k] for h in begins]), k, way)
                last.append(end)
                found.append(y)
            x = F.concat(found, axis=1) if len(found) > 1 else found[0]
        bounds = [sum(sizes[:i]) for i in range(1, len(sizes))]
        ys = F.split_axis(x, bounds, 0) if bounds else (x,)
        return [F.stack(list(h)) for h in zip(*last)], list(ys)

    def _direction(self, x: Any, state: Tuple, k: int, way: int) -> Tuple[Tuple, Any]:
        """The last state of one direction of a layer, and its results, row by row."""
        weights = self.cell.weights(self.ws[k], self.bs[k])
        rows = self._taken(self.cell.rows(x, self.ws[k], self.bs[k]), self.rows[way])
        ys = StagedList(self.capture, [])

        def turn(item: Tuple, ys: StagedList, *state: Any) -> Tuple:
            row, runs = item
            state = tuple([self._kept(runs, new, old) for new, old in zip(self.cell.step(row, state, weights), state)])
            ys.append(state[0])
            return (ys, *state)
        moments = Together(self.capture, (Rows(self.capture, rows), Rows(self.capture, self.runs)), True)
        ys, *state = dy.for_(moments, turn, (ys, *state), names=("ys", "h", "c")[:len(state) + 1])
        results = F.reshape(stack(self.calls, F.stack, ys), (-1, self.units))
        return tuple(state), self._taken(results, self.places[way])

    def _kept(self, runs: SymbolicVariable, new: Any, old: Any) -> Any:
        """The new state of sequences that still run, the old one of others."""
        value = OPS["where"](OPS["broadcast_to"](runs.value, shape=new.shape), new.value, old.value)
        requires_grad = new.requires_grad or old.requires_grad
        return self.capture.chainer.result(value, [], requires_grad, requires_grad and bool(chainer.config.enable_backprop))

    def _taken(self, x: Any, rows: Value) -> Any:
        return self.capture.chainer.apply(Permutate(SymbolicArray(self.capture, rows), 0, False), (x,))[0]

    def _dropped(self, x: Any) -> Any:
        """The rows, of which some elements are dropped: drawn moment by moment, the longest sequence first."""
        if not chainer.config.train:
            return x
        rows, places = OPS["sequence_order"](sizes=self.sizes)
        return self._taken(F.dropout(self._taken(x, rows), self.link.dropout), places)


#: What is called for these methods: ``handler(calls, function, *args)``.
RECURRENT = {L.NStepLSTM._call: _n_step}
