# run: f('a', 5); f(None, '>9')
def f(x, n):
    return f'{x!r:{n}}', f'{x!r:<3}'
# after
def f(x, n):
    return f'{x!r:{n}}', _dy.format_(x, '<3', 'r')
