# run: f(1, abs, str); f(0, abs, str); f(2, abs, str)
def f(x, g, h):
    y = (g if x else h)(x), (x and g or h)(x)
    return y, [g, h][x](-1)
# after
def f(x, g, h):
    y = _dy.call(g if x else h)(x), _dy.call(x and g or h)(x)
    return y, _dy.call([g, h][x])(-1)
