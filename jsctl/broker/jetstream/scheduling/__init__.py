"""Messages that a stream publishes by itself when their time has come (NATS ADR-51)."""
