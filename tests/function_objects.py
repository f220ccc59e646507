"""What tests of functions share."""
import functools

LOG = []


def fresh_log():
    """The list that is written to, empty."""
    LOG.clear()
    return LOG


class Box:
    """An object with a ``__dict__`` and nothing else."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Base:
    """Methods of all kinds."""

    rate = 2.0

    def __init__(self, n):
        self.n, self._scale, self.log = n, 1.0, []

    def method(self, x):
        return x * self.n

    @classmethod
    def of_class(cls, x):
        return x * cls.rate

    @staticmethod
    def of_none(x, k=3.0):
        return x * k

    @property
    def scale(self):
        self.log.append("get")
        return self._scale

    @scale.setter
    def scale(self, value):
        self.log.append(("set", value))
        self._scale = value * 2

    @scale.deleter
    def scale(self):
        self.log.append("delete")
        self._scale = 0.0

    @functools.cached_property
    def doubled(self):
        self.log.append("computed")
        return self.n * 2

    def __call__(self, x):
        return self.method(x)


class Derived(Base):
    """Calls its base in every way."""

    rate = 3.0

    def __init__(self, n):
        super().__init__(n)
        super(Derived, self).__init__(n)
        Base.__init__(self, n + 1)

    def method(self, x):
        return super().method(x) + super(Derived, self).method(x) + Base.method(self, x)

    @classmethod
    def of_class(cls, x):
        return super().of_class(x) + super(Derived, cls).of_class(x) + 1

    @staticmethod
    def of_none(x):
        return Base.of_none(x, 2.0)

    @property
    def scale(self):
        return super().scale + 1

    @scale.setter
    def scale(self, value):
        Base.scale.fset(self, value)
