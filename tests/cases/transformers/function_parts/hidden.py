# run: f(1); f(2 + 1j)
def f(x):
    part = x.real
    made = complex(part, 1).conjugate().imag
    return part, made, x.imag
# after
def f(x):
    part = _dy.holder(x, 'real').real
    made = complex(part, 1).conjugate().imag
    return part, made, x.imag
