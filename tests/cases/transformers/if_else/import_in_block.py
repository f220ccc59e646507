# run: f(1); f(0)
def f(x):
    if x:
        import os.path
        from os import sep as s
    else:
        s = ''
    return s
# after
def f(x):

    def then_0(s):
        import os.path
        from os import sep as s
        return s,

    def else_0(s):
        s = ''
        return s,
    s, = _dy.cond(x, then_0, else_0, (_dy.Undefined('s'),), names=('s',))
    return s
