"""The CUDA backend: loop nests as kernels, and what launches them."""
