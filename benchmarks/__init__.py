"""Side-by-side measurements against nats-server; run with `python -m benchmarks`."""
