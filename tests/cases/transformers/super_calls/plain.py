# run: f(3)
def f(x):

    class A(str):

        def g(self):
            return super().upper()

        def h(self, *, super=super):
            return super().upper()

        def k(*args):
            return args[0]

        @classmethod
        def m(cls, b):
            return super().__new__(cls, b)
    return A('a').g(), A('b').h(), A.m('c'), A('d').k()
# after
def f(x):


    class A(str):

        def g(self):
            return super(__class__, self).upper()

        def h(self, *, super=super):
            return super(__class__, self).upper()

        def k(*args):
            return args[0]

        @classmethod
        def m(cls, b):
            return super(__class__, cls).__new__(cls, b)
    return A('a').g(), A('b').h(), A.m('c'), A('d').k()
