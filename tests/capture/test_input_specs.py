"""What an `InputSpec` says, and which calls it lets through."""

import chainer
import chainer.functions as F
import numpy as np
import pytest
from chainer import testing
from sized_programs import FREE, Net, compare, floats, labels

from dy2static import InputSpec, to_static
from dy2static.errors import SignatureError


def test_input_spec_frees_from_the_first_call_on():
    function, make_args = FREE["loss"]
    specs = [None, InputSpec([None, 6], "float32", "x"), InputSpec([-1], "int32", "t")]
    info = compare(to_static(function, input_spec=specs, dynamic=False), function, make_args)
    assert info.captures == 1 and info.fallbacks == 0


def test_input_spec_of_a_method():
    class Model(Net):
        @to_static(input_spec=[[InputSpec([None, 6]), {"t": InputSpec([None], "int32")}]], strict=True)
        def forward(self, pair):
            x, rest = pair
            return F.softmax_cross_entropy(self.l2(x), rest["t"])

    model = Model()
    for n in (2, 5, 3, 7):
        x, t = floats(n, 6), labels(n)
        expected = F.softmax_cross_entropy(model.l2(x), t).array
        testing.assert_allclose(model.forward([x, {"t": t}]).array, expected, rtol=1e-5)
        testing.assert_allclose(model.forward(pair=[x, {"t": t}]).array, expected, rtol=1e-5)
    assert Model.forward.cache_info().captures == 2         # by place and by name


def test_axes_that_happen_to_be_equal():
    static = to_static(lambda x: F.sum(x * 2), input_spec=[InputSpec([None, None])], strict=True)
    for shape in ((3, 3), (4, 4), (4, 5), (6, 2)):
        static(floats(*shape))
    assert static.cache_info().captures == 2


@pytest.mark.parametrize("args, message", [
    ((floats(2, 5),), "x is float32 (2, 5), where input_spec has float32 (None, 6)"),
    ((floats(2, 6).astype("d"),), "x is float64 (2, 6)"), ((floats(6),), "x is float32 (6,)"), ((3,), "x is int,")])
def test_arguments_that_are_not_as_specified(args, message):
    def function(x):
        return F.sum(x)

    static = to_static(function, input_spec=[InputSpec([None, 6])])
    static(floats(2, 6))
    with pytest.raises(SignatureError) as caught:
        static(*args)
    assert message in str(caught.value)


def test_input_specs():
    spec = InputSpec([None, 784], "float32", "x")
    assert repr(spec) == "InputSpec(shape=(None, 784), dtype=float32, name=x, stop_gradient=False)"
    assert spec == InputSpec((-1, 784), np.float32, "x") and len({spec, InputSpec([None, 784], "float32", "x")}) == 1
    assert InputSpec([3]).batch(None).shape == (None, 3) and InputSpec([None, 3]).unbatch().shape == (3,)
    assert InputSpec(["n", 3, None]).shape == (None, 3, None) and "('n', 3, None)" in repr(InputSpec(["n", 3, None]))
    assert InputSpec(["n", 3]) != InputSpec(["m", 3]) and InputSpec(["n", 3]).batch(None) == InputSpec([None, "n", 3])
    assert InputSpec.from_numpy(floats(2, 3)).shape == (2, 3)
    assert InputSpec.from_tensor(chainer.Parameter(floats(2), name="w")) == InputSpec([2], "float32", "w")
    for shape in (3, [2.5], ["2n"], [-2]):
        with pytest.raises(SignatureError):
            InputSpec(shape)
    with pytest.raises(SignatureError):
        InputSpec([]).unbatch()
