"""Spark's own processes log in as the options say: contexts, TLS, domains and prefixes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jsctl.errors import Unreachable
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.options import source_options
from jsctl.testing import Broker, BrokerFactory
from tests.spark.conftest import KINDS
from tests.spark.test_login import certificates as certificates  # a fixture
from tests.support.filling import LIMITS, Filler, plain
from tests.support.spark_tables import Tables, failure, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Start = Callable[[str], Broker]
PASSWORD = "pw-of-ann"


@pytest.fixture(params=list(KINDS))
def start(request: pytest.FixtureRequest, jsctl_broker: BrokerFactory) -> Start:
    """Starts a server with a configuration."""
    kind = KINDS[str(request.param)]
    return lambda config: jsctl_broker("-js", server=kind, config=config)


def test_a_context_with_password_and_tls(
    spark: "SparkSession", start: Start, certificates: Path, tmp_path: Path
) -> None:
    files = {name: str(certificates / f"{name}.pem") for name in ("ca", "cert", "key")}
    tls = f'tls {{ cert_file: "{files["cert"]}", key_file: "{files["key"]}" }}'
    broker = start(f'{tls}\nauthorization {{ user: ann, password: "{PASSWORD}" }}')
    context = tmp_path / "prod.json"
    url = broker.url.replace("nats:", "tls:")
    known = {"url": url, "user": "ann", "password": PASSWORD, "ca": files["ca"]}
    context.write_text(json.dumps(known))
    given = source_options({"context": str(context), "stream": "S"})
    with JetStream(given.connection) as js:
        for name in ("S", "D"):
            js.ask("stream_create", name, body={**LIMITS, "name": name, "subjects": [f"{name}.>"]})
        for subject, _, payload in plain(20, "S"):
            js.publish(subject, {}, payload)
    reader = spark.read.format("jetstream").options(context=str(context), stream="S")
    rows = reader.load()
    assert rows.count() == 20
    writer = rows.select("data").write.format("jetstream").mode("append")
    writer.options(context=str(context), subject="D.x").save()
    with JetStream(given.connection) as js:
        assert js.info("D").state.messages == 20
    context.write_text(json.dumps({**known, "ca": ""}))
    error = failure(lambda: reader.load().count())
    assert "TLS fails" in str(error)
    assert "tlsca" in error.hints[0]


def test_domains_and_prefixes(
    spark: "SparkSession", jsctl_broker: BrokerFactory, tmp_path: Path
) -> None:
    config = "jetstream { domain: hub }"
    broker = jsctl_broker("-js", server=KINDS["nats-server"], config=config)
    with Filler(broker) as filler:
        filler.stream("SRC", allow_direct=True)
        filler.stream("DST", "DST.>")
        filler.publish(plain(30, "src"))
        tables = Tables(spark, broker.url)
        for number, way in enumerate(({"domain": "hub"}, {"apiPrefix": "$JS.hub.API"})):
            for mode in ("consumer", "direct"):
                assert tables.read("SRC", readMode=mode, **way).count() == 30
            followed = tables.follow("SRC", **way).select("data")
            run(tables.sink(followed, tmp_path / str(number), subject="DST.x", **way))
            assert filler.state("DST")["messages"] == 30 * (number + 1)
    nobody = failure(lambda: tables.read("SRC", domain="moon", outageTimeout="500ms").count())
    assert isinstance(nobody, Unreachable)
    assert "$JS.moon.API" in str(nobody)
