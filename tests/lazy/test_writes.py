"""Writes to lazy arrays: what their views, other names and earlier expressions see of them."""
import numpy as np
import pytest
from ownership_machine import run

from dy2static import lazy
from dy2static.lazy.structures import Structure


def test_random_sessions_see_what_numpy_shows(monkeypatch):
    monkeypatch.setattr(Structure, "run", lambda self, leaves, backend: self.function(*leaves))     # whose memory it is, not how
    run(examples=12, steps=25)


def place_of(array):
    return array._node.result.__array_interface__["data"][0]


def test_a_store_needs_no_copy_while_nobody_else_looks():
    y = lazy.array(np.zeros(4))
    place = place_of(y)
    y[0], y[1:3] = 1, 2
    assert place_of(y) == place and y.tolist() == [1, 2, 2, 0]
    seen, later = np.asarray(y), y + 1
    y[0] = 9
    assert place_of(y) != place
    assert (seen.tolist(), later.tolist(), y.tolist()) == ([1, 2, 2, 0], [2, 3, 3, 1], [9, 2, 2, 0])


def test_an_exchange_of_elements_copies_nothing():
    y = lazy.array(np.arange(4.0))
    place, (first, last) = place_of(y), (y[0], y[3])
    y[0], y[3] = last, first
    kept = y[1]
    y[1] = 7
    assert place_of(y) == place and y.tolist() == [3, 7, 2, 0] and (float(first), float(kept)) == (0, 1)


def test_writes_to_what_has_not_been_computed_stay_lazy():
    x = np.arange(6.0).reshape(2, 3)
    y = lazy.array(x) * 2
    part, turned, scalar, name = y[1], y.T, y[0, 1], y
    y += 1
    part[:2] = -1
    np.subtract(y, 1, out=y)
    turned *= 10
    assert not y.is_evaluated and name is y
    x = x * 2 + 1
    x[1, :2] = -1
    x = (x - 1) * 10
    assert (y.tolist(), part.tolist(), turned.tolist(), float(scalar)) == (x.tolist(), x[1].tolist(), x.T.tolist(), 2)


def test_a_scalar_is_another_object_after_it():
    s = total = lazy.array(np.arange(4.0)).sum()
    s += 1
    assert (float(s), float(total)) == (7, 6)


def test_casting_is_that_of_numpy():
    y = lazy.array(np.arange(3)) * 2
    y += 1.5
    with pytest.raises(TypeError, match="Cannot cast"):
        y.evaluate()


def test_read_only_views_are():
    y = lazy.array(np.arange(4.0).reshape(2, 2)) + 0
    for view in (np.broadcast_to(y, (2, 2, 2)), np.diagonal(y)):
        with pytest.raises(ValueError, match="output array is read-only"):
            view += 1
        with pytest.raises(ValueError, match="assignment destination is read-only"):
            view[0] = 1


def test_functions_that_write():
    y = lazy.array(np.arange(4.0)) + 0
    part = y[1:]
    np.copyto(y, 7)
    y.sort()
    np.put(y, [0], 3)
    np.add.at(y, [1, 1], 1)
    assert (y.tolist(), part.tolist()) == ([3, 9, 7, 7], [9, 7, 7])


def test_several_outputs():
    y, z = lazy.array(np.array([1.5, -2.5])), lazy.array(np.zeros(2))
    assert np.modf(y, out=(z, y))[1] is y
    assert (y.tolist(), z.tolist()) == ([1, -2], [0.5, -0.5])


def test_a_foreign_array_as_out_is_written_at_once():
    out = np.zeros(2)
    assert np.add(lazy.array(np.ones(2)), 1, out=out) is out and out.tolist() == [2, 2]


def test_a_loop_of_stores_is_compiled_once():
    made = lazy.array(np.zeros(300)) + 0
    for place in range(300):
        made[place] = place
    assert made.sum() == 300 * 299 / 2


@pytest.mark.parametrize("change", [
    lambda y, part: np.add(y, 1, out=y),
    lambda y, part: part.__iadd__(1),
    lambda y, part: part.__setitem__(slice(None), part + 1),
    lambda y, part: np.add(part, 1, out=part),
], ids=["out", "view", "store", "out_view"])
def test_an_endless_loop_of_writes_does_not_grow(change):
    y = lazy.array(np.zeros(4)) + 0
    part = y[1:]
    for _ in range(2000):
        change(y, part)
        assert y._node.depth <= 130
    np.testing.assert_array_equal(part, 2000.0)


def test_a_write_to_what_was_added_to_itself_takes_no_longer_for_each_time():
    x = lazy.array(np.zeros(()))
    for _ in range(100):                                # 2 ** 100 ways down
        x = x + x
    x += 1
    assert float(x) == 1


@pytest.mark.parametrize("change", [
    lambda y: y.flat.__setitem__(3, 42), lambda y: y.flat.__setitem__([0, 5], -1), lambda y: setattr(y, "flat", np.arange(12) * 2),
    lambda y: y.view().__setitem__((0, 1), 6), lambda y: y.view("i8").__setitem__(0, 0), lambda y: setattr(y, "real", 5),
    lambda y: y.__setitem__((0, 0), "7"), lambda y: y.__setitem__(1, None),
], ids=["flat", "flat_list", "assigned_flat", "view", "view_of_bits", "real", "text", "none"])
@pytest.mark.parametrize("is_computed", [True, False])
def test_ways_to_write(change, is_computed):
    x = np.arange(12.0).reshape(3, 4) + 1
    y = lazy.array(np.arange(12.0).reshape(3, 4)) + 1
    part, seen = y[0], y.view()
    assert not is_computed or y.evaluate() is not None
    change(x), change(y)
    for other in (y, seen, part):
        np.testing.assert_array_equal(other, x[0] if other is part else x)


