"""Lets Spark find the format "jetstream" without registration.

Spark imports every top-level package whose name starts with `pyspark_` when it looks for a data
source, so this one is light and never fails while it is imported.
"""

try:
    from jsctl.spark.source import JetStreamDataSource as DefaultSource
except ImportError:  # without pyarrow there is no such format; Spark then says so
    pass
else:
    __all__ = ["DefaultSource"]
