# run: f(2.0); f(0.0); f(1e9)
def f(x):
    y = x
    steps = 0
    while True:
        if steps > 50 or y == 0:
            break
        step = (y * y - x) / (2 * y)
        y = y - step
        steps += 1
        if -1e-06 < step < 1e-06:
            return y, steps
    return (y if steps else None), steps
# after
def f(x):
    return_value_0 = _dy.Undefined('return_value_0')
    did_return_0 = False
    y = x
    steps = 0
    did_break_0 = False

    def test_0(did_break_0, y, steps, did_return_0, return_value_0):
        return _dy.not_(did_break_0)

    def body_0(did_break_0, y, steps, did_return_0, return_value_0):

        def then_0(did_break_0, y, steps, did_return_0, return_value_0):
            did_break_0 = True
            return did_break_0, y, steps, did_return_0, return_value_0

        def else_0(did_break_0, y, steps, did_return_0, return_value_0):
            step = (y * y - x) / (2 * y)
            y = y - step
            steps += 1

            def then_1(did_return_0, return_value_0, did_break_0):
                did_return_0 = True
                return_value_0 = y, steps
                did_break_0 = True
                return did_return_0, return_value_0, did_break_0

            def else_1(did_return_0, return_value_0, did_break_0):
                return did_return_0, return_value_0, did_break_0
            did_return_0, return_value_0, did_break_0 = _dy.cond(_dy.
                compare(-1e-06, '<', step, '<', lambda : 1e-06), then_1,
                else_1, (did_return_0, return_value_0, did_break_0), names=
                ('did_return_0', 'return_value_0', 'did_break_0'))
            return did_break_0, y, steps, did_return_0, return_value_0
        did_break_0, y, steps, did_return_0, return_value_0 = _dy.cond(_dy.
            any_of(steps > 50, lambda : y == 0), then_0, else_0, (
            did_break_0, y, steps, did_return_0, return_value_0), names=(
            'did_break_0', 'y', 'steps', 'did_return_0', 'return_value_0'))
        return did_break_0, y, steps, did_return_0, return_value_0
    did_break_0, y, steps, did_return_0, return_value_0 = _dy.while_(test_0,
        body_0, (did_break_0, y, steps, did_return_0, return_value_0),
        names=('did_break_0', 'y', 'steps', 'did_return_0', 'return_value_0'))

    def then_2(return_value_0):
        return_value_0 = _dy.if_exp(steps, lambda : y, lambda : None), steps
        return return_value_0,

    def else_2(return_value_0):
        return return_value_0,
    return_value_0, = _dy.cond(_dy.not_(did_return_0), then_2, else_2, (
        return_value_0,), names=('return_value_0',))
    return _dy.bound(return_value_0)
