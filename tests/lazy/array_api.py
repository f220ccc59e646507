"""`dy2static.lazy.numpy` beside the array API standard 2023.12: ``python -m tests.lazy.array_api [--examples 20] [--area fft]``

Each call of `array_api_cases` is made on arrays that Hypothesis draws (every dtype that the standard has for the function; no axes,
empty axes, special values), by the namespace of lazy arrays and by a reference: array-api-strict, if it can be imported, else NumPy 2,
else what NumPy 1 has under these names.  Values, dtypes and shapes must agree.  Signatures are compared with those of
array-api-strict.  The totals are printed by area, and every failure.
"""
import argparse
import collections
import inspect
import pathlib
import sys
import traceback
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "lazy")]

import hypothesis  # noqa: E402
import hypothesis.strategies as st  # noqa: E402
import numpy as np  # noqa: E402
from array_api_cases import CASES  # noqa: E402

from dy2static import lazy  # noqa: E402

try:
    import array_api_strict as reference
    reference.set_array_api_strict_flags(api_version="2023.12")
    IS_STRICT = True
except ImportError:
    reference, IS_STRICT = np, False

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.25, float("inf"), float("-inf"), float("nan"), 1e-30, 1e30]
SHAPES = {"matrix": [(2, 3), (3, 2), (2, 2, 3)], "square": [(2, 2), (3, 3), (2, 3, 3)], "positive": [(3, 3), (2, 2, 2)],
          "row": [(3,), (6,)], "vectors": [(3,), (2, 3)]}


class NoReferenceError(Exception):
    """The reference does not have a function, or does not take the arrays."""


def drawn(draw, dtypes, arrays):
    """The arrays of an example, of NumPy."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    if isinstance(arrays, int):
        shapes = [draw(st.sampled_from([(), (1,), (4,), (0,), (2, 3), (2, 0, 3)]))] * arrays
    else:
        shapes = [draw(st.sampled_from(SHAPES[arrays]))] * (2 if arrays == "vectors" else 1)
    found = [values(draw, dtype, shape, is_special=isinstance(arrays, int)) for shape in shapes]
    if arrays == "positive":
        found = [x @ np.swapaxes(x, -1, -2) + np.eye(x.shape[-1], dtype=dtype) * 3 for x in found]
    return found


def values(draw, dtype, shape, is_special):
    """An array; with special values where ``is_special``, else small numbers."""
    rng = np.random.RandomState(draw(st.integers(0, 10000)))
    if dtype.kind in "?bui":
        low = 0 if dtype.kind in "?bu" else -5
        return rng.randint(low, 2 if dtype.kind == "b" and dtype.char == "?" else 9, shape).astype(dtype)
    pick = (lambda: rng.choice(SPECIAL, shape)) if is_special and rng.rand() < 0.5 else (lambda: rng.uniform(-3, 3, shape))
    x = np.asarray(pick())
    if dtype.kind == "c":
        x = rng.uniform(-3, 3, shape) + 1j * rng.uniform(-3, 3, shape)
    return np.asarray(x).astype(dtype)


def flat(found):
    """Results as a list of (is array, NumPy array)."""
    if isinstance(found, (list, tuple)):
        return [each for part in found for each in flat(part)]
    is_array = isinstance(found, (lazy.LazyArray, np.ndarray, np.generic)) or hasattr(found, "__array_namespace__")
    return [(is_array, np.asarray(found) if found is not None else None)]


def expected_of(call, arrays):
    """What the reference gives; raises `NoReferenceError` where it gives nothing."""
    try:
        return flat(call(reference, *[reference.asarray(x) for x in arrays]))
    except Exception as error:
        raise NoReferenceError from error


def compare(call, arrays):
    """Raise AssertionError where the namespace of lazy arrays gives something else than the reference.

    What cannot be compiled (complex numbers) runs as NumPy; the warning that says so is not looked at.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = expected_of(call, arrays)
        found = flat(call(lazy.numpy, *[lazy.array(x) for x in arrays]))
    assert len(found) == len(expected)
    for (is_array, got), (_, wanted) in zip(found, expected):
        if wanted is None:
            assert got is None
            continue
        assert got.shape == wanted.shape, (got.shape, wanted.shape)
        assert not is_array or got.dtype == wanted.dtype, (got.dtype, wanted.dtype)
        if wanted.dtype.kind in "fc":
            accuracy = 2e-4 if wanted.dtype.char in "fF" else 1e-9
            np.testing.assert_allclose(got, wanted, rtol=accuracy, atol=accuracy)
            if wanted.dtype.kind == "f":
                zero = wanted == 0
                np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(wanted[zero]))
        else:
            np.testing.assert_array_equal(got, wanted)


