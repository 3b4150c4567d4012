"""One small job in a process of its own: `python -m benchmarks.spark_small URL STREAM DIRECTORY`.

Reads a stream into Parquet files; what it takes is mostly the start of Java and Spark.
"""

import sys
from pathlib import Path

from jsctl.spark.runtime import start_session, stop_session


def main() -> None:
    """Read and write."""
    url, stream, place = sys.argv[1:]
    directory = Path(place)
    spark = start_session("small", master="local[2]", log_file=directory / "log", short=True)
    rows = spark.read.format("jetstream").options(servers=url, stream=stream).load()
    rows.write.option("compression", "zstd").parquet(str(directory / "out"))
    stop_session(spark)


if __name__ == "__main__":
    main()
