"""Lists and dicts from outside that C code joins or compares: another length is another result."""
import collections

import chainer
import numpy as np
import pytest
from breaks import refuse

from dy2static import to_static

KEPT = chainer.Chain()

JOINED = {
    "after": lambda x, xs, q, d: x * len([x] + xs),
    "summed": lambda x, xs, q, d: x * len(sum([xs, xs], [x])),
    "twice": lambda x, xs, q, d: x * len(xs + KEPT.items),
    "equal": lambda x, xs, q, d: x * 2 if [] == xs else x,
    "less": lambda x, xs, q, d: x * 2 if list() < xs else x,
    "both": lambda x, xs, q, d: x * 2 if xs == KEPT.items else x,
    "dict": lambda x, xs, q, d: x * 2 if d != {} else x,
    "dicts": lambda x, xs, q, d: x * 2 if d == KEPT.table else x,
    "deque": lambda x, xs, q, d: x * 2 if [] == q else x,
    "deques": lambda x, xs, q, d: x * 2 if q == xs else x,
}


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
@pytest.mark.parametrize("name", JOINED)
def test_lengths_of_what_is_joined_or_compared_are_guarded(name):
    function, x = JOINED[name], chainer.Variable(np.ones(2))
    compiled = to_static(function)
    for count in (0, 1, 2, 0):
        items = list(range(count))
        KEPT.items, KEPT.table = items[1:], dict.fromkeys(items[1:])
        given = x, items, collections.deque(items), dict.fromkeys(items)
        np.testing.assert_array_equal(compiled(*given).array, function(*given).array)


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
def test_a_list_that_grows_between_parts_is_joined_whole():
    def total(x):
        made = []
        for _ in range(3):
            refuse(0)
            made.append(sum([x] + made))
        return made[-1]

    x = chainer.Variable(np.ones(2))
    compiled = to_static(total)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(x).array, total(x).array)
