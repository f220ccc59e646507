"""What to_static takes: functions, methods, classes, Links, and what it refuses."""
import functools
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import to_static
from tests.doors.both_ways import same_as_eager, x_


def scaled(x, n=2):
    h = F.relu(x)
    if n > 1:
        h = h * n
    return h


class Affine(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(3, 2)
        self.l.W.array[...] = np.arange(6).reshape(2, 3)

    def forward(self, x):
        return F.relu(self.l(x))

    def twice(self, x):
        return self.l(x) * 2

    @classmethod
    def of_class(cls, x):
        return F.relu(x)


class Decorated(Affine):
    @to_static(strict=True)
    def forward(self, x):
        return F.relu(self.l(x))

    @staticmethod
    @to_static
    def of_static(x):
        return F.relu(x)

    of_class = classmethod(to_static(lambda cls, x: F.relu(x)))


class Scale:
    def __init__(self):
        self.factor = 3.0

    def __call__(self, x):
        return x * self.factor


def compiled_class():
    return to_static(type("Compiled", (Affine,), {"__module__": __name__}))()


FORMS = {
    "function": lambda: (to_static(scaled), scaled),
    "function, with options": lambda: (to_static(strict=True, cache_limit=3)(scaled), scaled),
    "lambda": lambda: (to_static(lambda x: F.relu(x) * 3), lambda x: F.relu(x) * 3),
    "partial": lambda: (to_static(functools.partial(scaled, n=3)), functools.partial(scaled, n=3)),
    "bound method": lambda: (to_static(Affine().twice), Affine().twice),
    "Chain": lambda: (to_static(Affine()), Affine()),
    "class": lambda: (compiled_class(), Affine()),
    "Sequential": lambda: (to_static(chainer.Sequential(Affine(), F.tanh)), chainer.Sequential(Affine(), F.tanh)),
    "decorated method": lambda: (Decorated(), Affine()),
    "static method": lambda: (Decorated.of_static, F.relu),
    "static method of an object": lambda: (Decorated().of_static, F.relu),
    "class method": lambda: (Decorated.of_class, F.relu),
    "callable object": lambda: (to_static(Scale()), Scale()),
    "link of Chainer": lambda: (to_static(Affine().l), Affine().l),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form):
    static, function = FORMS[form]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same_as_eager(static, function, x_())
        assert same_as_eager(static, function, x_())


def test_to_static_of_a_chain_gives_the_same_chain():
    model = Affine()
    assert to_static(model) is model
    assert isinstance(model, Affine) and type(model).__name__ == "Affine"
    model(x_())
    assert "_dy.call(F.relu)(_dy.call(self.l)(x))" in model.forward.code
    assert model.forward.cache_info().captures == 1
    assert to_static(model) is model, "a second time changes nothing"
    assert model.forward.cache_info().captures == 1


_NO_SOURCE = "C functions and builtins have no source to compile"
NOT_TAKEN = {
    "a number": (3, "int", ""),
    "an optimizer": (chainer.optimizers.Adam(), "Adam", "give it the function that calls update, or the updater: "
                                                        "to_static(StandardUpdater(iterator, optimizer))"),
    "two functions": ([scaled, scaled], "list", "give it each of the functions and Links, one by one"),
    "a name": ("scaled", "str", "give it the function or the Link itself"),
    "a builtin": (print, "builtin_function_or_method", _NO_SOURCE),
    "a class that is no Link": (dict, "type", "classes other than Links have no function to compile: decorate their methods"),
    "a property": (property(scaled), "property", "put `@to_static` below `@property`"),
    "a cache": (functools.lru_cache(scaled), "_lru_cache_wrapper", "put `@to_static` below the decorator that keeps results"),
}


@pytest.mark.parametrize("what", NOT_TAKEN)
def test_what_to_static_refuses(what):
    target, name, hint = NOT_TAKEN[what]
    with pytest.raises(TypeError) as caught:
        to_static(target)
    assert str(caught.value) == (
        f"D2S202: to_static takes a function, a method, a Chain class, a Link or an updater, not {name}" +
        (f"\n  hint: {hint}" if hint else ""))
