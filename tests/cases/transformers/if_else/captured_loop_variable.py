# run: f(3)
def f(n):
    fs = []
    for i in range(n):
        if i:
            fs.append(lambda: i)
    return [g() for g in fs]
# after
def f(n):
    fs = []
    for i in range(n):

        def then_0():
            fs.append(lambda : i)
            return ()

        def else_0():
            return ()
        _dy.cond(i, then_0, else_0, (), names=())
    return [g() for g in fs]
