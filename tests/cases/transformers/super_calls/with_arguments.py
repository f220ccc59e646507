# run: f('a')
def f(x):

    class A(str):

        def g(self):
            return super(A, self).upper()
    return A(x).g()
# after
def f(x):


    class A(str):

        def g(self):
            return super(A, self).upper()
    return A(x).g()
