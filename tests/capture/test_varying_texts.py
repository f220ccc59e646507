"""Texts that differ from call to call: inputs of one program where nothing depends on them."""
import copy

import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static


class Holder:
    def __init__(self):
        self.name, self.log = "start", []


def printed(x, tag, h):
    print(tag, f"<{tag}>", f"{tag!r:>12}|{tag:_<9}", "[" + tag + "]", "%s!" % tag, "%s %s" % (tag, 2), "{}?{k}".format(tag, k=tag),
          tag.upper(), ",".join([tag, "b"]), str(tag), repr(tag))
    return F.relu(x)


def returned(x, tag, h):
    return F.relu(x), tag, f"{tag}/loss", tag + "q", "q" + tag, tag * 2, tag.title(), (tag, [tag], {"k": tag})


def parts(x, tag, h):
    return x * len(tag), tag[0], tag[-1:], tag.encode(), tag.encode().decode(), int(tag[1:]) * x, tag.find("b"), tag.replace("b", "c")


def questions(x, tag, h):
    return (F.relu(x), tag.startswith("b"), "b" in tag, tag in "-b0b1b2b3b4b5b6b7b8b9", tag == "q", tag != "q", tag in ("q", "p"),
            tag.isalnum(), isinstance(tag, str), type(tag) is str, tag is None, tag or "none", bool(tag), tag < "c")


def stored(x, tag, h):
    h.name = f"{h.name}{tag}"[-6:]
    h.log.append({"tag": tag, f"{tag}/n": [tag]})
    return F.relu(x)


def attribute(x, tag, h):
    h.name, name = tag, h.name
    print(name)
    return F.relu(x) + len(name)


def keys(x, tag, h):
    return {f"{tag}/loss": F.relu(x), "b": 2, tag: {tag: x}}


def reported(x, tag, h):
    chainer.report({f"{tag}/loss": F.sum(x), "n": 2})
    return F.relu(x)


def in_a_branch(x, tag, h):
    if F.sum(x).array > 1:
        h.name = tag
    if F.sum(x).array > 100:
        raise ValueError(f"bad {tag}")
    return F.relu(x)


def made_longer(x, tag, h):
    for i in range(3):
        tag = tag + str(i)
    h.name = tag
    return x * 2


def of_numbers(x, tag, h):
    n = int(tag[1:])
    print(f"{n:03d} {n + 1} {n!r}", "%d" % n, str(n), "{}".format(n))
    h.name = f"step {n}"
    return x * n


def copied(x, tag, h):
    number = len(tag) + int(tag[1:])
    return copy.deepcopy({"a": [tag, number]}), copy.copy(number), F.relu(x)


def specs(x, tag, h):
    width = int(tag[1:]) + 3
    return f"{x.shape[0]:{width}d}|{'ab':^{width}}|{width / 3:.{x.ndim}f}", format("x", f"<{width}"), F.relu(x)


#: Functions that are captured once for a text, and once for all others.
FREE = [printed, returned, parts, questions, stored, attribute, keys, reported, in_a_branch, made_longer, of_numbers, copied, specs]


def looked_up(x, tag, h):
    return x * {"b1": 2.0}.get(tag, 1.0)


def looped_over(x, tag, h):
    for letter in tag:
        x = x + (letter == "1")
    return x


def through_a_class(x, tag, h):
    n = int(tag[1:])
    return x * int.bit_length(n), int.__add__(n, 1), float.is_integer(n * 0.5)


def named(x, tag, h):
    setattr(h, tag, 3)
    return x * 2


def split(x, tag, h):
    return tag.split("b"), tag.partition("b"), x * 2


def beside_lists(x, tag, h):
    return "{} {}".format(tag, ["a", 1]), "{0[0]} {1!r} {tag}".format([2], tag.split("b"), tag=tag), F.relu(x)


def for_code_that_is_not_converted(x, tag, h):
    return list(map(str.upper, [tag, "b"])), F.relu(x)


def read_keys(x, tag, h):
    d = {tag: x * 2, "b2": x}
    return len(d), "b2" in d, d[tag], sorted(d), {**d}, list(d), d == {"b1": 3}, type(d) is dict, d.get("b4")


def changed_keys(x, tag, h):
    d = {tag: x * 2}
    d["q"] = tag
    return d


def of_settings(x, tag, h):
    with chainer.using_config("tag", tag):
        print(chainer.config.tag)
    return F.relu(x)


def equal_to_some(x, tag, h):
    return x * 2 if tag == "b3" else x


#: Functions that need to know something of the text.
NEEDED = [looked_up, looped_over, named, split, beside_lists, for_code_that_is_not_converted, read_keys, changed_keys, of_settings, equal_to_some,
          through_a_class]


def plain(item):
    """What can be compared, with the types."""
    if isinstance(item, chainer.Variable):
        return "V", item.array.tolist()
    if type(item) is np.ndarray:
        return "A", item.tolist()
    if type(item) is dict:
        return [(plain(key), plain(part)) for key, part in item.items()]
    if type(item) in (tuple, list):
        return type(item), [plain(part) for part in item]
    return type(item), item


def run(function, texts, capsys):
    """All that can be seen of calls with these texts."""
    holder, seen, reporter = Holder(), [], chainer.Reporter()
    for text in texts:
        with reporter:
            result = function(np.ones(3, "f"), text, holder)
        seen.append((plain(result), plain(vars(holder)), capsys.readouterr().out, plain(reporter.observation)))
    return seen


