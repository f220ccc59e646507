"""Variables indexed by numbers that only the run knows: alone, several, beside slices, lists and new axes."""
import against_eager
import chainer.functions as F
import numpy as np
import pytest
from against_eager import variable

INDEXES = {
    "one": lambda x, i, j: x[i],
    "all": lambda x, i, j: x[i, j, 0],
    "first and last": lambda x, i, j: x[i, ..., j],
    "middle": lambda x, i, j: x[:, j],
    "beside slices": lambda x, i, j: x[1:, j, ::-1],
    "behind an ellipsis": lambda x, i, j: x[..., i],
    "beside new axes": lambda x, i, j: x[None, i, :, None, j],
    "beside an int": lambda x, i, j: x[0, i],
    "negative": lambda x, i, j: x[i - 2, :, -1 - j],
    "of a row": lambda x, i, j: x[i][j],
    "in two lists": lambda x, i, j: x[[0, 1], [i, j]],
    "as an array": lambda x, i, j: x[np.array([i, j])],
    "out of range": lambda x, i, j: x[0, j + 2],
    "in a decision": lambda x, i, j: x[i, j] if i < j else x[j, i] * 2,
}


@pytest.mark.parametrize("name", INDEXES)
def test_numbers_of_the_run(name):
    def make(compile):
        def f(x):
            i, j = int(x.array[0, 0].argmax()), int(np.argmin(x.array[0, 0]))
            return INDEXES[name](F.tanh(x), i, j)
        return compile(f), None
    against_eager.check(make, [lambda k=k: (variable(2, 2, 2, seed=k),) for k in range(4)], compiled=True)


def test_positions_as_in_a_decoder():
    """A word is chosen, its score is added, and it is embedded."""
    def make(compile):
        def f(h, table):
            score, words = 0.0, []
            for _ in range(4):
                log_p = F.log_softmax(F.matmul(h, table, transb=True))
                word = int(log_p.array.argmax())
                score = score + log_p[0, word]
                words.append(word)
                if word == 2:
                    break
                h = F.tanh(h + F.embed_id(np.array([word], "i"), table))
            return words, score
        return compile(f), None
    against_eager.check(make, [lambda k=k: (variable(1, 3, seed=k), variable(4, 3, seed=9 - k)) for k in range(4)])
