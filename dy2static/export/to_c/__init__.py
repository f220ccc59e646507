"""Programs as plain C: one source, one header, and the arrays of the model."""
