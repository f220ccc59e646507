"""Shadow mode: calls also run eagerly, and the results are compared."""
