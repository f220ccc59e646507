"""Clean-up passes: simplification, common subexpressions, dead code."""
