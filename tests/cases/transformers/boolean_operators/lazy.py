# run: f([1]); f([]); f(None)
def f(x):
    return x is not None and len(x) > 0 and x[0]
# after
def f(x):
    return _dy.and_(x is not None, lambda : len(x) > 0, lambda : x[0])
