"""Shadow mode: calls that run eagerly, too, and are compared."""