def run(case, examples):
    """Check a case on so many examples: the error of one that fails, "no reference", or None."""
    area, name, dtypes, arrays, call = case
    found = []

    @hypothesis.settings(max_examples=examples, derandomize=True, database=None, deadline=None,
                         suppress_health_check=list(hypothesis.HealthCheck), phases=[hypothesis.Phase.generate])
    @hypothesis.given(st.data())
    def check(data):
        try:
            compare(call, drawn(data.draw, dtypes, arrays))
            found.append(None)
        except NoReferenceError:
            found.append("no reference")
    try:
        check()
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        lines = [line for line in str(error).splitlines() if line.strip()]
        return f"{type(error).__name__}: {' | '.join(lines[:4])[:200]} ({pathlib.Path(last.filename).name}:{last.lineno})"
    return None if None in found else "no reference"


def signatures():
    """(name, problem or None) for each function whose parameters array-api-strict tells."""
    for place, ours in (("", lazy.numpy), ("linalg.", lazy.numpy.linalg), ("fft.", lazy.numpy.fft)):
        theirs = getattr(reference, place[:-1]) if place else reference
        for name in sorted(theirs.__all__):
            function = getattr(theirs, name)
            if not inspect.isfunction(function) or name.startswith(("set_", "get_", "reset_")) or name in AFTER_2023:
                continue
            if not hasattr(ours, name):
                yield place + name, "missing"
                continue
            wanted, got = (parameters(each) for each in (function, getattr(ours, name)))
            yield place + name, None if set(wanted) <= set(got) else f"has {got}, not {wanted}"


#: Functions of later versions of the standard that we need not have.
AFTER_2023 = {"count_nonzero", "cumulative_prod", "diff", "nextafter", "reciprocal", "take_along_axis", "isin", "broadcast_shapes",
              "eig", "eigvals"}


def parameters(function):
    """(name, kind) of each parameter; of those that are positional only, the place."""
    return [(str(place) if each.kind is each.POSITIONAL_ONLY else each.name, each.kind.name)
            for place, each in enumerate(inspect.signature(function).parameters.values())]


def promotions():
    """(pair, problem or None) for each pair of dtypes that the standard promotes, of arrays with and without axes."""
    kinds = ["bhiqBHI", "BHIQ", "fdFD"]
    for kind in kinds:
        for a in kind:
            for b in kind:
                for shapes in (((2,), (2,)), ((2,), ()), ((), ())):
                    x, y = (lazy.array(np.ones(shape, dtype)) for shape, dtype in zip(shapes, (a, b)))
                    got, wanted = lazy.numpy.add(x, y).dtype, np.promote_types(a, b)
                    yield f"{np.dtype(a)}{shapes[0]} + {np.dtype(b)}{shapes[1]}", None if got == wanted else f"{got}, not {wanted}"


def main(arguments=None):
    """Print the totals by area and each failure; gives how many there are."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--examples", type=int, default=20)
    parser.add_argument("--area", default="")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")                     # complex numbers are computed by NumPy
    totals, failed = collections.defaultdict(collections.Counter), []

    def count(area, name, problem):
        totals[area]["no reference" if problem == "no reference" else "failed" if problem else "passed"] += 1
        if problem:
            failed.append(f"{area}: {name}: {problem}")
    for case in CASES:
        if case[0].startswith(options.area):
            count(case[0], case[1], run(case, options.examples))
    if not options.area:
        for name, problem in promotions():
            count("promotion", name, problem)
        for name, problem in signatures() if IS_STRICT else ():
            count("signatures", name, problem)
    print("\n".join(failed))
    for area, counted in totals.items():
        print(f"{area:<20}" + ", ".join(f"{number} {what}" for what, number in sorted(counted.items())))
    wrong = sum(counted["failed"] for counted in totals.values())
    print(f"NumPy {np.__version__}, reference {reference.__name__}: {wrong} failed")
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main()))
