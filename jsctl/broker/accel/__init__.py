"""Loops that exist twice: in Python, and compiled, with one contract (decision 7 and 20)."""
