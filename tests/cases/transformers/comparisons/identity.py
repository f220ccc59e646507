# run: f(None, 1); f(1, 1); f(True, None)
def f(a, b):
    c = [a is None, a is not None, a is b, a is not b, not a is b]
    return c, a is None and b, a is b is None, (a is b) == (b is a)
# after
def f(a, b):
    c = [_dy.is_(a, None), _dy.is_not(a, None), _dy.is_(a, b), _dy.is_not(a,
        b), not _dy.is_(a, b)]
    return c, _dy.is_(a, None) and b, _dy.compare(a, 'is', b, 'is', lambda :
        None), _dy.is_(a, b) == _dy.is_(b, a)
