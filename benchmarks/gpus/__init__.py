"""Training steps and inference on one GPU, in each framework; a module is imported in that framework's environment only."""
