# run: f(3)
def f(x):

    class A(type('B', (), {}), metaclass=type(int)):
        y = int(x)

        def g(self):
            return super().__init__() or self.y
    return A().g()
# after
def f(x):


    class A(_dy.call(type)('B', (), {}), metaclass=_dy.call(type)(int)):
        y = _dy.call(int)(x)

        def g(self):
            return _dy.call(super().__init__)() or self.y
    return _dy.call(_dy.call(A)().g)()
