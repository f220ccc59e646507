"""Convolutions of exported C and both derivatives: patches in parts, images that are their own patches, memory."""
import ctypes
import re

import numpy as np
import pytest

from dy2static.backends.c.kernels_convolution import patch_elements
from dy2static.ir.building import Builder, building
from dy2static.ir.interpret import interpret
from dy2static.ir.op import OPS
from dy2static.ir.types import type_of
from dy2static.native.convolutions import Windows
from tests.export.c_library import GCC, CLibrary, close, closed

pytestmark = [pytest.mark.any_python, pytest.mark.skipif(GCC is None, reason="there is no C compiler")]

#: batch, groups, channels of a group of x, filters of a group, image, kernel, stride, pad, dilate.
WINDOWS = {
    "uneven parts": (1, 1, 16, 3, (23, 22), (3, 5), (1, 1), (0, 1), (1, 1)),
    "parts that cross planes": (1, 1, 32, 2, (6, 8, 21), (2, 2, 2), (1, 1, 1), (0, 0, 0), (1, 1, 1)),
    "long rows": (2, 1, 32, 2, (3, 300), (3, 3), (1, 1), (1, 1), (1, 1)),
    "many taps": (1, 1, 64, 2, (26, 12), (3, 3), (1, 1), (0, 0), (1, 1)),
    "its own patches": (2, 2, 3, 4, (5, 7), (1, 1), (1, 1), (0, 0), (1, 1)),
    "its own patches, one axis": (2, 1, 6, 5, (9,), (1,), (1,), (0,), (1,)),
    "single elements with padding": (2, 1, 3, 4, (5, 7), (1, 1), (1, 1), (1, 0), (1, 1)),
    "single elements, some": (2, 1, 3, 4, (5, 7), (1, 1), (2, 2), (0, 0), (1, 1)),
    "steps and padding": (2, 1, 3, 4, (9, 20), (3, 4), (2, 3), (2, 3), (1, 1)),
    "taps that meet nothing": (1, 1, 2, 3, (2, 3), (3, 3), (1, 1), (4, 4), (3, 3)),
    "few channels": (2, 3, 1, 2, (6, 6), (3, 3), (1, 1), (1, 1), (1, 1)),
    "no axes": (2, 1, 5, 3, (), (), (), (), ()),
}
#: Those of them that have no patches.
WITHOUT_PATCHES = {"its own patches", "its own patches, one axis", "few channels", "no axes"}


def windows_of(name):
    batch, groups, in_, out, image, kernel, stride, pad, dilate = WINDOWS[name]
    spots = tuple((i + 2 * p - d * (k - 1) - 1) // s + 1 for i, k, s, p, d in zip(image, kernel, stride, pad, dilate))
    return Windows(batch, groups, in_, out, image, kernel, spots, stride, pad, dilate)


def samples():
    """Of each of the windows: the graphs of a convolution, its transpose and its filters' gradient, with their operands."""
    rng = np.random.RandomState(0)
    found = []
    for name in WINDOWS:
        w = windows_of(name)
        x, y = (rng.uniform(-1, 1, (w.batch, w.groups * n, *sizes)).astype("f") for n, sizes in ((w.in_, w.image), (w.out, w.spots)))
        W = rng.uniform(-1, 1, (w.groups * w.out, w.in_, *w.kernel)).astype("f")
        for op, operands, size in (("conv", (x, W), w.spots), ("conv_transpose", (y, W), w.image), ("conv_grad_weight", (x, y), w.kernel)):
            builder = Builder(op)
            inputs = [builder.input(type_of(operand), letter) for operand, letter in zip(operands, "ab")]
            attrs = dict(size=size, stride=w.stride, pad=w.pad, dilate=w.dilate, groups=w.groups)
            with building(builder):
                found.append((f"{op}, {name}", builder.build(builder.add(OPS[op], tuple(inputs), attrs)), operands))
    return found


class Convolutions(CLibrary):
    """All samples, and a function that tells how many rows of windows are patches at a time."""

    def __init__(self):
        super().__init__()
        self.samples = samples()
        for _, graph, _ in self.samples:
            self.add(closed(graph))

    @property
    def text(self):
        return super().text + "\nint64_t patch_lines(const dy_windows *w);\n" \
                              "int64_t patch_lines(const dy_windows *w) { return dy_patch_lines(w); }\n"


@pytest.mark.parametrize("flags", [("-O1", "-DDY_PLAIN"), ("-O2", "-march=native")], ids=["plain", "vectors"])
def test_they_give_what_the_interpreter_gives(flags, tmp_path):
    library = Convolutions()
    for (name, graph, operands), model in zip(library.samples, library.build(tmp_path, flags)):
        expected = interpret(graph, *operands)
        model(*operands)
        model.arena[:] = 255                                # NaN, where memory is read that has not been written
        try:
            close(model(*operands), expected, 1e-4)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
    lines = patch_lines(model.library)
    for name in WINDOWS:                                    # the memory that the text asks for is what the function fills
        w = windows_of(name)
        row = w.in_ * int(np.prod(w.kernel)) * (w.spots[-1] if w.spots else 1)
        assert patch_elements(w) == (0 if name in WITHOUT_PATCHES else lines(w) * row), name
    uneven, crossing = windows_of("uneven parts"), windows_of("parts that cross planes")
    assert uneven.spots[0] % lines(uneven) and crossing.spots[1] % lines(crossing)


def patch_lines(library):
    """The function of C for `Windows`."""
    library.patch_lines.restype = ctypes.c_int64

    def lines(w):
        numbers = [int(n) for n in re.findall(r"-?\d+", w.text())]
        return library.patch_lines((ctypes.c_int64 * len(numbers))(*numbers))
    return lines
