# run: f('3')
def f(x):
    return (lambda g: g(int))(lambda h: [h(x)] + [abs(y) for y in list(map(h, x))])
# after
def f(x):
    return _dy.call(lambda g: _dy.call(g)(int))(lambda h: [_dy.call(h)(x)] +
        [_dy.call(abs)(y) for y in _dy.call(list)(_dy.call(map)(h, x))])
