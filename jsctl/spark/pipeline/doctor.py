"""Checks what a pipeline needs: Python, libraries, Java, disk, servers, rights, the cluster.

Every check gives a line with what was found and, if it is not good, what to do.
"""

import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from jsctl.api.errors import ApiError
from jsctl.client.addresses import shown_urls
from jsctl.errors import JsctlError
from jsctl.render.humanize import counted
from jsctl.settings import Settings
from jsctl.spark.java.find import find_java
from jsctl.spark.pipeline.plan import make_plan
from jsctl.spark.pipeline.specification.spec import Spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jsctl.client.manager import Manager

FREE_BYTES_MIN = 1 << 30
CONNECT_S = 3.0
DEFAULT_PORTS: Mapping[str, int] = {"spark": 7077, "sc": 15002, "k8s": 443}


class State(Enum):
    """How a check ended; only FAIL keeps a pipeline from running."""

    OK = "ok"
    NOTE = "note"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor."""

    name: str
    state: State
    found: str
    remedy: str = ""

    def document(self) -> dict[str, object]:
        """As JSON."""
        return {**asdict(self), "state": self.state.value.lower()}


@dataclass(frozen=True, slots=True)
class Package:
    """A library: the oldest version that does, and what it is for if it is optional."""

    name: str
    at_least: tuple[int, ...]
    extra: str
    needed_for: str = ""


PACKAGES = (
    Package("pyspark", (4, 2), "spark"),
    Package("pyarrow", (18,), "spark"),
    Package("matplotlib", (3, 8), "spark", "charts"),
    Package("fastavro", (1, 9), "formats", "decode.format: avro"),
    Package("protobuf", (5,), "formats", "decode.format: protobuf"),
    Package("deltalake", (1, 0), "delta", "sink.type: delta"),
)


def machine(environ: Mapping[str, str], needed: Sequence[str] = ()) -> Iterator[Check]:
    """Python, libraries and Java. `needed` names optional libraries that the pipeline uses."""
    yield Check("python", State.OK, f"{platform.python_version()} at {sys.executable}")
    for package in PACKAGES:
        yield _package(package, package.name in needed)
    try:
        java = find_java(environ)
    except JsctlError as error:
        yield Check("java", State.FAIL, str(error), "; ".join(error.hints))
    else:
        yield Check("java", State.OK, f"version {java.version} at {java.home} ({java.origin})")


def _package(package: Package, needed: bool) -> Check:
    optional = bool(package.needed_for) and not needed
    remedy = f"pip install 'jsctl[{package.extra}]'"
    bad = State.NOTE if optional else State.FAIL
    use = f" (for {package.needed_for})" if package.needed_for else ""
    try:
        found = version(package.name)
    except PackageNotFoundError:
        return Check(package.name, bad, f"not installed{use}", remedy)
    if tuple(int(part) for part in found.split(".")[:2] if part.isdigit()) < package.at_least:
        wanted = ".".join(map(str, package.at_least))
        return Check(package.name, bad, f"{found} is older than {wanted}{use}", remedy)
    return Check(package.name, State.OK, found)


def libraries_of(spec: Spec) -> tuple[str, ...]:
    """The optional libraries that a pipeline uses."""
    wanted = {
        "fastavro": spec.decode.format == "avro",
        "protobuf": spec.decode.format == "protobuf",
        "deltalake": spec.sink.type == "delta",
    }
    return tuple(name for name, used in wanted.items() if used)


async def servers(manager: "Manager", settings: Settings, spec: Spec | None) -> list[Check]:
    """JetStream, and the rights that reading needs."""
    found = [Check("server", State.OK, shown_urls(settings.urls))]
    try:
        account = await manager.account_info()
    except (ApiError, JsctlError) as error:
        hints = getattr(error, "hints", ()) or ("enable JetStream for this account",)
        return [*found, Check("jetstream", State.FAIL, str(error), "; ".join(hints))]
    streams = f"{counted(account.streams, 'stream')}, API level {account.api.level}"
    found.append(Check("jetstream", State.OK, streams))
    if spec is None:
        return found
    try:
        plan = await make_plan(spec, manager)
    except (ApiError, JsctlError) as error:
        hints = getattr(error, "hints", ())
        return [*found, Check("source", State.FAIL, str(error), "; ".join(hints))]
    waiting = f"{plan.source}, at most {plan.messages} messages wait"
    found.append(Check("source", State.OK, waiting))
    found += [Check("source", State.NOTE, warning) for warning in plan.warnings]
    if spec.source.stream and spec.source.mode != "direct":
        found.append(await _rights(manager, spec.source.stream))
    return found


async def _rights(manager: "Manager", stream: str) -> Check:
    """Whether a consumer can be made and removed, as readers do."""
    from jsctl.api.consumer import ConsumerConfig
    from jsctl.api.words import AckPolicy

    name = f"jsctl_doctor_{os.getpid()}"
    config = ConsumerConfig(
        name=name,
        ack_policy=AckPolicy.NONE,
        mem_storage=True,
        num_replicas=1,
        inactive_threshold=10_000_000_000,
    )
    try:
        await manager.create_consumer(stream, config)
        await manager.delete_consumer(stream, name)
    except (ApiError, JsctlError) as error:
        remedy = (
            "allow publishing to $JS.API.CONSUMER.CREATE.>, or read a work queue with mode: direct"
        )
        return Check("rights", State.FAIL, f"no consumer on {stream}: {error}", remedy)
    return Check("rights", State.OK, f"consumers can be made on {stream}")


def places(spec: Spec) -> Iterator[Check]:
    """Directories that are written: rights and free space."""
    wanted = {"checkpoint": spec.checkpoint, "sink": spec.sink.path}
    if spec.dead_letter is not None:
        wanted["dead letters"] = spec.dead_letter.path
    for name, path in wanted.items():
        if path:
            yield _place(name, Path(path))


def _place(name: str, path: Path) -> Check:
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if not os.access(there, os.W_OK) or not there.is_dir():
        return Check(name, State.FAIL, f"{there} cannot be written", "change its owner or the path")
    free = shutil.disk_usage(there).free
    text = f"{path}, {free / (1 << 30):,.1f} GiB free"
    if free < FREE_BYTES_MIN:
        return Check(name, State.FAIL, text, "make room: Spark needs some for its work, too")
    return Check(name, State.OK, text)


def master(url: str) -> Iterator[Check]:
    """Where Spark runs, and what does not work there."""
    if url.startswith("local"):
        yield Check("spark", State.OK, f"{url}: in this machine")
        return
    note = "files are written by executors: paths must be on storage that all of them share"
    yield Check("spark", State.NOTE, f"{url}: {note}")
    if url.startswith("yarn"):
        given = os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")
        if not given:
            yield Check("yarn", State.FAIL, "HADOOP_CONF_DIR is not set", "set it")
        return
    yield _reach(url)
    if url.startswith("sc://"):
        yield from _connect()


def _reach(url: str) -> Check:
    scheme, _, rest = url.removeprefix("k8s://").rpartition("://")
    kind = "k8s" if url.startswith("k8s://") else scheme
    host, _, port = rest.partition("/")[0].partition(";")[0].partition(":")
    number = int(port) if port.isdigit() else DEFAULT_PORTS.get(kind, 443)
    try:
        socket.create_connection((host, number), CONNECT_S).close()
    except OSError as error:
        return Check("master", State.FAIL, f"{host}:{number}: {error}", "is it started?")
    return Check("master", State.OK, f"{host}:{number} answers")


def _connect() -> Iterator[Check]:
    try:
        version("grpcio")
    except PackageNotFoundError:
        remedy = "pip install 'pyspark[connect]'"
        yield Check("connect", State.FAIL, "Spark Connect's client is missing", remedy)
    yield Check(
        "connect",
        State.NOTE,
        "`pipeline run` needs a classic session, its batches are written by the driver",
        "use spark:// or yarn; streaming reads of your own need jsctl on the server",
    )


def deep(start: "Callable[[], SparkSession]", settings: Settings, stream: str) -> Iterator[Check]:
    """Start Spark, run Python in a worker, and read a stream there."""
    from jsctl.spark.options import connection_options
    from jsctl.spark.pipeline.failures import explain

    try:
        from pyspark.sql.functions import udf

        spark = start()
        yield Check("session", State.OK, f"Spark {spark.version}")
        where = spark.range(1).select(udf(_worker, "string", useArrow=False)("id")).collect()[0][0]
        yield Check("worker", State.OK, where)
        if stream:
            options = {**connection_options(settings), "stream": stream}
            rows = spark.read.format("jetstream").options(**options).load().limit(1).count()
            yield Check(
                "reading", State.OK, f"{counted(rows, 'message')} of {stream} through a worker"
            )
    except Exception as error:  # noqa: BLE001 - Spark's errors have no common base
        failure = explain(error)
        yield Check("session", State.FAIL, str(failure), "; ".join(failure.hints))


def _worker(_row: int) -> str:
    """What Python a worker runs, and whether it has the package."""
    import pyarrow

    import jsctl

    python = f"Python {platform.python_version()}"
    return f"{python}, jsctl {jsctl.__version__}, pyarrow {pyarrow.__version__}"
