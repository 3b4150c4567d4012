"""The pytest plugin: handles for real processes, ports that stay, fixtures that clean up."""

import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from jsctl.testing import (
    Broker,
    BrokerFactory,
    BrokerFailed,
    Cluster,
    ClusterFactory,
    RealServer,
    ReservedPort,
    _brokers,
)

pytestmark = pytest.mark.processes

ECHO = str(Path(__file__).parent / "broker/server/echo_node.py")


class EchoBroker(Broker):
    """A broker that starts without a store."""

    program = (sys.executable, ECHO)


def connects(broker: Broker) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", broker.port), 5) as peer:
            return peer.recv(5) == b"INFO "
    except OSError:
        return False


@pytest.mark.parametrize("kind", [EchoBroker, RealServer])
def test_one_handle_for_both_servers(jsctl_broker: BrokerFactory, kind: type[Broker]) -> None:
    broker = jsctl_broker("-js", server=kind, name="A", config="max_payload: 1MB")
    assert broker.url == f"nats://127.0.0.1:{broker.port}"
    assert connects(broker)
    assert broker.monitor("/varz")
    url = broker.url
    broker.restart()
    broker.restart(kill=True)
    assert (broker.url, connects(broker)) == (url, True)
    assert broker.logs.count("Server is ready") == 3
    assert broker.store_dir.is_dir()
    broker.pause()
    broker.resume()
    assert broker.stop() in (0, 1)
    assert not broker.running
    assert not connects(broker)


def test_a_broker_that_cannot_start_fails_at_once_and_shows_its_log() -> None:
    broker = EchoBroker("--nope")
    with pytest.raises(BrokerFailed) as caught:
        broker.start()
    broker.close()
    assert "ended before it was ready" in str(caught.value)
    assert "flag provided but not defined: -nope" in str(caught.value)


def test_a_broker_that_was_stopped_by_others_is_seen(jsctl_broker: BrokerFactory) -> None:
    broker = jsctl_broker(server=EchoBroker)
    broker.signal(signal.SIGKILL)
    assert broker.stop() == -signal.SIGKILL
    with pytest.raises(BrokerFailed, match="has not logged 'never'"):
        broker.wait_log("never", 0.05)


def test_directories_and_ports_are_given_back() -> None:
    with EchoBroker() as broker:
        directory, port = broker.directory, broker.port
        assert directory.is_dir()
    assert not directory.exists()
    with socket.socket() as free:
        free.bind(("127.0.0.1", port))


def test_who_interrupts_the_end_leaves_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """As who presses Ctrl-C once more while the first one is carried out."""
    closed: list[Broker] = []
    kill = Broker.kill

    def interrupted(broker: Broker) -> None:
        closed.append(broker)
        if len(closed) == 1:
            raise KeyboardInterrupt
        kill(broker)

    brokers = _brokers()
    make = next(brokers)
    made = [make(server=EchoBroker) for _ in range(3)]
    cluster = Cluster(3, server=EchoBroker)
    monkeypatch.setattr(Broker, "kill", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(brokers)
    assert closed == made[::-1]
    closed.clear()
    with pytest.raises(KeyboardInterrupt):
        cluster.close()
    assert len(closed) == 3 and not cluster["n1"].directory.exists()
    kill(made[-1])


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", b"?\r\n"])
def test_a_page_that_breaks_off_is_none(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    """As of a broker that is killed while it answers: who waits for a cluster waits on."""
    broker = Broker()
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(Broker, "monitor_url", f"http://127.0.0.1:{server.getsockname()[1]}")

        def answer() -> None:
            with server.accept()[0] as peer:
                peer.recv(1 << 16)
                peer.sendall(said)

        answering = Thread(target=answer)
        answering.start()
        with pytest.raises(OSError):
            broker.monitor("/varz")
        answering.join()
    broker.close()


def test_a_reserved_port_is_nobody_elses() -> None:
    port = ReservedPort()
    with socket.socket() as other, pytest.raises(OSError):
        other.bind(("127.0.0.1", port.number))
    port.release()


def test_a_cluster_of_real_servers_keeps_its_ports(jsctl_cluster: ClusterFactory) -> None:
    cluster = jsctl_cluster(3, server=RealServer)
    assert cluster.names == ["n1", "n2", "n3"]
    leader = cluster.wait_meta_leader()
    urls = cluster.urls
    cluster.kill(leader)
    assert [broker.running for broker in cluster].count(True) == 2
    cluster.restart(leader)
    assert cluster.wait_meta_leader() in cluster.names
    assert cluster.urls == urls
    cluster.stop()


@pytest.mark.parametrize("size", [1, 0, -1])
def test_a_cluster_of_one_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="one alone is a Broker"):
        Cluster(size)


def test_a_cluster_that_cannot_start_leaves_nothing() -> None:
    cluster = Cluster(2)
    cluster["n2"].config = "jetstream {"
    with pytest.raises(BrokerFailed), cluster:
        pass
    assert not any(broker.running for broker in cluster)
    assert not cluster["n1"].directory.exists()


@pytest.mark.parametrize("kind", [Broker, RealServer], ids=["jsctl", "nats-server"])
def test_all_routes_are_waited_for(jsctl_cluster: ClusterFactory, kind: type[Broker]) -> None:
    system = "system_account: X, accounts { X { users: [ { user: x, password: x } ] } }"
    cluster = jsctl_cluster(3, server=kind, config=system)
    cluster.kill("n3")
    cluster.wait_routes()
    cluster["n3"].launch()
    with pytest.raises(BrokerFailed, match="not all routes"):
        cluster.wait_routes(0.0)
    cluster.wait_routes()
    for broker in cluster:
        page: Any = broker.monitor("/routez")
        found = {(one["remote_name"], one.get("account")) for one in page["routes"]}
        others = set(cluster.names) - {broker.name}
        assert found >= {(name, account) for name in others for account in (None, "X")}


@pytest.mark.parametrize("kind", [Broker, RealServer], ids=["jsctl", "nats-server"])
def test_a_cluster_is_whole_when_all_that_run_are_current(
    jsctl_cluster: ClusterFactory, kind: type[Broker]
) -> None:
    cluster = jsctl_cluster(3, server=kind)
    victim = next(name for name in cluster.names if name != cluster.meta_leader())
    cluster[victim].pause()
    with pytest.raises(BrokerFailed, match="not all brokers are healthy"):
        cluster.wait_whole(0.0)
    cluster.kill(victim)
    cluster.wait_whole()
    cluster.restart(victim)
    cluster.wait_whole()
    leader: Any = cluster[cluster.meta_leader()].monitor("/jsz")
    assert all(one["current"] for one in leader["meta_cluster"]["replicas"])


def test_the_plugin_is_light() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import jsctl.testing; "
        "print(*(set(sys.modules) - before))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"asyncio", "urllib.request", "http.client", "nats", "rich", "click", "ssl"}
    assert not heavy & set(loaded)
    assert not [name for name in loaded if name.startswith("jsctl.broker")]
