"""jsctl: the operator's tool for NATS JetStream, with its own clustered server."""

__version__ = "0.1.0"
