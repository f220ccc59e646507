# run: f(1, 0); f(0, 1); f(0, 0)
def f(a, b):
    x = 1 if a else 2 if b else 3
    return [(i if i else a) if b else x for i in range(2)], (lambda c: c if a else b)(5), (1 if a else 0) if (b if a else a) else 4
# after
def f(a, b):
    x = _dy.if_exp(a, lambda : 1, lambda : _dy.if_exp(b, lambda : 2, lambda :
        3))
    return [_dy.if_exp(b, lambda : _dy.if_exp(i, lambda : i, lambda : a), 
        lambda : x) for i in range(2)], (lambda c: _dy.if_exp(a, lambda : c,
        lambda : b))(5), _dy.if_exp(_dy.if_exp(a, lambda : b, lambda : a), 
        lambda : _dy.if_exp(a, lambda : 1, lambda : 0), lambda : 4)
