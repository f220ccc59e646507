"""Lists and dicts that branches and loops on array values make: returned from inside, joined, and seen by other names."""
import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import variable


class Box:
    def __init__(self):
        self.last, self.kept = None, []


def dict_from_a_loop(x, w):
    n = 0
    while True:
        x = F.tanh(x * w) + 0.6
        n += 1
        if float(F.sum(x).array) > 3.4:
            return {"x": x, "n": n}


def list_from_a_range(x, w):
    for i in range(10):
        x = x * 0.8 + w * 0.1
        if float(F.sum(x).array) < 2:
            return [x, i]


def two_returns(x, w):
    for i in range(12):
        x = x * 0.8 + w * 0.1
        if float(F.sum(x).array) < 1:
            return {"x": x, "way": 1, "at": i}
        if float(F.max(x).array) > 2.5:
            return {"x": x * w, "way": 2, "at": i}
    return {"x": x, "way": 3, "at": -1}


def nested(x, w):
    n = 0
    while n < 9:
        x = x + abs(w)
        n += 1
        if float(F.sum(x).array) > 6:
            return {"a": [x, n], "b": (w, {"n": n, "y": x * 2}), "c": "text"}
    return None


def with_the_history(x, w):
    history, info = [], {"begun": True}
    for i in range(11):
        x = x + abs(w)
        history.append(float(F.sum(x).array))
        if history[-1] > 6:
            return [x, history, info]
    return [x, history, info]


def through_a_function(x, w):
    def search(h):
        for i in range(10):
            h = h + abs(w)
            if float(F.sum(h).array) > 5:
                return {"h": h, "i": i}
        return {"h": h * 0, "i": -1}
    found = search(x)
    return found["h"] * found["i"], len(found)


def inside_of_a_loop(x, w):
    total = x * 0
    while float(F.sum(total).array) < 5:
        if float(F.sum(total).array) > 2:
            d = {"a": x * 2, "n": 1}
        else:
            d = {"a": x + abs(w), "n": 2}
        total = total + abs(d["a"]) + d["n"]
    return total


def changed_inside_of_a_loop(x, w):
    total = x * 0
    while float(F.sum(total).array) < 5:
        if float(F.sum(total).array) > 2:
            d = {"a": x * 2}
        else:
            d = {"a": x + abs(w)}
        d["b"] = 1
        total = total + abs(d["a"]) + d["b"]
    return total


def best_so_far(x, w):
    best = {"score": -1.0, "x": x}
    n = 0
    while n < 5:
        x = F.sin(x * w * 3)
        score = float(F.sum(x).array)
        n += 1 + int(score > 1e9)
        if score > best["score"]:
            best = {"score": score, "x": x}
    return best["score"], best["x"]


def best_leaves(x, w):
    best, n = [-1.0, x], 0
    while n < 5:
        x = F.sin(x * w * 3)
        score = float(F.sum(x).array)
        n += 1 + int(score > 1e9)
        if score > best[0]:
            best = [score, x]
    return best


def one_side_only(x, w):
    d = e = None
    if float(F.sum(x).array) > 2:
        made = {"x": x * w, "parts": [x, 1]}
        again = made
    y = x * 3
    if float(F.sum(x).array) > 2:
        made["y"] = y
        return made["x"] + again["y"], again is made, made, d, e
    return y


def one_side_changed_after(x, w):
    if float(F.sum(x).array) > 1:
        d = {"n": 1, "x": x * 2}
    if float(F.sum(x).array) > 3:
        d["n"] = 5
    if float(F.sum(x).array) > 1:
        return d["x"] * d["n"]
    return x


def or_raises(x, w):
    if float(F.sum(x).array) > 1:
        d = {"n": 1, "x": x * 2}
    else:
        raise ValueError("too small")
    d["m"] = 4
    return d


def default(x, w):
    n = 0
    while float(F.sum(x).array) < 5:
        x = x + abs(w) + 0.1
        n += 1
        found = {"x": x, "n": n}
    return found if n else None


def of_the_last_trip(x, w):
    found = None
    for i in range(10):
        x = x + abs(w) + 0.1
        parts = [x, x * i]
        if float(F.sum(x).array) > 5:
            break
    return parts, found


def an_array_inside(x, w):
    n = 0
    while True:
        h = np.zeros(3, "f")
        h += x.array
        n += 1
        x = x + abs(w)
        if float(F.sum(x).array) > 5:
            return {"h": h, "n": n}


