"""Ops as plain C: samples of every op, in one library with checks of undefined behaviour, and what has no form in C."""
import ctypes.util
import shutil

import numpy as np
import pytest

from dy2static.errors import ExportError
from dy2static.ir.types import type_of
from tests.export.c_library import GCC, CLibrary, close, closed
from tests.ops.test_ops import CASES

pytestmark = [pytest.mark.any_python, pytest.mark.skipif(GCC is None, reason="there is no C compiler")]

#: Ops without a form in C, at all or for some samples.
REFUSED = {"arange", "py_add", "py_sub", "py_mul", "py_truediv", "py_floordiv",
           "py_mod", "py_pow", "py_neg", "py_abs", "py_compare", "py_constant", "item", "size", "new_stack", "nonzero_factor", "inv",
           "det", "cholesky", "fft", "region_average", "region_align_average", "sequence_order", "sparse_matmul", "sparse_sample",
           "special", "to_blocks", "from_blocks", "conv_blocks", "conv_transpose_blocks", "max_pool_blocks", "average_pool_blocks", "join_blocks", "random_typed",
           "philox", "to_device"}


def first_and_last():
    """The first and the last sample of each op."""
    by_op = {}
    for case in CASES:
        by_op.setdefault(case.op.name, []).append(case)
    return [case for found in by_op.values() for case in dict.fromkeys((found[0], found[-1]))]


def build_samples(cases, folder, flags):
    """The samples that C takes, with their models, and the names of the ops of the others; arrays without elements are left out."""
    library, taken, refused = CLibrary(), [], set()
    for case in cases:
        try:
            library.add(closed(case.graph(map(type_of, case.operands()))))
            taken.append(case)
        except ExportError:
            if all(np.size(x) for x in case.operands()):
                refused.add(case.op.name)
    return library, list(zip(taken, library.build(folder, flags))), refused


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    undefined = ["-fsanitize=undefined", "-fno-sanitize-recover=undefined"] if ctypes.util.find_library("ubsan") else []
    return build_samples(first_and_last(), tmp_path_factory.mktemp("c"), ("-O1", "-fwrapv", *undefined))


def test_samples_give_what_the_interpreter_gives(samples):
    compare(samples[1])


@pytest.mark.skipif(shutil.which("tcc") is None, reason="there is no tcc")
def test_a_compiler_without_extensions(samples, tmp_path):
    """The headers need nothing that gcc and clang have besides C11."""
    compare(zip([case for case, _ in samples[1]], samples[0].build(tmp_path, (), "tcc")))


def compare(pairs):
    """Run models beside the interpreter."""
    for case, model in pairs:
        expected = case.run()
        try:
            close(model(*case.operands(), random=model.random(0) if model.entry.draws else None), expected)
        except AssertionError as error:
            raise AssertionError(f"{case}: {error}") from error


def test_what_is_refused_is_known(samples):
    assert len(samples[1]) > 280
    assert samples[2] <= REFUSED, samples[2] - REFUSED


@pytest.mark.skipif(shutil.which("clang") is None, reason="there is no clang")
def test_clang_has_no_warnings_either(samples, tmp_path):
    samples[0].check(tmp_path, "clang")
