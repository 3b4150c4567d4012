"""jsctl: the operator's tool for NATS JetStream, with its own clustered server."""

__version__ = "0.1.0"

INTERRUPTED = 130
"""The status of a process that Ctrl-C ended: 128 and the number of SIGINT."""

OWNER = "JSCTL_OWNER"
"""A variable for `jsctl broker` with the number of a pipe: it ends with who has the other end."""
