# run: list(f(1)); list(f(0))
def f(x):
    if x:
        return
    yield x
# after
def f(x):
    if x:
        return
    yield x
