"""Values of the standard library that never change: what is computed with them is computed once, what looks around is not."""
import datetime
import decimal
import fractions
import pathlib
import re
import time
import types

import chainer
import chainer.functions as F
import pytest
from against_eager import check, variable

from dy2static import to_static

CONFIG = types.MappingProxyType({"a": 2, "b": [1, 2], "act": F.relu})
PATH = pathlib.Path("/nowhere/models/run1.npz")
NUMBER, THIRD = decimal.Decimal("0.10"), fractions.Fraction(1, 3)
PATTERN = re.compile(r"(\w+?)(\d+)")
DAY, TWO_DAYS = datetime.date(2020, 1, 2), datetime.timedelta(days=2)


class Name(str):
    def shout(self):
        return self.upper() + "!"

    @property
    def stem(self):
        return self[:3]


class Count(int):
    pass


NAME, COUNT = Name("layer3"), Count(3)


def proxy(x):
    y = CONFIG["act"](x) * CONFIG["a"] + CONFIG.get("z", 1)
    return y, sorted(CONFIG), len(CONFIG), "b" in CONFIG, CONFIG["b"], dict(CONFIG.items())["a"], CONFIG


def path(x):
    return x * 2, PATH.stem, PATH.parent.name, str(PATH / "x"), PATH.with_suffix(".h5"), PATH, PATH.suffix


def looks_for_it(x):
    return x * 2 if PATH.exists() else x * 3, PATH.exists()


def own_text(x):
    return x * COUNT, NAME.shout(), NAME, f"{NAME}-{COUNT}", COUNT + 1, NAME.stem, NAME.startswith("l"), {NAME: COUNT}


def numbers(x):
    y = x * float(NUMBER)
    return y, NUMBER + 1, THIRD * 3, NUMBER.quantize(decimal.Decimal("0.1")), THIRD.numerator, THIRD.limit_denominator(2), THIRD


def patterns(x):
    m = PATTERN.match("layer3")
    k = re.match(r"(\w+?)(\d+)", "layer4")
    return x * int(m.group(2)) if k else x, m.groups(), k[2], m.start(), PATTERN.sub("x", "layer3"), PATTERN.pattern


def dates(x):
    return x * 2, DAY.isoformat(), DAY + TWO_DAYS, DAY.replace(year=2021), TWO_DAYS.total_seconds(), DAY


PROGRAMS = [proxy, path, looks_for_it, own_text, numbers, patterns, dates]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_values(function):
    check(lambda compile: (compile(function), None), [lambda s=s: (variable(2, 3, seed=s),) for s in range(2)], compiled=True)


def test_attributes_of_texts_are_no_values():
    def make(compile):
        name = Name("a")

        def label(x):
            name.seen = x.array.sum()
            return x * 2, name.seen
        return compile(label), [name.__dict__]
    check(make, [lambda: (variable(2, 3),)], compiled=False)


def test_values_that_are_replaced():
    """Another one is another program; a mapping is looked at in every call."""
    class Model(chainer.Chain):
        factor = decimal.Decimal(2)

        def __init__(self):
            super().__init__()
            self.path, self.contents = pathlib.Path("a"), {"k": 2}
            self.config = types.MappingProxyType(self.contents)

        def forward(self, x):
            return x * self.config["k"] * float(self.factor), self.path.name

    def changed(roots, name, value):
        setattr(roots, name, value)
        return variable(2, 3),

    def more(roots):
        roots.contents["k"] += 1
        return variable(2, 3),

    def make(compile):
        model = Model()
        return compile(model.forward), model
    check(make, [lambda roots: (variable(2, 3),), lambda roots: changed(roots, "path", pathlib.Path("b")),
                 lambda roots: changed(roots, "factor", decimal.Decimal(3)), more, more], compiled=True)


def test_the_clock_is_read_at_every_call():
    function = to_static(lambda x: (x * 2, datetime.datetime.now()))
    x = variable(2, 3)
    first = [function(x)[1] for _ in range(2)][-1]
    time.sleep(0.001)
    assert function(x)[1] > first and function.stats()["captures"] == 1
