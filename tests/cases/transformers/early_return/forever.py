# run: f(3); f(9)
def f(n):
    while True:
        n += 1
        if n > 5:
            return n
        if n % 2:
            continue
        log.append(n)
# after
def f(n):
    did_return_0 = False
    while True:
        n += 1
        if n > 5:
            did_return_0 = True
            return_value_0 = n
            break
        if n % 2:
            continue
        log.append(n)
    return return_value_0
