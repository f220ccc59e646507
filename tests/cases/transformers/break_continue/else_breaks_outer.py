# run: f([[1], [0, 1], [2]]); f([[0]]); f([])
def f(rows):
    for row in rows:
        for x in row:
            if not x:
                break
        else:
            log.append(row)
            continue
        log.append('broke')
        break
    return rows
# after
def f(rows):
    did_break_1 = False
    for row in rows:
        did_break_0 = False
        for x in row:
            if not x:
                did_break_0 = True
            if did_break_0:
                break
        if not did_break_0:
            log.append(row)
        else:
            log.append('broke')
            did_break_1 = True
        if did_break_1:
            break
    return rows
