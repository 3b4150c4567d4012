"""Accounts: who a connection is, and the limits of JetStream."""
