"""The constructs of the language as text: every one inside every other, and programs that mix several."""
