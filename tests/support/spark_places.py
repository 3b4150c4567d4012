"""A program of its own: reads, copies and counts on another kind of session.

python -m tests.support.spark_places URL SOURCE TARGET DIRECTORY MASTER
"""

import sys
from pathlib import Path
from typing import Any

from jsctl.spark.runtime import start_session


def main() -> None:
    """Print what was read, then what a streaming query and a batch write copied."""
    url, source, target, place, master = sys.argv[1:]
    directory = Path(place)
    spark = start_session("places", master=master, log_file=directory / "log", short=True)
    if not master.startswith("sc://"):
        java: Any = spark.sparkContext._jvm
        print("java", java.System.getProperty("java.home"), flush=True)
    reader = spark.read.format("jetstream").options(servers=url, stream=source)
    rows = reader.option("minPartitions", 4).load()
    print("read", rows.count(), rows.select("seq").distinct().count(), flush=True)
    batch = rows.select("data").write.format("jetstream").mode("append")
    batch.options(servers=url, subject=f"{target}.batch").save()
    print("written", flush=True)
    stream = spark.readStream.format("jetstream").options(servers=url, stream=source).load()
    writer = stream.select("data").writeStream.format("jetstream")
    writer = writer.options(servers=url, subject=f"{target}.stream")
    writer = writer.option("checkpointLocation", str(directory / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    print("copied", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
