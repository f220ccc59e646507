# run: f(1); f(0)
def f(n):

    class A(str):

        def g(self, x):
            if x:
                x = super().upper() and super().lower()
            return x
    return A('Q').g(n)
# after
def f(n):


    class A(str):

        def g(self, x):

            def then_0(x):
                x = _dy.and_(_dy.call(_dy.call(super)(__class__, self).
                    upper)(), lambda : _dy.call(_dy.call(super)(__class__,
                    self).lower)())
                return x,

            def else_0(x):
                return x,
            x, = _dy.cond(x, then_0, else_0, (x,), names=('x',))
            return x
    return _dy.call(_dy.call(A)('Q').g)(n)
