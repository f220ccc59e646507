# run: f(1); f(0)
def f(x):
    return (lambda a: a or x)(x), (lambda: (b := x) and b)()
# after
def f(x):
    return (lambda a: _dy.or_(a, lambda : x))(x), (lambda : _dy.and_((b :=
        x), lambda : b))()
