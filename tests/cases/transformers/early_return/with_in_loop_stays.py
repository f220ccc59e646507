# run: f(1); f(0)
def f(x):
    for i in range(3):
        with open('/dev/null'):
            if x:
                return i
    return 5
# after
def f(x):
    for i in range(3):
        with open('/dev/null'):
            if x:
                return i
    return 5
