"""Three brokers without a file: flags and one seed are enough for a full mesh."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jsctl.testing import HOST, Broker, ReservedPort
from tests.support.command_line import CommandLine, is_whole
from tests.support.waiting import wait_for

NAMES = ("a", "b", "c")


WAYS: dict[str, Callable[[str], tuple[str, ...]]] = {
    "a URL to listen on": lambda url: ("--cluster_name", "c1", "--cluster", url),
    "a name": lambda url: ("--cluster", "c1", "--cluster_listen", url),
}


@pytest.fixture(params=list(WAYS))
def brokers(request: pytest.FixtureRequest) -> Iterator[dict[str, Broker]]:
    """Three servers of cluster c1; `--cluster` may be given in two ways."""
    ports = {name: ReservedPort() for name in NAMES}
    seed = f"nats://{HOST}:{ports['a'].number}"
    made: dict[str, Broker] = {}
    for name in NAMES:
        flags = WAYS[request.param](f"nats://{HOST}:{ports[name].number}")
        made[name] = Broker("--jetstream", *flags, "--routes", seed, name=name)
    try:
        for broker in made.values():
            broker.launch()
        for broker in made.values():
            broker.wait_ready()
        yield made
    finally:
        for broker in made.values():
            broker.close()
        for port in ports.values():
            port.release()


def neighbours(broker: Broker) -> set[str]:
    """The servers that a broker has routes to."""
    page: Any = broker.monitor("/routez")
    return {route["remote_name"] for route in page["routes"]}


def test_all_find_all_from_one_seed(brokers: dict[str, Broker], tmp_path: Any) -> None:
    for name, broker in brokers.items():
        wait_for(lambda: neighbours(broker) == set(NAMES) - {name}, "a full mesh")  # noqa: B023

    def led() -> bool:
        pages: list[Any] = [broker.monitor("/jsz") for broker in brokers.values()]
        leaders = {page.get("meta_cluster", {}).get("leader", "") for page in pages}
        return len(leaders) == 1 and leaders != {""}

    wait_for(led, "one meta leader")
    jsctl = CommandLine(tmp_path, [broker.url for broker in brokers.values()])
    jsctl.run("stream", "add", "S", "--subjects", "s", "--replicas", "3", "--defaults")
    wait_for(lambda: is_whole(jsctl.json("stream", "info", "S"), 3), "three replicas")
