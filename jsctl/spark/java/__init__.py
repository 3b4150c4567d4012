"""The Java side of Spark: which runtime, how it starts, what it keeps between two starts."""
