"""One function's programs: look-up, misses, fall-backs, the way to native code."""
