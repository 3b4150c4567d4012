"""Hostile input for every port and every format: `python -m tests.fuzz --help`."""
