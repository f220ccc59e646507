"""Functions given as texts, parsed as the compiler parses those that it converts."""

import ast

from dy2static.pyast import parser


def parse_text(text, name="f", file="<text>"):
    """The function ``name`` that ``text`` defines at its top level, as ``parser.parse`` would give it."""
    found = next(node for node in ast.parse(text, file).body if getattr(node, "name", None) == name)
    tree = parser.read_definition(found, file, name, tuple(text.splitlines()))
    tree.is_lambda, tree.class_name, tree.postponed = False, None, False
    return tree
