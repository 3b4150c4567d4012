"""Raft as a pure state machine; see `core` for how to drive it. Knows nothing of the rest."""