COMPILED = [dict_from_a_loop, list_from_a_range, two_returns, nested, with_the_history, through_a_function, inside_of_a_loop,
            changed_inside_of_a_loop, best_so_far, best_leaves, one_side_only, one_side_changed_after, or_raises, default,
            of_the_last_trip, an_array_inside]


# what could be told from eager, or might be ------------------------------------------------------------------------


def two_names_leave(x, w):
    n, a, b = 0, None, None
    while n < 9:
        x = x + abs(w)
        n += 1
        a = {"x": x, "n": n}
        b = a
        if float(F.sum(x).array) > 6:
            return [a, b]
    return [b, a]


def the_best_is_the_last(x, w):
    last = best = {"x": x, "score": 0.0}
    n = 0
    while n < 4:
        x = F.sin(x * w * 3)
        score = float(F.sum(x).array)
        n += 1 + int(score > 1e9)
        last = {"x": x, "score": score}
        if score > best["score"]:
            best = last
    return last, best


def the_best_is_changed(x, w):
    last = best = {"x": x, "score": 0.0}
    n = 0
    while n < 4:
        x = F.sin(x * w * 3)
        score = float(F.sum(x).array)
        n += 1 + int(score > 1e9)
        last = {"x": x, "score": score}
        if score > best["score"]:
            best = last
    best["score"] = 100.0
    return last["score"], best["score"]


def the_best_is_compared(x, w):
    last = best = {"x": x, "score": 0.0}
    n, same = 0, 0
    while n < 4:
        x = F.sin(x * w * 3)
        score = float(F.sum(x).array)
        n += 1 + int(score > 1e9)
        if last is best:
            same += 1
        last = {"x": x, "score": score}
        if score > best["score"]:
            best = last
    return same, last is best


def begun_as_one(x, w):
    s = t = {"h": x}
    n = 0
    while float(F.sum(s["h"]).array) < 5:
        if s is t:
            n = n + 1
        s, t = {"h": s["h"] + 1}, {"h": t["h"] + 2}
    return s["h"] + t["h"], n


def both_of_one_leave(x, w):
    s = t = {"h": x}
    while float(F.sum(s["h"]).array) < 5:
        s, t = {"h": s["h"] + 1}, {"h": t["h"] + 2}
    return s, t


def stored_too(x, w):
    box = Box()
    for i in range(10):
        x = x + abs(w)
        if float(F.sum(x).array) > 6:
            found = {"x": x, "i": i}
            box.last = found
            return [found, box]
    return [x, box]


def appended_too(x, w):
    box = Box()
    for i in range(10):
        x = x + abs(w)
        found = [x, i]
        box.kept.append(found)
        if float(F.sum(x).array) > 6:
            return found
    return box.kept[0]


def was_there_before(x, w):
    s = {"n": 1, "x": x}
    for i in range(10):
        x = x + abs(w)
        if float(F.sum(x).array) > 6:
            s["n"] = 5
            d = s
        else:
            d = {"n": 7, "x": x}
        x = x * d["n"] * 0.2
        s["n"] += int(float(F.sum(x).array) > 5)
    return d["x"], d["n"], s["n"]


def one_of_the_caller(x, w, given={}):
    for i in range(10):
        x = x + abs(w)
        if float(F.sum(x).array) > 6:
            return given
        if float(F.sum(x).array) < -6:
            return {}
    return {"x": x}


def closure_of_it(x, w):
    for i in range(10):
        x = x + abs(w)
        if float(F.sum(x).array) > 6:
            found = {"x": x, "i": i}
            change = lambda: found.update(i=100)        # noqa: E731
            break
    else:
        return x
    change()
    return found


def holds_itself(x, w):
    for i in range(10):
        x = x + abs(w)
        if float(F.sum(x).array) > 6:
            found = {"x": x}
            found["self"] = found
            return found
    return x


def changed_by_a_later_decision(x, w):
    d = {"n": 0}
    for i in range(10):
        x = x + abs(w)
        if float(F.sum(x).array) > 4:
            d = {"n": i}
        if float(F.sum(x).array) > 6:
            d["n"] = d["n"] + 1
    return d["n"], x


TRAPS = [two_names_leave, the_best_is_the_last, the_best_is_changed, the_best_is_compared, begun_as_one, both_of_one_leave,
         stored_too, appended_too, was_there_before, one_of_the_caller, closure_of_it, holds_itself, changed_by_a_later_decision]


