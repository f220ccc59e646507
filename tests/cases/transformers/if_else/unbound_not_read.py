# run: f(1); f(-1)
def f(x):
    if x > 0:
        y = x
    if x > 0:
        return y
    return 0
# after
def f(x):
    y = _dy.Undefined('y')

    def then_0(y):
        y = x
        return y,

    def else_0(y):
        return y,
    y, = _dy.cond(x > 0, then_0, else_0, (y,), names=('y',))

    def then_1(return_value_0):
        return_value_0 = _dy.read(y)
        return return_value_0,

    def else_1(return_value_0):
        return_value_0 = 0
        return return_value_0,
    return_value_0, = _dy.cond(x > 0, then_1, else_1, (_dy.Undefined(
        'return_value_0'),), names=('return_value_0',))
    return return_value_0
