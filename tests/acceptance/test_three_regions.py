"""Nine brokers in three regions: shared configuration, tags, and where streams land."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jsctl.testing import HOST, Broker, ReservedPort
from tests.support.command_line import (
    CommandLine,
    followers_of,
    is_whole,
    leader_of,
    rows,
)
from tests.support.waiting import wait_for

REGIONS = {"east": 1, "north": 2, "west": 3}
PER_REGION = 3
ACROSS = {1: ("xr:12", "xr:13", "xr:123"), 2: ("xr:12", "xr:23", "xr:123")}
ACROSS[3] = ("xr:13", "xr:23", "xr:123")

ACCOUNTS = """
accounts {
  $SYS { users: [ { user: sys, password: sys } ] }
  APP { users: [ { user: app, password: app } ], jetstream: enabled }
}
no_auth_user: app
"""
JETSTREAM = """
jetstream {
  max_memory_store: 64MB
  max_file_store: 1GB
  unique_tag: "rg:"
}
"""

STARTED_S = 150
"""Nine servers on a busy machine: each of them elects anew where it hears nothing for 0.3 s."""


class Regions:
    """All servers; each has a main file of its own beside the shared ones."""

    def __init__(self, root: Path) -> None:
        shared = root / "shared"
        shared.mkdir()
        (shared / "accounts.conf").write_text(ACCOUNTS)
        (shared / "jetstream.conf").write_text(JETSTREAM)
        names = [f"{region}-{n}" for region in REGIONS for n in range(1, PER_REGION + 1)]
        self.ports = {name: ReservedPort() for name in names}
        seeds = (self.ports[name].number for name in names[::PER_REGION])
        routes = ", ".join(f'"nats://{HOST}:{port}"' for port in seeds)
        (shared / "routes.conf").write_text(f"routes: [{routes}]\nname: wide\n")
        self.brokers = {name: self._broker(root, name) for name in names}

    def _broker(self, root: Path, name: str) -> Broker:
        region = name.partition("-")[0]
        number = REGIONS[region]
        tags = [f"region:{region}", f"rg:{number}", *ACROSS[number]]
        directory = root / name
        quoted = ", ".join(f'"{tag}"' for tag in tags)
        text = (
            f"server_name: {name}\n"
            "include ../shared/accounts.conf\n"
            "include '../shared/jetstream.conf'\n"
            f'cluster {{ listen: "{HOST}:{self.ports[name].number}"\n'
            'include "../shared/routes.conf"\n}\n'
            f"server_tags: [{quoted}]\n"
        )
        return Broker(config=text, directory=directory)

    def start(self) -> None:
        """Start all and wait until every one names the same meta leader."""
        for broker in self.brokers.values():
            broker.launch()
        for broker in self.brokers.values():
            broker.wait_ready(STARTED_S)

        found: set[str] = set()

        def agrees(broker: Broker) -> bool:
            try:
                page: Any = broker.monitor("/jsz")
            except OSError:
                return False
            meta = page.get("meta_cluster", {})
            found.add(meta.get("leader", ""))
            return meta.get("cluster_size") == len(self.brokers) and found != {""}

        def agreed() -> bool:
            # No further than to the first that does not: nine that elect have enough to do.
            found.clear()
            return all(agrees(one) and len(found) == 1 for one in self.brokers.values())

        wait_for(agreed, "nine servers have one meta leader", STARTED_S)

    def close(self) -> None:
        for broker in self.brokers.values():
            broker.close()
        for port in self.ports.values():
            port.release()


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regions]:
    made = Regions(tmp_path_factory.mktemp("regions"))
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def jsctl(regions: Regions, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    home: Path = tmp_path_factory.mktemp("home")
    return CommandLine(home, [broker.url for broker in regions.brokers.values()])


def placed(jsctl: CommandLine, name: str, replicas: int, *flags: str) -> list[str]:
    """The regions of a new stream's replicas, one word a replica, sorted."""
    words = ("--subjects", f"{name}.>", "--replicas", str(replicas), "--defaults")
    jsctl.run("stream", "add", name, *words, *flags)
    wait_for(lambda: is_whole(jsctl.json("stream", "info", name), replicas), f"{name} has replicas")
    info = jsctl.json("stream", "info", name)
    return sorted(peer.partition("-")[0] for peer in (leader_of(info), *followers_of(info)))


def test_a_stream_across_regions_has_a_replica_in_each(jsctl: CommandLine) -> None:
    assert placed(jsctl, "A", 3, "--tag=xr:123") == ["east", "north", "west"]


def test_a_pair_of_regions(jsctl: CommandLine) -> None:
    assert placed(jsctl, "B", 2, "--tag=xr:12") == ["east", "north"]
    assert placed(jsctl, "C", 2, "--tag=xr:23") == ["north", "west"]


def test_a_region_that_is_asked_for_holds_all_replicas(jsctl: CommandLine) -> None:
    assert placed(jsctl, "D", 3, "--tag=rg:2") == ["north"] * 3


def test_without_a_tag_regions_are_still_unique(jsctl: CommandLine) -> None:
    assert placed(jsctl, "E", 3) == ["east", "north", "west"]


def test_two_tags_must_both_be_there(jsctl: CommandLine) -> None:
    assert placed(jsctl, "F", 1, "--tag=xr:13", "--tag=region:west") == ["west"]


REFUSED = {
    "no such tag": (
        ("--replicas", "3", "--tag=rg:9"),
        "no suitable peers for placement, tags not matched ['rg:9']",
    ),
    "too few regions": (
        ("--replicas", "3", "--tag=xr:12"),
        "no suitable peers for placement, server tag not unique, tags not matched ['xr:12']",
    ),
    "too few servers": (
        ("--replicas", "5", "--tag=rg:2"),
        "no suitable peers for placement, tags not matched ['rg:2']",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_impossible_placements_are_refused(jsctl: CommandLine, case: str) -> None:
    flags, text = REFUSED[case]
    done = jsctl.ask("stream", "add", "X", "--subjects", "x.>", "--defaults", *flags)
    assert done.code != 0
    assert f"could not create Stream: {text} (10005)" in done.err
    assert "X" not in jsctl.run("stream", "ls", "-n").split()


def test_the_report_shows_the_placement(jsctl: CommandLine) -> None:
    placed(jsctl, "G", 1, "--tag=rg:3")
    table = {row[0]: row for row in rows(jsctl.run("stream", "report"))}
    assert table["G"][2] == "tags: rg:3"


def test_every_server_is_listed_with_its_tags(jsctl: CommandLine, regions: Regions) -> None:
    lines = jsctl.system("server", "req", "variables").splitlines()
    pages = [json.loads(line)["data"] for line in lines if line.strip()]
    tags = {page["server_name"]: page["tags"] for page in pages}
    assert sorted(tags) == sorted(regions.brokers)
    assert tags["north-2"] == ["region:north", "rg:2", "xr:12", "xr:23", "xr:123"]
