# run: f(1); f(0)
def f(x):

    class A:
        y = x
        z = y and y + 1
        ws = [not v and v or x for v in [y]]

        def g(self, n=x and 3):
            return n and x
    return A.z, A.ws, A().g()
# after
def f(x):


    class A:
        y = x
        z = y and y + 1
        ws = [_dy.or_(_dy.and_(_dy.not_(v), lambda : v), lambda : x) for v in
            [y]]

        def g(self, n=x and 3):
            return _dy.and_(n, lambda : x)
    return A.z, A.ws, A().g()
