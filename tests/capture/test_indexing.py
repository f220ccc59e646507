"""Variables indexed by numbers that only the run knows: alone, several, beside slices, lists and new axes."""
from types import SimpleNamespace

import against_eager
import chainer.functions as F
import numpy as np
import pytest
from against_eager import variable

from dy2static import to_static

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


LISTS = {
    "list": lambda x, places: x[[int(k) for k in places]],          # of NumPy's numbers, Chainer takes one for each axis
    "second axis": lambda x, places: x[:, places],
    "two lists": lambda x, places: x[list(range(len(places))), [k % 3 for k in places]],
    "nested": lambda x, places: F.get_item(x, ([places, places[::-1]],)),
    "scatter": lambda x, places: F.scatter_add(x, (places,), x[[abs(int(k)) for k in places]] * 2),
}


@pytest.mark.parametrize("kind", [int, np.int64], ids=["int", "int64"])
@pytest.mark.parametrize("name", LISTS)
def test_lists_of_numbers_that_differ_in_each_call(name, kind):
    """They were known numbers, with a program for each list."""
    function, rng = LISTS[name], np.random.RandomState(0)
    static = to_static(function)
    for k in range(5):
        places = [kind(place) for place in rng.randint(-4, 4, 3)]
        wanted, found = [variable(8, 8, seed=k) for _ in range(2)]
        for x, call in ((wanted, function), (found, static)):
            F.sum(call(x, places) ** 2).backward()
        np.testing.assert_allclose(found.grad, wanted.grad, rtol=1e-5)
    assert static.cache_info().captures == 2


def test_ids_that_are_ignored_are_in_range():
    """What is looked up is stored before the next look-up, which cannot fail: for ids that are ignored, too."""
    holder, table = SimpleNamespace(), np.random.RandomState(0).standard_normal((9, 4)).astype("f")

    def states(ids):
        holder.states = []
        for word in ids:
            holder.states.append(F.embed_id(word, table, ignore_label=-1))
        return F.sum(F.stack(holder.states), axis=0)

    compiled = to_static(states, backend="numpy")
    for ids in ([[1, -1], [8, 0]], [[-1, -1], [3, 5]], [[2, 3], [-1, 8]]):
        ids = np.array(ids, "i")
        np.testing.assert_array_equal(compiled(ids).array, states(ids).array)
    assert compiled.cache_info()[:4] == (1, 32, 1, 0)
    for wrong in ([[1, 9], [0, 0]], [[0, 0], [-10, 1]]):
        found = []
        for function in (compiled, states):
            with pytest.raises(IndexError):
                function(np.array(wrong, "i"))
            found.append(len(holder.states))
        assert found[0] == found[1]
