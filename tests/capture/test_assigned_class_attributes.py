"""Attributes of the user's classes that compiled functions read, assign and delete."""
import enum

import chainer.functions as F
import numpy as np
import pytest
from against_eager import check, programs, signs, variable

CALLS = [*signs(), lambda: (variable(3, seed=7),)]


def watched(decorator, f, *classes):
    """The compiled function, which also gives what the classes hold after each call."""
    made = decorator(f)

    def call(x):
        try:
            result = made(x)
        except ValueError as error:
            result = str(error)
        return result, [{name: value for name, value in vars(cls).items() if name.islower() and name[0] != "_"} for cls in classes]
    return call


def classes():
    class Base:
        count, rate, best, items, total = 0, 1.0, None, [], np.zeros(3, "f")

        @classmethod
        def Up(cls):
            cls.count = cls.count + 1
            return cls.count

        def Bump(self):
            type(self).count += 2
            return self.count

        @property
        def Twice(self):
            return self.count * 2

    class Derived(Base):
        def Bump(self):
            before = super().Bump()
            Base.rate *= 0.5
            return before + super().rate
    return Base, Derived


def read(compile):
    Base, Derived = classes()
    made = compile(lambda x: x * (Base.count + Derived().count + len(Base.items)))

    def call(x):
        Base.count += 1
        Base.items.append(1)
        return made(x)
    return call


def assigned(compile):
    Base, _ = classes()

    def f(x):
        Base.count += 1
        Base.items.append(Base.count)
        item = Base()
        item.count = item.count + 10
        return x * Base.count + item.count
    return watched(compile, f, Base)


def counts_instances(compile):
    class Counted:
        made = 0

        def __init__(self):
            type(self).made += 1
            self.number = Counted.made

    def f(x):
        return x * Counted().number + Counted().number
    return watched(compile, f, Counted)


def inherited(compile):
    Base, Derived = classes()

    def f(x):
        item = Derived()
        y = x * Base.Up() + Derived.Up()
        setattr(Derived, "best", getattr(Base, "count"))
        return y * item.Bump() + item.Twice + Derived.best
    return watched(compile, f, Base, Derived)


def under_decisions(compile):
    Base, Derived = classes()

    def f(x):
        if float(F.sum(x).array) > 0:
            Base.count += 1
            Derived.rate = Base.count * 0.5
        else:
            Base.count -= 1
        while float(F.sum(x).array) > 0.3:
            x = x * 0.5
            Base.count += 1
        return x * Derived.rate + Base.count
    return watched(compile, f, Base, Derived)


def arrays_and_variables(compile):
    Base, _ = classes()

    def f(x):
        Base.total = Base.total + x.array
        Base.best = F.sum(x)
        return x * Base.best * float(Base.total.sum())
    return watched(compile, f, Base)


def deleted(compile):
    Base, Derived = classes()

    def f(x):
        if hasattr(Base, "extra"):
            x = x * Derived.extra
            del Base.extra
        else:
            Base.extra = 3
        return x * Derived.rate
    return watched(compile, f, Base, Derived)


def raises(compile):
    Base, _ = classes()

    def f(x):
        Base.count += 1
        if Base.count == 3:
            raise ValueError(Base.count)
        try:
            Base.count += 10
            F.reshape(x, (99,))
        except Exception:
            Base.count -= 10
        return x * Base.count
    return watched(compile, f, Base)


def derived_class_gets_its_own(compile):
    Base, Derived = classes()

    class Last(Derived):
        def Ask(self):
            return super().count

    def f(x):
        Base.count += 1
        return x * Derived.count + Last().Ask()
    made, values = compile(f), [None, None, 100, None, 200]

    def call(x):
        value = values.pop(0) if values else None
        if value is not None:
            Derived.count = value
        return made(x), Base.count
    return call


def missing_is_set_later(compile):
    Base, _ = classes()
    made = compile(lambda x: x * (getattr(Base, "later", 2) + hasattr(Base, "later")))

    def call(x):
        result = made(x)
        Base.later = 5
        return result
    return call


# --- what Python must see in the class itself ------------------------------------------------------------------------------------


def methods(compile):
    Base, _ = classes()

    def f(x):
        Base.Twice = property(lambda self: 7)
        return x * Base().Twice
    return watched(compile, f)


def namespace_is_read(compile):
    Base, _ = classes()

    def f(x):
        Base.count += 1
        return x * vars(Base)["count"]
    return watched(compile, f, Base)


def exceptions(compile):
    class Failed(Exception):
        count = 0

    def f(x):
        Failed.count += 1
        return x * Failed.count
    return watched(compile, f, Failed)


def members(compile):
    class Kind(enum.Enum):
        A = 1

    def f(x):
        Kind.A.seen = getattr(Kind.A, "seen", 0) + 1
        return x * Kind.A.seen
    return watched(compile, f, Kind)


def with_metaclass(compile):
    class Meta(type):
        pass

    class Kind(metaclass=Meta):
        count = 0

    def f(x):
        Kind.count += 1
        if Kind.count == 3:
            raise ValueError(Kind.count)
        return x * Kind.count
    return watched(compile, f, Kind)


#: What stops a capture: the call runs in eager mode.
EAGER = {"methods", "namespace_is_read", "exceptions", "members", "with_metaclass"}


@pytest.mark.parametrize("make", programs(globals()), ids=lambda make: make.__name__)
def test_class_attributes(make):
    check(make, CALLS, compiled=None if make.__name__ in ("raises", "with_metaclass") else make.__name__ not in EAGER)
