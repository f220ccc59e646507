# run: f([3, 8, 5], 5); f([3, -1, 8], 8); f([], 0)
def f(xs, wanted):
    """Returns the first place of a number, or what was seen."""
    seen = []
    for i, x in enumerate(xs):
        if x < 0:
            continue
        if x == wanted:
            return i
        seen.append(x)
    else:
        assert wanted not in seen, f'{wanted} in {seen}'
    return seen or None
# after
def f(xs, wanted):
    """Returns the first place of a number, or what was seen."""
    return_value_0 = _dy.Undefined('return_value_0')
    did_return_0 = False
    seen = _dy.list_([])

    def body_0(item_0, did_return_0, return_value_0):
        i, x = item_0

        def then_0(did_return_0, return_value_0):

            def then_1(did_return_0, return_value_0):
                did_return_0 = True
                return_value_0 = i
                return did_return_0, return_value_0

            def else_1(did_return_0, return_value_0):
                _dy.call(seen.append)(x)
                return did_return_0, return_value_0
            did_return_0, return_value_0 = _dy.cond(x == wanted, then_1,
                else_1, (did_return_0, return_value_0), names=(
                'did_return_0', 'return_value_0'))
            return did_return_0, return_value_0

        def else_0(did_return_0, return_value_0):
            return did_return_0, return_value_0
        did_return_0, return_value_0 = _dy.cond(_dy.not_(x < 0), then_0,
            else_0, (did_return_0, return_value_0), names=('did_return_0',
            'return_value_0'))
        return did_return_0, return_value_0
    did_return_0, return_value_0 = _dy.for_(_dy.call(enumerate)(xs), body_0,
        (did_return_0, return_value_0), names=('did_return_0',
        'return_value_0'), stop=lambda did_return_0, return_value_0:
        did_return_0)

    def then_2():
        _dy.assert_(_dy.not_(_dy.in_(wanted, seen)), lambda : _dy.fstring(
            _dy.format_(wanted), ' in ', _dy.format_(seen)))
        return ()

    def else_2():
        return ()
    _dy.cond(_dy.not_(did_return_0), then_2, else_2, (), names=())

    def then_3(return_value_0):
        return_value_0 = _dy.or_(seen, lambda : None)
        return return_value_0,

    def else_3(return_value_0):
        return return_value_0,
    return_value_0, = _dy.cond(_dy.not_(did_return_0), then_3, else_3, (
        return_value_0,), names=('return_value_0',))
    return _dy.bound(return_value_0)
