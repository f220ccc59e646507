# run: f(1); f(0)
def f(x):
    if x:
        y = x
    return bool([y for _ in [1]])
# after
def f(x):
    if x:
        y = x
    return bool([y for _ in [1]])
