"""`Cache` by itself, on programs that are stubs: which stay, which go, which is tried first."""
import pytest

from dy2static.runtime.cache import Cache, Miss, Recent, nearest, reason_of


class Stub:
    """All that the cache asks of a program."""

    def __init__(self, name, nbytes=0, has_free_sizes=False):
        self.signature, self.nbytes, self.has_free_sizes = name, nbytes, has_free_sizes
        self.call = lambda args, kwargs: name

    def retire(self):
        pass


def filled(names, limit=3, **options):
    cache = Cache(limit, **options)
    for name in names:
        program = Stub(name)
        cache.put(program, program.call)
    return cache


def names(cache):
    return "".join(program.signature for program in cache.programs)


def test_the_newest_is_tried_first_and_free_sizes_last():
    cache = filled("ab")
    cache.put(Stub("f", has_free_sizes=True), lambda args, kwargs: "f")
    assert names(cache) == "baf" and [call((), {}) for call in cache.calls] == ["b", "a", "f"]


def test_what_was_used_longest_ago_goes():
    cache = filled("abc")
    cache.used(cache.calls[names(cache).index("a")])
    cache.put(Stub("d"), lambda args, kwargs: "d")
    assert names(cache) == "dca" and cache.evicted == 1
    again = Stub("b")
    assert cache.put(again, again.call) and cache.current is again


@pytest.mark.parametrize("limit_bytes, left", [(100, "cb"), (10, "c"), (0, "c")])
def test_bytes_are_limited_and_one_program_stays(limit_bytes, left):
    cache = Cache(9, limit_bytes)
    for name in "abc":
        program = Stub(name, nbytes=50)
        cache.put(program, program.call)
    assert names(cache) == left and cache.nbytes == 50 * len(left)


def test_parked_programs_are_not_called_and_come_back():
    cache = filled("ab")
    cache.park(True)
    assert not cache.calls and names(cache) == "ba"
    cache.put(Stub("c"), lambda args, kwargs: "c")
    cache.park(False)
    assert [call((), {}) for call in cache.calls] == ["c", "b", "a"]


def test_replaced_exchanged_forgotten():
    cache, gone = filled("ab"), []
    cache.gone = gone.append
    first, last = cache.programs
    cache.replace(first.call, print)
    assert cache.calls[0] is print and cache.last is print and cache.call_of(first) is print
    other = Stub("x")
    cache.exchange(first, other)
    assert names(cache) == "xa" and cache.current is other
    cache.forget(last)
    assert gone == [last] and names(cache) == "x" and cache.call_of(last) is last.call
    cache.clear()
    assert not cache.programs and not cache.calls and cache.current is None


def test_the_program_that_got_furthest_is_nearest():
    programs = Stub("a"), Stub("b"), Stub("c")
    assert nearest([(programs[0], [1, 2]), (programs[1], [4]), (programs[2], [-1])]) == (programs[1], [4])
    assert nearest([]) == (None, []) and reason_of([]) == "there was no program yet"


def test_only_the_last_misses_and_keys_are_remembered():
    cache = filled("a")
    for number in range(300):
        cache.note(Miss("", str(number)))
    assert cache.missed == 300 and cache.misses[0].result == "44"
    recent = Recent()
    for number in range(Recent.most + 5):
        recent[number] = None
    assert len(recent) == Recent.most and 4 not in recent
