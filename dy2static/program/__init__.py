"""A finished program made of its record: the entry around the forward function, and its backward programs."""
