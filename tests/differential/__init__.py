"""Requests that nobody thought of, drawn from seeds and asked of nats-server and of the broker."""
