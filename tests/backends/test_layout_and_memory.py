"""Where elements are, which memory is shared, and which loops threads share: each on its own."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dy2static import ops
from dy2static.backends.loops.layout import (
    RULES,
    Place,
    Places,
    broadcast,
    compact_strides,
    indexed,
    merged_axes,
    place_of,
    reshaped,
)
from dy2static.backends.loops.parallelize import LEAST, MOST, Level, Share, cut, image_by_image
from dy2static.backends.memory_planner import ALIGNMENT, Buffer, Storages, aligned, arranged
from dy2static.ir.building import Builder, building
from dy2static.ir.graph import Value
from dy2static.ir.types import Tensor

pytestmark = pytest.mark.any_python

SHAPES = st.lists(st.integers(1, 4), max_size=4).map(tuple)


def value(shape):
    return Value(Tensor(shape, np.dtype("float64")), "x")


def seen(place, array):
    """What a place shows of the memory of an array."""
    spots = [place.offset + sum(i * s for i, s in zip(index, place.strides)) for index in np.ndindex(*place.shape)]
    return np.ravel(array)[np.array(spots, int)].reshape(place.shape)


def numbers(shape):
    return np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape)


# Places -------------------------------------------------------------------------------------------------------------


@given(SHAPES)
def test_compact(shape):
    place = place_of(value(shape))
    assert place.compact and place.whole
    np.testing.assert_array_equal(seen(place, numbers(shape)), numbers(shape))


VIEWS = {
    "transpose": (lambda x: ops.transpose(x, axes=(2, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    "broadcast_to": (lambda x: ops.broadcast_to(x, shape=(5, 2, 3, 4)), lambda x: np.broadcast_to(x, (5, 2, 3, 4))),
    "getitem": (lambda x: ops.getitem(x, index=((1, 2, 1), None, 2, (3, None, -2))), lambda x: x[1:2, None, 2, 3::-2]),
    "diagonal": (lambda x: ops.diagonal(x, offset=1, axes=(1, 2)), lambda x: x.diagonal(1, 1, 2)),
}


@pytest.mark.parametrize("op, view", VIEWS.values(), ids=VIEWS)
def test_views_are_those_of_numpy(op, view):
    builder = Builder()
    with building(builder):
        x = builder.input(Tensor((2, 3, 4), np.dtype("float64")), "x")
        result = op(x)
    (node,) = builder.build((result,)).nodes
    places = Places(lambda: "at")
    assert node.op.name in RULES and places.settle(node)
    assert places.of(result).base is x
    np.testing.assert_array_equal(seen(places.of(result), numbers((2, 3, 4))), view(numbers((2, 3, 4))))


@given(SHAPES, st.permutations(range(4)), st.data())
def test_reshaped_is_exact_or_none(shape, order, data):
    """Strides say a reshape as NumPy does where it makes no copy."""
    axes = [a for a in order if a < len(shape)]
    base = value(shape)
    place = Place(base, tuple(shape[a] for a in axes), tuple(compact_strides(shape)[a] for a in axes))
    sizes = [n for n in place.shape for n in ((2, 2) if n == 4 else (n,))]
    cuts = sorted(data.draw(st.sets(st.integers(0, len(sizes)), max_size=3)))
    new = tuple(int(np.prod(sizes[a:b], dtype=int)) for a, b in zip((0, *cuts), (*cuts, len(sizes))))
    found = reshaped(place, new)
    array = numbers(shape).transpose(axes)
    if found is not None:
        np.testing.assert_array_equal(seen(found, numbers(shape)), array.reshape(new))
    else:
        assert not np.shares_memory(array, array.reshape(new))


def test_an_index_that_the_run_knows_is_a_term():
    place = indexed(place_of(value((3, 4))), (0, (1, 3, 1)))
    assert (place.shape, place.strides, place.offset) == ((2,), (1,), 1)
    assert not place.whole and place.compact


def test_axes_are_merged_where_all_places_go_in_one_stride():
    x = place_of(value((2, 3, 4)))
    assert merged_axes(x.shape, [x]) == [[0, 1, 2]]
    assert merged_axes(x.shape, [x, broadcast(place_of(value((4,))), x.shape)]) == [[0, 1], [2]]
    assert merged_axes(x.shape, [x, broadcast(place_of(value((2, 1, 1))), x.shape)]) == [[0], [1, 2]]
    assert merged_axes((1, 3, 1), [place_of(value((1, 3, 1)))]) == [[1]]


# Memory -------------------------------------------------------------------------------------------------------------

BUFFERS = st.lists(st.tuples(st.integers(1, 500), st.integers(0, 12), st.integers(0, 5)).map(
    lambda t: Buffer("b", "float", t[0], t[1], t[1] + t[2])), max_size=12)


def overlapping(buffers, offsets, apart=()):
    """Pairs that are in use at one time and share a byte."""
    for i, (a, at) in enumerate(zip(buffers, offsets)):
        for b, to in list(zip(buffers, offsets))[:i]:
            together = a.first <= b.last and b.first <= a.last and (a, b) not in apart and (b, a) not in apart
            if together and at < to + b.nbytes and to < at + a.nbytes:
                yield a, b


@given(BUFFERS)
def test_buffers_in_use_at_one_time_do_not_overlap(buffers):
    total, offsets = arranged(buffers)
    assert not list(overlapping(buffers, offsets))
    assert all(at % ALIGNMENT == 0 and at + b.nbytes <= total for b, at in zip(buffers, offsets))
    assert total <= sum(aligned(b.nbytes) for b in buffers)


@given(BUFFERS, st.data())
def test_only_what_may_stand_in_one_place_does(buffers, data):
    same = [(a, b) for a in buffers for b in buffers if a is not b and a.last == b.first and a.first < b.first]
    for a, b in same:
        b.nbytes = a.nbytes = 64
    pairs = data.draw(st.lists(st.sampled_from(same), max_size=4)) if same else []
    _, offsets = arranged(buffers, pairs)
    assert not list(overlapping(buffers, offsets, pairs))


def test_one_that_dies_makes_room_for_the_next():
    first, second, third = Buffer("a", "float", 100, 0, 1), Buffer("b", "float", 60, 1, 2), Buffer("c", "float", 80, 2, 3)
    assert arranged([first, second, third]) == (192, [0, 128, 0])


@given(st.lists(st.one_of(st.integers(1, 100), st.none()), max_size=30))
def test_storages_are_used_again_and_never_twice(steps):
    storages, taken = Storages(), []
    for nbytes in steps:
        if nbytes is None:
            if taken:
                storages.give(taken.pop(0))
            continue
        piece = storages.take(nbytes)
        assert piece not in taken and storages.sizes[piece] >= nbytes
        taken.append(piece)


def test_the_smallest_piece_that_fits_is_taken():
    storages = Storages()
    pieces = [storages.take(n) for n in (10, 30, 20)]
    for piece in pieces:
        storages.give(piece)
    assert [storages.take(n) for n in (15, 40, 5)] == [2, 1, 0]
    assert storages.sizes == [10, 40, 20]


# Threads ------------------------------------------------------------------------------------------------------------


def test_little_work_is_not_shared():
    assert cut([Level("i0", 1000)], 1000, LEAST - 1) is None
    assert cut([Level("i0", 1)], 1000, 10 * LEAST) is None


def test_the_outermost_loop_that_is_long_enough_is_shared():
    assert cut([Level("i0", 2), Level("i1", 1000)], 2000, 10 ** 7) == Share("i1", 1000, 32)
    assert cut([Level("i0", 100), Level("i1", 1000)], 10 ** 5, 10 ** 7) == Share("i0", 100, 4)


def test_pieces_of_the_innermost_loop_are_whole_lines():
    share = cut([Level("j0", 100_000, innermost=True)], 100_000, 10 ** 7)
    assert share.step % 64 == 0 and share.shares <= MOST


def test_sums_of_their_own_must_be_little_beside_the_work():
    assert cut([Level("j0", 1000, summed=10)], 10 ** 6, 10 ** 7).private
    assert cut([Level("j0", 1000, summed=10 ** 5)], 10 ** 6, 10 ** 7) is None


@given(st.integers(2, 5000), st.floats(LEAST, 1e9))
def test_shares_cover_the_loop(size, nanoseconds):
    share = cut([Level("i0", size)], size, nanoseconds)
    assert share is None or (share.shares - 1) * share.step < size <= share.shares * share.step and 2 <= share.shares <= MOST


def test_image_by_image():
    assert image_by_image(Level("i0", 64), 8, 10 ** 6) == Share("i0", 64, 8)
    assert image_by_image(Level("i0", 63), 8, 10 ** 6) is None
    assert image_by_image(Level("i0", 64, summed=4), 8, 10 ** 6) == Share("i0", 64, 8, True)
