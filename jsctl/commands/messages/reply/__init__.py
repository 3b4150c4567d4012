"""`jsctl reply`."""
