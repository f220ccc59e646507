"""Networks that were measured before anybody had looked at how they run."""
