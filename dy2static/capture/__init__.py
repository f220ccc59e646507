"""The symbolic run: what is called when, what becomes a node, an effect or a result."""
