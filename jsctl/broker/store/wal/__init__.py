"""The write-ahead log that all raft groups of a server share."""
