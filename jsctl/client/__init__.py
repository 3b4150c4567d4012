"""How jsctl talks to a server; the only place that imports the NATS client library."""
