"""Keys of the caller's dicts that a call looks at after it has written items, which a call that may fail or a branch has stored or undone."""
import numpy as np
import pytest

from dy2static import to_static


class Holder:
    """An object whose attributes are looked at as a dict."""


def new_key(d, x):
    d["new"] = x.copy()
    scale = 0.5 / float(x.sum())                        # may fail: what was written before is stored
    return "new" in d, list(d), len(d), scale


def key_over_another(d, x):
    d["q"] = x * 2
    scale = 0.5 / float(x.sum())
    return list(d), scale


def key_removed_and_set_again(d, x):
    d["p"] = 4.0
    scale = 0.5 / float(x.sum())
    d.pop("p")
    d["new"] = d["p"] = scale / float(x.sum())
    return list(d), d.popitem()


def written_on_one_side(d, x):
    d.get("q")
    if float(x.sum()) > 2:
        d.update(q=5.0)
    else:
        d["seen"] = list(d)
    d["new"] = 1.0
    return list(d)


def listed_on_one_path(d, x):
    d["q"] = x * 2
    scale = 0.5 / float(x.sum())
    return (list(d) if float(x.sum()) > 2 else d.get("r")), list(d), scale


def removed_then_listed_on_one_path(d, x):
    d["q"] = 4.0
    scale = 0.5 / float(x.sum())
    del d["q"]
    d["new"] = scale
    return (list(d) if float(x.sum()) > 2 else "q" in d), d.setdefault("q", 6.0), list(d)


def attributes(d, x):
    holder = d["holder"]
    holder.q = x * 2
    scale = 0.5 / float(x.sum())
    holder.new = scale
    return (list(vars(holder)) if float(x.sum()) > 2 else hasattr(holder, "r")), list(vars(holder))


def held():
    holder = Holder()
    holder.p, holder.q, holder.r = 1.0, 2.0, 3.0
    return holder


@pytest.mark.parametrize("function", [new_key, key_over_another, key_removed_and_set_again, written_on_one_side, listed_on_one_path,
                                      removed_then_listed_on_one_path, attributes])
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_keys_are_those_of_an_eager_call(function, backend):
    compiled = to_static(function, backend=backend)
    for sign in (1, -1):
        results = []
        for f in (function, compiled):
            d = {"p": 1.0, "q": 2.0, "r": 3.0, "holder": held()}
            result = f(d, np.full(3, sign, "f"))
            results.append(repr((result, {**d, "holder": vars(d["holder"])})))
        assert results[0] == results[1]
    assert compiled.cache_info().captures and not compiled.cache_info().fallbacks
