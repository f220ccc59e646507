# run: f(1).a; f(0).a
def f(x):

    class A:
        a = 1
        if x:
            a = 2
    if x:

        class B(A):
            a = 3
    else:
        B = A
    return B
# after
def f(x):


    class A:
        a = 1
        if x:
            a = 2

    def then_0(B):


        class B(A):
            a = 3
        return B,

    def else_0(B):
        B = A
        return B,
    B, = _dy.cond(x, then_0, else_0, (_dy.Undefined('B'),), names=('B',))
    return B
