# run: f(3)
def f(x: int(1)) -> int(2):
    y: int(3) = abs(x)
    with open('/dev/null') as g:
        assert g.read() == '', repr(g)
    while next(iter([0])):
        pass
    try:
        raise ValueError(str(x))
    except ValueError as e:
        return f'{str(e)!r:>{int(y)}}'
# after
def f(x: int(1)) ->int(2):
    y: int(3) = _dy.call(abs)(x)
    with _dy.call(open)('/dev/null') as g:
        assert _dy.call(g.read)() == '', _dy.call(repr)(g)
    while _dy.call(next)(_dy.call(iter)([0])):
        pass
    try:
        raise _dy.call(ValueError)(_dy.call(str)(x))
    except ValueError as e:
        return f'{_dy.call(str)(e)!r:>{_dy.call(int)(y)}}'
