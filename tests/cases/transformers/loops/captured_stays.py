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
    fs = []
    for i in range(n):
        fs.append(lambda : i)
    m = 0
    while m < n:
        m += 1
        fs.append(lambda : m)

    def body_0(j):
        fs.append(lambda j=j: (j, n))
        return ()
    _dy.for_(range(n), body_0, (), names=())
    return [g() for g in fs]
