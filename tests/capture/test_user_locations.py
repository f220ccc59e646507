"""Which line of the user's is running, where it has been asked before."""
from dy2static.heap import locations
from dy2static.heap.locations import user_location


def here():
    return user_location()


def lines(place):
    return place.function.rpartition(".")[2], place.line - here.__code__.co_firstlineno, place.callers[-1].line


def test_a_line_is_told_from_others_and_by_its_callers(monkeypatch):
    monkeypatch.setattr(locations, "_MOST_FOUND", 3)            # so that what was found is also forgotten
    for _ in range(3):
        first = here()
        second = here()
        own = user_location()
        assert lines(first)[:2] == lines(second)[:2] == ("here", 1)
        assert own.line == second.callers[-1].line + 1 == first.callers[-1].line + 2
        assert own.function == "test_a_line_is_told_from_others_and_by_its_callers"
    assert len(locations._found) < 100                          # not 3: other threads may ask, too


def test_functions_that_are_made_anew_have_their_own_lines():
    def made(count):
        space = {"user_location": user_location}
        exec(compile("\n" * count + "def f():\n    return user_location()", __file__, "exec"), space)
        return space["f"]
    assert [made(count)().line for count in range(50)] == [count + 2 for count in range(50)]
