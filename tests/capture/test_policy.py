"""Policies as tables: the order of their lines, and what the documentation says of them."""
from pathlib import Path

from dy2static.capture import builtin_calls, call_rules
from dy2static.capture.policy import Rule, decided, itself, table

PAGE = Path(__file__).parents[2] / "docs" / "architecture" / "capture.md"


def test_the_documentation_shows_the_table():
    assert "\n".join(table(call_rules.RULES)) in PAGE.read_text(encoding="utf-8")


def test_the_first_rule_decides():
    rules = (
        Rule("small numbers", "as they are", lambda calls, item: item < 10, itself),
        Rule("numbers", "halved", lambda calls, item: True, lambda calls, item: item // 2))
    assert [decided(rules, None, item).callee(None, item) for item in (4, 9, 10, 30)] == [4, 9, 5, 15]
    assert table(rules)[0] == "| small numbers | as they are |"


def test_the_last_rules_are_for_everything():
    for rules in (call_rules.RULES, builtin_calls.RULES):
        assert rules[-1].applies(None, object())
