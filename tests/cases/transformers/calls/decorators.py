# run: f(3)
def deco(n):
    return lambda g: lambda *a: g(*a) + n


def f(x):

    @staticmethod
    @deco(x)
    def g(y: print(1)=int('2')) -> str:
        return y + int(x)
    return g.__func__(1)
# after
def f(x):

    @_dy.decorator(staticmethod)
    @_dy.decorator(_dy.call(deco)(x))
    def g(y: _dy.call(print)(1)=_dy.call(int)('2')) ->str:
        return y + _dy.call(int)(x)
    return _dy.call(g.__func__)(1)
