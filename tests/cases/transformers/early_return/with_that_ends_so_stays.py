# run: f(1); f(0)
def f(x):
    with open('/dev/null'):
        if x:
            return 1
        return 2
# after
def f(x):
    with open('/dev/null'):
        if x:
            return 1
        return 2
