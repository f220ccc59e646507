"""What generated code calls and what a finished program needs; knows nothing of how programs are made."""
