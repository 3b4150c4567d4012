"""One server of each kind and one Spark session for all tests; Java starts once."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jsctl.spark.java.class_archive import SWITCH
from jsctl.testing import Broker, RealServer
from tests.support.filling import Filler
from tests.support.kept import kept
from tests.support.sharing import together
from tests.support.spark_tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK_JAVA = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -Xms512m -Xmn320m"
"""Spark's own classes are taken as they are, and there is room for what a start leaves behind: a
fifth less of what a start and a first query take."""
AS_IT_STANDS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Plans are interpreted as they stand. For each of a thousand plans of few rows Java would be
written, compiled and warmed up, which takes more than a quarter of all that the session does.
Sessions that tests start for themselves, and those of commands, do as Spark does by default."""
KINDS: dict[str, type[Broker]] = {"nats-server": RealServer, "jsctl": Broker}
_NUMBERS = count(1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in which the server hardly matters run on nats-server; on the other in long runs."""
    for item in items:
        file = item.nodeid.partition("::")[0]
        if "spark" in getattr(item, "fixturenames", ()) and together(item.nodeid) == file:
            raise pytest.UsageError(f"{file} uses the session: it belongs into SPARK_SESSION")
        call = getattr(item, "callspec", None)
        if call is None or item.get_closest_marker("one_server") is None:
            continue
        if "jsctl" in map(call.params.get, ("broker", "start", "source", "kind")):
            item.add_marker("spark_long")


@pytest.fixture(scope="session")
def brokers() -> Iterator[Callable[[str], Broker]]:
    """One server of each kind."""
    yield from kept(lambda kind: KINDS[kind]("-js", name="one"))


@pytest.fixture(scope="session", params=list(KINDS))
def broker(request: pytest.FixtureRequest, brokers: Callable[[str], Broker]) -> Broker:
    """A server with JetStream, shared by all tests: names must be fresh."""
    return brokers(str(request.param))


@pytest.fixture(scope="session", autouse=True)
def _quick_java() -> Iterator[None]:
    """Starts of Java are quick, and leave nothing behind in the cache of who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCH, "off")
        patch.setenv("JDK_JAVA_OPTIONS", QUICK_JAVA)
        yield


@pytest.fixture
def filler(broker: Broker) -> Iterator[Filler]:
    """Makes and fills streams."""
    with Filler(broker) as made:
        yield made


@pytest.fixture
def fresh() -> str:
    """A name that no other test uses."""
    return f"T{next(_NUMBERS)}"


@pytest.fixture(scope="session")
def spark_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session writes: `log`, `events/`."""
    directory = tmp_path_factory.mktemp("spark")
    (directory / "events").mkdir()
    return directory


@pytest.fixture(scope="session")
def spark(spark_files: Path) -> "Iterator[SparkSession]":
    """The session; with event log and UI, so that a test can look for secrets there."""
    from jsctl.spark.runtime import start_session, stop_session

    session = start_session(
        "tests",
        master="local[2]",
        log_file=spark_files / "log",
        short=True,
        conf={
            "spark.ui.enabled": "true",
            "spark.ui.port": "0",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": (spark_files / "events").as_uri(),
            "spark.sql.shuffle.partitions": "2",
            **AS_IT_STANDS,
            "spark.sql.streaming.minBatchesToRetain": "5",
        },
    )
    yield session
    stop_session(session)


@pytest.fixture
def tables(spark: "SparkSession", broker: Broker) -> Tables:
    """Reads and writes of the session on the server."""
    return Tables(spark, broker.url)
