"""`save` of functions that run in parts."""
import warnings

import chainer.functions as F
import pytest
from against_eager import variable
from breaks import refuse

from dy2static import save, to_static
from dy2static.errors import SaveError


def inner(h):
    h = F.tanh(h) * 2
    refuse(h)
    return F.sin(h) * 2


@to_static
def f(x):
    h = F.tanh(x) * 2
    h = refuse(h) * 2
    h = F.sin(h) * 2
    refuse(h)
    return inner(h)


def test_all_lines_that_keep_a_model_from_being_saved_are_named(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f(variable(3))
    with pytest.raises(SaveError) as caught:
        save(f, tmp_path / "f", [variable(3)])
    first = f.python_function.__code__.co_firstlineno
    assert caught.value.at.line == first + 3
    for line in (first + 5, inner.__code__.co_firstlineno + 2):
        assert f"line {line}: this is refused (" in str(caught.value)
