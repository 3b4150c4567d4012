"""Raft groups on one log: their durability, their state on disk, and its transfer to others."""
