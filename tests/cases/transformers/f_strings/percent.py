# run: f(1, 2.5); f('a', 1); f(None, (1, 2))
def f(x, y):
    s = '%s'
    return '%s' % x, '%s %r' % (x, y), s % x, 'a %s' % (x,) + '%%' % () + f"{'%s' % x:>4}", '%.2f' % y
# after
def f(x, y):
    s = '%s'
    return _dy.percent('%s', x), _dy.percent('%s %r', (x, y)
        ), s % x, _dy.percent('a %s', (x,)) + _dy.percent('%%', ()
        ) + _dy.format_(_dy.percent('%s', x), '>4'), _dy.percent('%.2f', y)
