"""The text of a device function while it is written: types, indices, operands, kernels."""
