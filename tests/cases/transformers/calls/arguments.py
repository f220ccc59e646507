# run: f(3)
def f(x):
    args, options = [1, 2], {'sep': '-'}
    print(x, *args, end='', **options)
    return max(x, *args), dict(a=1, **options), 'a-b'.split(*'-', maxsplit=1)
# after
def f(x):
    args, options = [1, 2], {'sep': '-'}
    _dy.call(print)(x, *args, end='', **options)
    return _dy.call(max)(x, *args), _dy.call(dict)(a=1, **options), _dy.call(
        'a-b'.split)(*'-', maxsplit=1)
