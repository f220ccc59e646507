"""What a region is on a device, as data."""
