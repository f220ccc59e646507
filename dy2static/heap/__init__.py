"""The user's objects during a capture: shadows of them, where they came from, and what becomes of them."""
