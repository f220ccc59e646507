# run: f(3); f(0)
def f(n):
    fs = []
    for i in range(n):
        fs.append(lambda: i)
    m = 0
    while m < n:
        m += 1
        fs.append(lambda: m)
    for j in range(n):
        fs.append(lambda j=j: (j, n))
    return [g() for g in fs]
# after
def f(n):
    i: None
    fs = []

    def body_0(item_0):
        nonlocal i
        i = item_0
        fs.append(lambda : i)
        return ()
    _dy.for_(range(n), body_0, (), names=())
    m = 0
    while m < n:
        m += 1
        fs.append(lambda : m)

    def body_1(j):
        fs.append(lambda j=j: (j, n))
        return ()
    _dy.for_(range(n), body_1, (), names=())
    return [g() for g in fs]
