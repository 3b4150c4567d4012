"""Requests of the JetStream API on their way: captured, decided by a leader, answered."""