def test_the_parts_of_complex_numbers_and_fields_of_records_are_views():
    z, wanted = lazy.array(np.array([1 + 2j, 3 - 1j])), np.array([1 + 2j, 3 - 1j])
    records, eager = lazy.array(np.zeros(2, [("u", "f8")])), np.zeros(2, [("u", "f8")])
    for x, fields in ((z, records), (wanted, eager)):
        x.real, x.imag[0] = 5, 9
        x.real[1] += 1
        fields["u"], fields["u"][0] = 3, 1
    assert z.tolist() == wanted.tolist() and records["u"].tolist() == eager["u"].tolist() == [1, 3]
    with pytest.raises(TypeError, match="imaginary part"):
        lazy.array(np.ones(2)).imag = 1


def test_a_scalar_is_no_place_to_write_to():
    x = lazy.array(np.ones(3))
    with pytest.raises(TypeError, match="must be of ArrayType"):
        np.add(x, x, out=x.sum())


def test_a_thousand_views_of_views_see_one_array():
    x, y = np.arange(12.0).reshape(3, 4), lazy.array(np.arange(12.0).reshape(3, 4))
    a, b = x, y
    for number in range(1000):
        a, b = a.T[::-1], b.T[::-1]
        a[0, 0] = b[0, 0] = number
    b += 1
    a += 1
    assert b._view.depth < 20 and (b.tolist(), y.tolist()) == (a.tolist(), x.tolist())
    y[...] = 5
    assert (b == 5).all()


def test_views_of_views_keep_their_place_in_memory_that_is_laid_out_otherwise():
    y = lazy.array(np.asfortranarray(np.arange(12).reshape(3, 4)).astype(object)[::-1, ::2], copy=False)
    part = y[1:]
    for _ in range(12):
        part = part[:, ::-1]
    part[0, 0] = "new"
    assert y.tolist() == [[8, 10], ["new", 6], [0, 2]]
    y[:] = np.arange(6).reshape(3, 2)
    assert part.tolist() == [[2, 3], [4, 5]]


def test_iteration_gives_elements_as_they_are_when_their_turn_comes():
    sieve = lazy.array(np.arange(30) > 1)
    for number, is_prime in enumerate(sieve):
        if is_prime:
            sieve[2 * number::number] = False
    assert np.flatnonzero(sieve).tolist() == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]


@pytest.mark.parametrize("see", [
    lambda x: np.real(x), lambda x: np.einsum("ii->i", x), lambda x: np.einsum("ij->ji", x), lambda x: x.astype(float, copy=False),
    lambda x: np.trim_zeros(x[0]), lambda x: np.nan_to_num(x, copy=False), lambda x: np.nan_to_num(x, False)])
def test_results_that_may_see_their_operand_do(see):
    x = np.array([[0, 1.0, np.nan], [3, 4, 5], [6, 7, 8]])
    y = lazy.array(x.copy())
    a, b = see(x), see(y)
    a[...] = b[...] = 9
    np.testing.assert_array_equal(y, x)
    x[...] = y[...] = 2
    np.testing.assert_array_equal(b, a)


def test_a_diagonal_by_diag_is_read_only():
    y = lazy.array(np.eye(2))
    diagonal, made = np.diag(y), np.diag(y[0])
    with pytest.raises(ValueError, match="read-only"):
        diagonal[0] = 5
    made[0, 0] = 5
    y[0, 0] = 3
    assert (diagonal.tolist(), made.tolist()) == ([3, 1], [[5, 0], [0, 0]])


@pytest.mark.parametrize("change", [lambda y: y.setflags(write=False), lambda y: y.resize(5)])
def test_changes_that_are_no_writes_are_refused(change):
    with pytest.raises(AttributeError, match="of a lazy array: only writes change it"):
        change(lazy.array(np.arange(3)))


@pytest.mark.parametrize("see", [
    lambda x: x[np.argmax(x) % 2], lambda x: x[np.argmax(x[0]) % 2, 1:], lambda x: x[..., x.astype(int).max() % 2], lambda x: x.conj(),
    lambda x: x.astype(int).round(1), lambda x: x.round(1), lambda x: x[np.argmax(x, axis=0) % 2], lambda x: x[x > 2]])
def test_places_that_are_lazy_numbers_are_seen_as_numbers(see):
    x = np.arange(6.0).reshape(2, 3)
    y = lazy.array(x.copy())
    a, b = see(x), see(y)
    a += 1
    b += 1
    assert y.tolist() == x.tolist() and b.tolist() == a.tolist()
    x[...] = y[...] = 4
    assert b.tolist() == a.tolist()


def test_the_imaginary_part_of_real_numbers_is_read_only():
    part = lazy.array(np.arange(3.0)).imag
    with pytest.raises(ValueError, match="read-only"):
        part += 1


@pytest.mark.parametrize("see", [lambda x: x.view(), lambda x: np.array_split(x, 2)[0], lambda x: x.reshape(-1), lambda x: x.T.ravel()])
@pytest.mark.parametrize("is_computed", [True, False])
def test_views_of_what_a_program_laid_out_otherwise_are_views(see, is_computed):
    x = np.arange(12.0).reshape(3, 4)
    y = lazy.array(x.copy())
    seen = []
    for z in (x, y):
        turned = np.moveaxis(z, 0, -1)
        other = turned[::-1]
        turned += 1
        other *= 2
        if is_computed and z is y:
            turned.evaluate()
        part = see(turned)
        part[:2] = 3
        for _ in range(9):
            part = part[::-1]
        part[0] = 7
        seen.append(part)
    assert y.tolist() == x.tolist() and seen[1].tolist() == seen[0].tolist()
