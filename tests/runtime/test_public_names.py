"""Names of libraries that somebody has replaced are found whenever that happens."""
import math
import random
import types

import pytest

from dy2static.heap import public_names

CHANGES = {
    "replaced": lambda space: space.update(sin=math.cos),
    "deleted": lambda space: space.pop("sin"),
    "added": lambda space: space.update(more=math.cos),
    "renamed": lambda space: space.update(more=space.pop("sin")),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_changes_of_a_module_are_seen_after_looks_that_found_none(kind):
    module = types.ModuleType("numbers_of_ours")
    vars(module).update(sin=math.sin, cos=math.cos, pi=math.pi)
    offer = public_names._Offer(module)
    assert offer.changes() == offer.changes() == []
    before = dict(vars(module))
    CHANGES[kind](vars(module))
    for _ in range(2):
        assert sorted(offer.changes()) == {"added": ["more"], "renamed": ["more", "sin"]}.get(kind, ["sin"])
    vars(module).pop("more", None)
    vars(module).update(before)
    assert offer.changes() == []


def test_a_replaced_name_is_told(monkeypatch):
    assert list(public_names.replaced_names()) == []
    monkeypatch.setattr(random, "gauss", lambda mu, sigma: mu)
    monkeypatch.setattr(random, "_pi", abs)                     # private names are the module's own business
    assert list(public_names.replaced_names()) == [(random, "gauss")]
