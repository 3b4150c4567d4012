"""Backups of streams on disk: the directories that `nats backup` and `jsctl backup` write.

`backup.json` has configuration and state, `stream.arc.s2` the archive of a 2.15 server: its state,
its consumers, its messages in order, and an end. Nothing here asks a person or a server.
"""