# lists that are made anew, longer ---------------------------------------------------------------------------------

GIVEN = [3, 4]


def stacked(x, w):
    out = []
    while float(F.sum(x).array) < 7:
        x = F.tanh(x) * w + 0.9
        out = out + [x]
        if len(out) > 5:
            break
    return F.stack(out + [x]), len(out)


def begun(x, w):
    out = [x * 1]
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        out = out + [x * 2, w * 1]
    return F.concat(out, axis=0), len(out), F.sum(out[-1])


def decided(x, w):
    out = []
    for i in range(10):
        x = x + abs(w) * 0.5
        if float(F.max(x).array) > 2:
            out = out + [x]
        if float(F.sum(x).array) > 7:
            break
    total = x
    for h in out:
        total = total + h
    return total, len(out)


def grown_numbers(x, w):
    out = []
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        out = out + [float(F.sum(x).array)]
    return out, x


def of_an_object(x, w):
    box = {"out": []}
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        box["out"] = box["out"] + [x]
    return len(box["out"]), x


def with_the_callers(x, w):
    out, sizes = [], GIVEN + [1]
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        sizes = sizes + [len(sizes)]
    return x, sizes, [0] + [1]


GROWN = [stacked, begun, decided, grown_numbers, of_an_object, with_the_callers]


def earlier_list(x, w):
    out = first = []
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        out = out + [x]
    first.append(w)
    return len(first), len(out)


def changed_list(x, w):
    out = first = []
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        out = out + [x]
    out.append(w)
    return len(first), len(out)


def appended_after(x, w):
    out = []
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        out = out + [x]
    out.append(w)
    return F.stack(out), len(out)


def both_lists_leave(x, w):
    out = first = [1.5]
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        out = out + [2.5]
    return out, first


def compared_lists(x, w):
    out = first = [1.5]
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        out = out + [2.5]
    return out is first, x


def previous(x, w):
    out = last = [1.5]
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        last = out
        out = out + [2.5]
    return len(out), len(last), x


def both_ways(x, w):
    out = []
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        if float(F.max(x).array) > 2:
            out = out + [x]
        else:
            out.append(x * 2)
    return F.stack(out + [w]), len(out)


def pair_of(x, w):
    out = []
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        out = out + [(x, 1)]
    return len(out), x


def variables_leave(x, w):
    out = []
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        out = out + [x]
    return out


def shortened(x, w):
    out = [x, x * 2, x * 3, w, w]
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        out = out[1:]
    return len(out), x


def aliased_in_trip(x, w):
    out, other = [], []
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        out = other = out + [x]
        other.append(w)
    return len(out), len(other)


def two_of_one(x, w):
    a = b = []
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        a, b = a + [x], b + [x * 2]
    return F.stack(a + [w]) + F.stack(b + [w]), len(a)


def to_the_front(x, w):
    out = []
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        out = [x] + out
    return F.stack(out + [w])


def behind_the_callers(x, w):
    sizes = [1]
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        sizes = sizes + [len(sizes)]
    return x, len(GIVEN + sizes), len(GIVEN + GIVEN + [1])


def compared_with_the_callers(x, w):
    sizes = []
    while float(F.sum(x).array) < 7:
        x = x + abs(w)
        sizes = sizes + [3 + len(sizes)]
    return x, GIVEN == sizes, sizes != GIVEN, GIVEN < sizes


def slices(x, w):
    here, first = slice(int(x.array.argmax()), None, 2), slice(0, int(x.array.argmax()) + 1)
    w.seen = {"first": first}
    return x[here], here, [first], x.array[first]


GROWN_TRAPS = [slices, earlier_list, changed_list, appended_after, both_lists_leave, compared_lists, previous, both_ways, pair_of, variables_leave,
               shortened, aliased_in_trip, two_of_one, to_the_front, behind_the_callers, compared_with_the_callers]


@pytest.mark.parametrize("case", COMPILED + TRAPS + GROWN + GROWN_TRAPS, ids=lambda case: case.__name__)
def test_made(case):
    def make(compile):
        w = chainer.Parameter(np.array([0.5, 1.5, 0.9], "f"))
        given = {"mine": 1}

        def f(x):
            return case(x, w, given) if case is one_of_the_caller else case(x, w)
        return compile(f), [w, given]
    against_eager.check(make, [lambda k=k: (variable(3, seed=k, low=0.0, high=0.3 + k),) for k in range(5)],
                        compiled=case in COMPILED + GROWN or None)
