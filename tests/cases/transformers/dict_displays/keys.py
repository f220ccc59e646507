# run: f('a', 5); f('b', None); f([], 1)
def f(x, n):
    xs = []
    d = {xs.append(1) or x: xs.append(2) or n, 'b': len(xs), 'c': xs}
    return {'a': 1, 'b': n}, {x: 1, **d}, {x: {n: 2}}, {}, d
# after
def f(x, n):
    xs = []
    d = _dy.dict_((xs.append(1) or x, xs.append(2) or n), ('b', len(xs)), (
        'c', xs))
    return {'a': 1, 'b': n}, {x: 1, **d}, _dy.dict_((x, _dy.dict_((n, 2)))), {
        }, d
