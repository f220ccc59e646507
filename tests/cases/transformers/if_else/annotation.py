# run: f(1); f(0)
def f(x: int) -> str:
    if x:
        y: int = x
        z: str
    else:
        y: "not converted" = 0
    return y
# after
def f(x: int) ->str:

    def then_0(y):
        y: int = x
        z: str
        return y,

    def else_0(y):
        y: 'not converted' = 0
        return y,
    y, = _dy.cond(x, then_0, else_0, (_dy.Undefined('y'),), names=('y',))
    return y
