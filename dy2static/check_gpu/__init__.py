"""``python -m dy2static.check_gpu``: what the CUDA backend makes, checked on a GPU, or on an emulator of one."""
