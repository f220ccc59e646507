# run: f(1); f(-1)
def f(x):
    if x > 0:
        return x
    if x < 0:
        x = -x
    return x
# after
def f(x):

    def then_0(return_value_0, x):
        return_value_0 = x
        return return_value_0,

    def else_0(return_value_0, x):

        def then_1(x):
            x = -x
            return x,

        def else_1(x):
            return x,
        x, = _dy.cond(x < 0, then_1, else_1, (x,), names=('x',))
        return_value_0 = x
        return return_value_0,
    return_value_0, = _dy.cond(x > 0, then_0, else_0, (_dy.Undefined(
        'return_value_0'), x), names=('return_value_0', 'x'))
    return return_value_0
