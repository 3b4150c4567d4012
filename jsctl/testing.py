"""pytest plugin: a broker, or a cluster of brokers, inside a test."""
