"""Nobody who looks at Spark sees a password: plans, progress, UI, event log, process list, logs."""

import json
import os
import urllib.request
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.wire import Address, Wire
from jsctl.testing import BrokerFactory
from tests.spark.conftest import KINDS
from tests.support.filling import LIMITS, plain
from tests.support.process_tree import descendants
from tests.support.spark_tables import Tables, failure, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PASSWORD = "pw-8vQ2nR7xKd"
CONFIG = f'authorization {{ user: ann, password: "{PASSWORD}" }}'
PAGES = (
    "jobs/", "stages/", "SQL/", "SQL/execution/?id=0", "environment/", "executors/",
    "StreamingQuery/",
)  # fmt: skip


def everything(spark: "SparkSession", files: Path) -> dict[str, str]:
    """All that a stranger can read, by where it is."""
    url = spark.sparkContext.uiWebUrl
    assert url is not None
    app = spark.sparkContext.applicationId
    found: dict[str, str] = {}
    executions = json.loads(fetched(f"{url}/api/v1/applications/{app}/sql?details=true"))
    assert executions, "the UI shows queries"
    found["sql"] = json.dumps(executions)
    for page in (*PAGES, f"SQL/execution/?id={executions[-1]['id']}"):
        found[page] = fetched(f"{url}/{page}")
    for path in (files / "events").rglob("*"):
        if path.is_file():
            found[str(path)] = path.read_text(errors="replace")
    found["log"] = (files / "log").read_text(errors="replace")
    for pid in descendants(os.getpid()):
        try:
            found[f"process {pid}"] = Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            continue
    return found


def fetched(url: str) -> str:
    """A page."""
    with urllib.request.urlopen(url, timeout=20) as answer:
        return str(answer.read().decode())


def counted(tables: Tables, given: dict[str, str]) -> int:
    """The rows of a read."""
    return tables.read(**given).count()


def test_secrets_are_nowhere(
    spark: "SparkSession",
    spark_files: Path,
    jsctl_broker: BrokerFactory,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    broker = jsctl_broker("-js", server=KINDS["nats-server"], config=CONFIG)
    inline = broker.url.replace("//", f"//ann:{PASSWORD}@")
    wire = Wire(Address("127.0.0.1", broker.port, "ann", PASSWORD))
    for name in ("S", "D"):
        wire.api(f"STREAM.CREATE.{name}", {**LIMITS, "name": name, "subjects": [f"{name}.>"]})
    for subject, _, payload in plain(20, "S"):
        wire.request(subject, payload)
    wire.close()
    texts: list[str] = []
    for url, options in ((broker.url, {"user": "ann", "password": PASSWORD}), (inline, {})):
        tables = Tables(spark, url)
        frame = tables.read("S", **options)
        assert frame.count() == 20
        frame.explain(True)
        tables.write(frame.select("data"), subject="D.x", **options)
        followed = tables.follow("S", **options).select("data")
        query = run(tables.sink(followed, tmp_path / str(len(texts)), subject="D.y", **options))
        query.explain(True)
        texts += [str(query.lastProgress), str(query.status), repr(frame)]
        for bad in ({"stream": "NOPE"}, {"sream": "S"}, {"minPartitions": "x"}):
            given = {"stream": "S", **options, **bad}
            error = failure(partial(counted, tables, given))
            texts.append(f"{error} {error.hints}")
    wrong = {"user": "ann", "password": f"{PASSWORD}-wrong"}
    error = failure(lambda: Tables(spark, broker.url).read("S", **wrong).count())
    assert "refuses the credentials" in str(error)
    printed = capsys.readouterr()
    found = everything(spark, spark_files)
    found |= {"printed": printed.out + printed.err, "texts": "\n".join([*texts, str(error)])}
    assert "jetstream" in found["printed"]
    assert any("process" in name for name in found)
    assert any("events" in name and "jetstream" in text for name, text in found.items())
    assert [name for name, text in found.items() if PASSWORD in text] == []
