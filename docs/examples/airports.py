"""Airports of the world: stream -> Parquet -> DuckDB and pyarrow, then reports with pictures.

    python docs/examples/airports.py [DIRECTORY]

Starts a broker of its own, stores some 28,000 airports in it, and runs the commands that it
prints. What it writes lies in DIRECTORY, `airports-example` by default.
"""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import duckdb
import pyarrow.dataset as dataset

from jsctl.cli import main as run
from jsctl.demo import STREAM, SUBJECT_ROOT, airports, publish
from jsctl.testing import Broker

HERE = Path(__file__).resolve().parent


def jsctl(*words: str) -> None:
    """Print a command and run it, as a shell would."""
    print(f"\n$ jsctl {' '.join(words)}", flush=True)
    status = run(words)
    if status:
        sys.exit(f"jsctl {words[1]} ended with status {status}")


def pipeline(directory: Path) -> None:
    """From the stream to Parquet, and on to two readers that know nothing of Spark."""
    jsctl("pipeline", "validate", "airports.yaml")
    jsctl("pipeline", "plan", "airports.yaml")
    jsctl("pipeline", "run", "airports.yaml")
    jsctl("pipeline", "status", "airports.yaml")
    print("\n--- DuckDB, by the manifest: the highest airports")
    connection = duckdb.connect()
    place = directory / "airports"
    connection.execute(
        f"SET VARIABLE files = (SELECT ['{place}/' || file FOR file IN files] "
        f"FROM read_json('{place}/_manifest.json'))"
    )
    highest = connection.execute(
        "SELECT icao, name, country, elevation FROM read_parquet(getvariable('files')) "
        "ORDER BY elevation DESC LIMIT 3"
    )
    for row in highest.fetchall():
        print(*row, sep="  ")
    print("\n--- pyarrow, by the directories: airports by region")
    table = dataset.dataset(directory / "airports", partitioning="hive").to_table(["region"])
    counts = table.group_by("region").aggregate([("region", "count")])
    for row in counts.sort_by([("region_count", "descending")]).slice(0, 3).to_pylist():
        print(row["region"], row["region_count"], sep="  ")
    print("in all", table.num_rows)


def reports() -> None:
    """An archive, and reports of it."""
    jsctl("pipeline", "export", STREAM, "archive")
    pictures = ("--charts", "charts", "--chart-format", "png", "--html", "report.html")
    source = ("--archive", "archive", "--top", "10")
    jsctl("pipeline", "report", "all", *source, *pictures)


def main() -> None:
    """The whole example."""
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else "airports-example").resolve()
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "airports.yaml", directory)
    os.chdir(directory)
    with Broker("-js", name="example") as broker:
        os.environ |= {"NATS_URL": broker.url, "XDG_STATE_HOME": str(directory / "state")}
        jsctl("stream", "add", STREAM, "--subjects", f"{SUBJECT_ROOT}.>",
              "--defaults")  # fmt: skip
        print(f"\nStored {asyncio.run(publish([broker.url], airports())):,} airports")
        pipeline(directory)
        reports()
    print(f"\nLook at {directory}/report.html and {directory}/charts")


if __name__ == "__main__":
    main()
