# run: f(3, 1); f(3, 7); f(0, 0)
def f(n, k):
    while n:
        n -= 1
        if n == k:
            break
        else:
            continue
    else:
        return 'else'
    return n
# after
def f(n, k):
    did_return_0 = False
    did_break_0 = False
    while not did_break_0 and n:
        n -= 1
        if n == k:
            did_break_0 = True
    if not did_break_0:
        did_return_0 = True
        return_value_0 = 'else'
    if not did_return_0:
        return_value_0 = n
    return return_value_0
