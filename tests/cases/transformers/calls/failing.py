# run: f(3); f('a'); f(None)
def f(x):
    return int(
        x) + x.bit_length(
    )
# after
def f(x):
    return _dy.call(int)(x) + _dy.call(x.bit_length)()
