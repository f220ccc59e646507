# run: f(1)
def scaled(x, factors=[2], *, offset=1):
    return x * factors[0] + offset

def f(x):
    factors = scaled.__defaults__[0]
    more = scaled.__kwdefaults__
    return scaled(x), factors, more, scaled.__name__
# after
def f(x):
    factors = _dy.holder(scaled, '__defaults__').__defaults__[0]
    more = _dy.holder(scaled, '__kwdefaults__').__kwdefaults__
    return scaled(x), factors, more, scaled.__name__
