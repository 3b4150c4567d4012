"""Raft as a pure state machine; see `core` for how to drive it. Imports nothing of jsctl."""
