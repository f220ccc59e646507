"""Loops that go backwards over an axis of any length, and do something else at its end: advantages, returns, smoothing."""
import numpy as np
import pytest

from dy2static import to_static


def advantages(rewards, values, last):
    """Estimates as in policy optimization; the value behind the last one is a number of Python's."""
    found, advantage = np.zeros_like(rewards), 0.0
    for t in reversed(range(len(rewards))):
        following = last if t == len(rewards) - 1 else values[t + 1]
        advantage = rewards[t] + 0.5 * following - values[t] + 0.25 * advantage
        found[t] = advantage
    return found


def nothing_behind_the_last(rewards, values, last):
    found, n = [], rewards.shape[0]
    for t in range(n - 1, -1, -1):
        following = None if n - 1 == t else values[t + 1]
        found.append(rewards[t] if following is None else rewards[t] + following)
    return np.array(found)


def below(rewards, values, last):
    found, n = np.zeros_like(rewards), len(rewards)
    for t in range(n - 1, -1, -1):
        if t < n - 1:
            found[t] = rewards[t] + found[t + 1]
        else:
            found[t] = last
    return found


def three_ways(rewards, values, last):
    found, n = np.zeros_like(rewards), len(rewards)
    for t in reversed(range(n)):
        if t <= n - 3:
            found[t] = rewards[t + 2]
        elif t != n - 1:
            found[t] = values[t + 1] * 2
        else:
            found[t] = last
    return found


def from_the_one_before_the_last(rewards, values, last):
    total, n = last, len(rewards)
    for t in reversed(range(1, n)):
        if t >= n - 1:
            total += rewards[t]
        elif t == 1:
            total += 100
        else:
            total += values[t + 1]
    return total


@pytest.mark.parametrize("function, backend", [
    (advantages, "numpy"), (advantages, "c"), (nothing_behind_the_last, "numpy"), (below, "c"), (three_ways, "numpy"),
    (from_the_one_before_the_last, "numpy")])
def test_one_program_for_all_lengths(function, backend):
    static = to_static(function, backend=backend)
    random = np.random.RandomState(0)
    for n in (5, 9, 7, 12, 3, 2, 20, 4):
        given = *random.rand(2, n).astype("f"), 3.0 + n
        expected, found = function(*given), static(*given)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert np.asarray(found).dtype == np.asarray(expected).dtype
    assert static.cache_info().captures <= 5 and static.cache_info().fallbacks == 0


def test_one_place_too_far():
    def beyond(rewards):
        total = 0.0
        for t in reversed(range(len(rewards))):
            total = total + (rewards[t + 1] if t < len(rewards) - 1 else rewards[t + 1])
        return total
    static = to_static(beyond, backend="numpy")
    for n in (3, 4, 5):
        with pytest.raises(IndexError, match=f"index {n} is out of bounds"):
            static(np.ones(n, "f"))
