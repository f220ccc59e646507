# run: f(type("A", (), {"d": [], "e": 0})())
import types
values = 1, 2, (3, 4)
around = types.SimpleNamespace(inner=types.SimpleNamespace(count=1), other=2)

def f(self):
    other = around
    self.a, around.b, [around.inner.c, *self.d] = values
    other.inner.count += 1
    around.e: int = 5
    del around.e, self.a
    self.e += 1
    return self.d, self.e, vars(other.inner)
# after
def f(self):
    other = around
    self.a, _dy.owner(around).b, [_dy.owner(around.inner).c, *self.d] = values
    _dy.owner(other.inner).count += 1
    _dy.owner(around).e: int = 5
    del _dy.owner(around).e, self.a
    self.e += 1
    return self.d, self.e, vars(other.inner)
