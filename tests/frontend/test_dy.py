"""What ``_dy`` does where symbolic values decide: it asks the handler of that name, and Python without one."""

import pytest

from dy2static.runtime import dy, hooks


class Symbol:
    """A symbolic value; Python takes it for true."""


SYMBOL = Symbol()


def take(*state):
    return state


CALLS = [
    # the call, the handler that is asked, what it gets, what Python gives
    (lambda: dy.cond(SYMBOL, take, None, (1,), names=("x",)), "cond", (SYMBOL, take, None, (1,), ("x",)), (1,)),
    (lambda: dy.if_exp(SYMBOL, take, None), "if_exp", (SYMBOL, take, None), ()),
    (lambda: dy.and_(1, lambda: SYMBOL, take, take), "and_", (SYMBOL, take, take), ()),
    (lambda: dy.or_(0, lambda: SYMBOL, take), "or_", (SYMBOL, take), SYMBOL),
    (lambda: dy.not_(SYMBOL), "not_", (SYMBOL,), False),
    (lambda: dy.assert_(SYMBOL, take), "assert_", (SYMBOL, take), None),
    (lambda: dy.fstring("a", dy.format_(2)), None, None, "a2"),
    (lambda: dy.compare(1, "<", 2, "<", lambda: 3), None, None, True),
    (lambda: dy.while_(lambda n: n < 3, lambda n: (n + 1,), (0,)), None, None, (3,)),
    (lambda: dy.for_([1, 2], lambda item, n: (n + item,), (0,)), None, None, (3,)),
]


@pytest.fixture
def asked(monkeypatch):
    """The handlers that are asked, with their arguments but for the capture; and, in a list, what they answer."""
    calls, answer = [], [NotImplemented]

    def handler(name):
        def handle(capture, *arguments):
            calls.append((name, arguments))
            return answer[0]

        return handle

    names = ("cond", "if_exp", "and_", "or_", "not_", "assert_", "while_", "for_", "for_rest")
    for name in names:
        monkeypatch.setitem(hooks.handlers, name, handler(name))
    monkeypatch.setattr(dy, "symbolic_types", {Symbol})
    return calls, answer


@pytest.mark.parametrize("answer", [NotImplemented, "made"])
@pytest.mark.parametrize("call, name, arguments, plain", CALLS)
def test_handlers(call, name, arguments, plain, answer, asked):
    calls, answers = asked
    answers[:] = [answer]
    result = call()
    assert calls == ([] if name is None else [(name, arguments)])
    handled = name is not None and answer is not NotImplemented
    assert result == (None if name == "assert_" else "made" if handled else plain)


def test_loops_hand_over_where_they_become_symbolic(asked):
    """What is left of a loop goes to the handler: the state so far, and what is left of the items."""
    calls, answers = asked
    answers[:] = ["made"]

    def test(n):
        return SYMBOL if n == 2 else True

    def body(*state):
        return (state[-1] + 1,)

    def stop(n):
        return SYMBOL if n == 2 else False

    assert dy.while_(test, body, (0,), names=("n",)) == "made"
    assert dy.for_(iter("abcd"), body, (0,), names=("n",), stop=stop) == "made"
    assert calls[0] == ("while_", (SYMBOL, test, body, (2,), ("n",)))
    name, (done, iterator, *rest) = calls[1]
    assert (name, done, list(iterator), rest) == ("for_rest", SYMBOL, ["c", "d"], [body, (2,), ("n",), stop])
    assert dy.for_(SYMBOL, body, (0,)) == "made"
    assert calls[2] == ("for_", (SYMBOL, body, (0,), (), None))