TEXTS = [f"b{k}" for k in range(7)]


@pytest.mark.parametrize("function", FREE, ids=lambda f: f.__name__)
def test_texts_are_inputs(function, capsys):
    static = to_static(function, strict=True)
    assert run(static, TEXTS, capsys) == run(function, TEXTS, capsys)
    assert static.cache_info().captures <= 3 and static.cache_info().programs <= 3


@pytest.mark.parametrize("function", NEEDED, ids=lambda f: f.__name__)
def test_texts_that_are_needed_are_fixed(function, capsys):
    static = to_static(function, strict=True)
    assert run(static, TEXTS * 2, capsys) == run(function, TEXTS * 2, capsys)
    assert static.cache_info().captures <= 8 and static.cache_info().fallbacks == 0


def test_equal_keys_of_later_calls(capsys):
    """Whether a text is equal to another key is for the run to see."""
    static = to_static(keys, strict=True)
    texts = ["b0", "b1", "b", "b2", "b/loss"]
    assert run(static, texts, capsys) == run(keys, texts, capsys)
    assert static.cache_info().captures == 2


def test_texts_and_none(capsys):
    def run_(x, tag, h):
        return x if tag is None else (F.relu(x), f"{tag}!")
    static, texts = to_static(run_, strict=True), [None, "a", None, "b", "c", None, "d"]
    assert run(static, texts, capsys) == run(run_, texts, capsys)
    assert static.cache_info().captures <= 4


@pytest.mark.parametrize("place", ["a list", "a dict", "a tuple", "a keyword", "bytes", "a global of a closure"])
def test_places_of_texts(place):
    kept = {"tag": ""}

    def run_(x, given=None, **more):
        text = given[0] if place in ("a list", "a tuple") else given["tag"] if place == "a dict" else \
            more["tag"] if place == "a keyword" else given if place == "bytes" else kept["tag"]
        return F.relu(x), text, text + text[:1]
    static = to_static(run_, strict=True)
    for k in range(6):
        text = kept["tag"] = f"t{k}"
        args, kwargs = {"a list": (([text],), {}), "a dict": (({"tag": text},), {}), "a tuple": (((text,),), {}),
                        "a keyword": ((), {"tag": text}), "bytes": ((text.encode(),), {})}.get(place, ((), {}))
        assert static(np.ones(2, "f"), *args, **kwargs)[1:] == run_(np.ones(2, "f"), *args, **kwargs)[1:]
    assert static.cache_info().captures == 2


def test_errors_of_the_user():
    """What fails for one text fails as in eager, and goes on for others."""
    static = to_static(lambda x, tag: (F.relu(x), int(tag), tag[3]))
    for text in ("1234", "2345", "3456", "bad!", "4567", "12", "5678"):
        try:
            wanted = int(text), text[3]
        except (ValueError, IndexError) as error:
            with pytest.raises(type(error), match=str(error)[:20].replace("(", ".")):
                static(np.ones(2, "f"), text)
        else:
            assert static(np.ones(2, "f"), text)[1:] == wanted
    assert static.cache_info().captures == 2


def test_a_long_expression_is_fixed():
    def run_(x, tag):
        for _ in range(60):
            tag = tag + "abcdef" + tag[:1]
        return x * 2, tag
    static = to_static(run_, strict=True)
    for text in ("a", "b", "c", "a"):
        assert static(np.ones(2, "f"), text)[1] == run_(np.ones(2, "f"), text)[1]


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_a_text_beside_a_step(backend):
    """A training step that logs: one program for all texts."""
    lines = []

    class Model(chainer.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.l = chainer.links.Linear(3, 2, initialW=np.ones((2, 3), "f"))

        def forward(self, x, tag):
            loss = F.sum(F.tanh(self.l(x)))
            chainer.report({f"{tag}/loss": loss}, self)
            lines.append(f"{tag}: ok")
            return loss
    model, found = Model(), {}
    static = to_static(model.forward, backend=backend, strict=True)
    for k in range(6):
        x, reporter = np.full((2, 3), k, "f"), chainer.Reporter()
        reporter.add_observer("main", model)
        for call in (static, model.forward):
            with reporter:
                loss = call(x, f"batch{k}")
            model.cleargrads(), loss.backward()
            found[call] = float(loss.array), model.l.W.grad.copy(), dict(reporter.observation), lines.pop()
        (a, g, seen, line), (b, h, wanted, other) = found.values()
        np.testing.assert_allclose(a, b, rtol=1e-5), np.testing.assert_allclose(g, h, rtol=1e-5)
        assert list(seen) == list(wanted) == [f"main/batch{k}/loss"] and line == other and not lines
        found.clear()
    assert static.cache_info().captures == 2


def test_a_child_of_a_chain_is_named_by_a_text_of_the_stage():
    """Stages of a network that grows: the name is computed from a number that changes from call to call."""
    model = chainer.Chain(**{f"out{i}": chainer.links.Linear(3, 2) for i in range(3)})

    def at_stage(x, stage):
        return F.tanh(model["out%d" % (stage // 2)](x))
    compiled, x = to_static(at_stage, strict=True), np.ones((2, 3), "f")
    for stage in (0.0, 0.4, 0.8, 2.4, 4.4, 3.2):
        np.testing.assert_allclose(compiled(x, stage).array, at_stage(x, stage).array, rtol=1e-6)
    with pytest.raises(AttributeError):
        compiled(x, 6.5)
