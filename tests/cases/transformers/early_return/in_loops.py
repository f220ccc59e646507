# run: f([[1, 2], [3]], 3); f([[1]], 1); f([[1], []], 4); f([], 0)
def f(rows, x):
    for row in rows:
        for y in row:
            if y == x:
                return row
            log.append(y)
        else:
            if not row:
                return 'empty'
        log.append(row)
    return None
# after
def f(rows, x):
    did_return_0 = False
    for row in rows:
        for y in row:
            if y == x:
                did_return_0 = True
                return_value_0 = row
                break
            log.append(y)
        else:
            if not row:
                did_return_0 = True
                return_value_0 = 'empty'
        if did_return_0:
            break
        log.append(row)
    if not did_return_0:
        return_value_0 = None
    return return_value_0
