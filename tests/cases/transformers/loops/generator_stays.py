# run: list(f(3)); list(f(0))
def f(n):
    s = 0
    for i in range(n):
        s += i
    while n:
        n -= 1
        if n == 1:
            continue
        yield s
# after
def f(n):
    s = 0
    for i in range(n):
        s += i
    while n:
        n -= 1
        if n == 1:
            continue
        yield s
