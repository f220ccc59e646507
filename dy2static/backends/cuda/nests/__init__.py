"""Loop nests as kernels: one file for each form, and what the forms share."""
