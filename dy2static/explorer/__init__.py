"""One page about one call of a compiled function: see `explorer.page`."""
