"""Calls of chainer.functions.rnn."""
import chainer.functions as F
from lowering_cases.case import Case

#: two sequences of lengths 2 and 1, each of vectors of 2; states of 2
_SEQUENCES, _STATES = [(2, 2), (1, 2)], 2


def _cell(name, function, gates, directions=1, cell=False, layers=1, dropout=0.0, **options):
    """An RNN over several layers; its first operands are the states, then come weights and biases, then the sequences."""
    count = layers * directions
    hidden = [(count, len(_SEQUENCES), _STATES)] * (2 if cell else 1)
    weights = [(_STATES, (2 if k < directions else _STATES * directions) if g < gates // 2 else _STATES)
               for k in range(count) for g in range(gates)]
    biases = [(_STATES,)] * (count * gates)

    def run(*operands):
        states, rest = operands[:len(hidden)], list(operands[len(hidden):])
        ws = [rest[k * gates:(k + 1) * gates] for k in range(count)]
        bs = [rest[(count + k) * gates:(count + k + 1) * gates] for k in range(count)]
        return function(layers, dropout, *states, ws, bs, rest[2 * count * gates:], **options)
    return Case(f"{name} of {layers}{' with dropout' if dropout else ''}", run, *hidden, *weights, *biases, *_SEQUENCES,
                low=-1.0, high=1.0, twice=layers == 1, dtypes="f d" if layers == 1 else "e f d")


CASES = [
    *(_cell(f.__name__, f, 8, d, True) for f, d in ((F.n_step_lstm, 1), (F.n_step_bilstm, 2))),
    *(_cell(f.__name__, f, 6, d) for f, d in ((F.n_step_gru, 1), (F.n_step_bigru, 2))),
    *(_cell(f"{f.__name__} {activation}", f, 2, d, activation=activation)
      for f, d in ((F.n_step_rnn, 1), (F.n_step_birnn, 2)) for activation in ("tanh", "relu")),
    _cell("n_step_lstm", F.n_step_lstm, 8, 1, True, layers=2, dropout=0.4),
    _cell("n_step_bigru", F.n_step_bigru, 6, 2, layers=2),
    Case("slstm", F.slstm, (3, 2), (3, 2), (3, 8), (3, 8)),
    Case("slstm c", lambda *xs: F.slstm(*xs)[0], (3, 2), (3, 2), (3, 8), (3, 8)),
    Case("slstm h", lambda *xs: F.slstm(*xs)[1], (3, 2), (3, 2), (3, 8), (3, 8)),
    Case("tree_lstm", F.tree_lstm, (3, 2), (3, 2), (3, 10)),
    Case("tree_lstm of one", F.tree_lstm, (3, 2), (3, 8)),
    Case("tree_lstm of three", F.tree_lstm, (1, 2), (1, 2), (1, 2), (1, 12)),
]
