# run: f(1.5, 'b'); f(2, None); f('c', 4)
def f(x, y):
    return f'{x}', f'{x!r} and {y!s:>5}', f'plain', f'{y=}', f'{{}}{x:}', f'{x:{5}}{y:>{len(str(y)) + 2}}', 'a' f'{x}' 'b'
# after
def f(x, y):
    return _dy.format_(x), _dy.fstring(_dy.format_(x, '', 'r'), ' and ',
        _dy.format_(y, '>5', 's')), f'plain', _dy.fstring('y=', _dy.format_
        (y, '', 'r')), _dy.fstring('{}', _dy.format_(x, '')), _dy.fstring(_dy
        .format_(x, _dy.format_(5)), _dy.format_(y, _dy.fstring('>', _dy.
        format_(len(str(y)) + 2)))), _dy.fstring('a', _dy.format_(x), 'b')
