"""Numbers that nothing reads: what fails where they are computed fails in native code, too."""
import math
import operator

import chainer.functions as F
import numpy as np
import pytest
from against_eager import variable

from dy2static import to_static

FAILING = {
    "mod": lambda n, i: i % (i - 6), "floordiv": lambda n, i: i // (i - 6), "truediv": lambda n, i: i / (i - 6),
    "float mod": lambda n, i: n % (n - 6), "float div": lambda n, i: n / (n - 6), "int of infinity": lambda n, i: int(n * math.inf),
    "int of NaN": lambda n, i: int(n * math.nan), "pow": lambda n, i: (i - 6) ** -1, "shift": lambda n, i: operator.lshift(1, -i),
    "overflow": lambda n, i: (n * 1e200) ** 2}


def run(function, a):
    try:
        function(variable(3), a)
    except Exception as error:
        return type(error), str(error)
    return None


@pytest.mark.parametrize("failing", FAILING.values(), ids=FAILING)
def test_errors_of_numbers_that_nothing_reads(failing):
    def f(x, a):
        n = float(a.sum())
        failing(n, int(n))
        return F.tanh(x) * 2

    compiled = to_static(f, strict=True, backend="c")
    for a in (np.array([1, 2, 3], "f"), np.array([1, 2, 2], "f"), np.array([1, 2, 3], "f")):
        assert run(compiled, a) == run(f, a)


def test_under_a_decision():
    def f(x, a):
        n = int(a.sum())
        if n > 0:
            n % (n - 6)
            x = x * 2
        return F.tanh(x)

    compiled = to_static(f, strict=True, backend="c")
    for a in (np.array([1, 2, 3], "f"), np.array([-1, -2, -3], "f"), np.array([1, 2, 3], "f")):
        assert run(compiled, a) == run(f, a)
