"""Pieces of screens; each owns its state and gets plain data."""
