"""Decentralised authentication: keys, JWTs, and the store of operators, accounts and users.

The store is that of `nsc` and of the `nats` tool, file by file, so that all three can be used in
turn on one. Nothing here asks a person or a server.
"""
