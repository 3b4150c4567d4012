"""Streams that move in accounts whose tiers have changed meanwhile, on clusters of both servers."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from jsctl.auth.claims import Account, JetStreamLimits
from jsctl.dataclass import replace
from jsctl.testing import Cluster
from tests.contract.conftest import KINDS
from tests.support.login import Caller
from tests.support.operators import SYSTEM, OperatorWorld, limits
from tests.support.tier_cases import NO_CONSUMERS, NO_STORAGE, NO_STREAMS, NO_TIER, config
from tests.support.tiers import ANY
from tests.support.waiting import wait_for

NOT_ENABLED = 10039
NO_ACCOUNTS = "accounts {}\n"
"""Those of the operator are all."""
FREE = {"R1": ANY, "R2": ANY, "R3": ANY}


ACCOUNTS = ("LACKING", "FULL", "FEW", "NONE", "SCALED")


class Moving:
    """A cluster, and one account in it after the other."""

    def __init__(self, servers: Cluster, world: OperatorWorld) -> None:
        self._servers = servers
        self._world = world
        self._account = ""

    def become(self, account: str) -> None:
        """An account that all servers have looked up, without limits and streams."""
        self._account = account
        for server in self._servers:
            with Caller(server.port) as caller:
                assert caller.login(self._world.user(account).login(caller.challenge))
        self.have(FREE)
        for name in self.api("STREAM.NAMES")["streams"] or ():
            assert self.code(f"STREAM.DELETE.{name}") == 0

    def have(self, tiers: dict[str, JetStreamLimits] | None) -> None:
        """The account has these tiers now on all servers; None: no JetStream."""
        given = limits(tiers=tiers) if tiers is not None else limits(JetStreamLimits())
        made = self._world.account(self._account, Account(limits=given))
        subject = f"$SYS.REQ.ACCOUNT.{made.public}.CLAIMS.UPDATE"
        answer = self._ask(SYSTEM, subject, made.token.encode())
        assert answer["data"]["code"] == 200, answer
        for server in self._servers:
            counts = partial(self._counts, server.monitor, made.public, made.token)
            wait_for(counts, f"{server.name} has the account")

    @staticmethod
    def _counts(monitor: Any, account: str, token: str) -> bool:
        return bool(monitor(f"/accountz?acc={account}")["account_detail"]["jwt"] == token)

    def _ask(self, account: str, subject: str, payload: bytes) -> Any:
        with Caller(self._servers["n1"].port) as caller:
            member = self._world.user(account)
            assert caller.login(member.login(caller.challenge)), caller.refusal
            return json.loads(caller.request(subject, payload)[1] or b"{}")

    def api(self, subject: str, **body: Any) -> Any:
        """An answer of the API to the account."""
        payload = json.dumps(body).encode() if body else b""
        return self._ask(self._account, f"$JS.API.{subject}", payload)

    def code(self, subject: str, **body: Any) -> int:
        """The error of the answer; 0 if there is none."""
        return _code(self.api(subject, **body))

    def update(self, name: str, replicas: int, **more: Any) -> int:
        """The error of an update."""
        return self.code(f"STREAM.UPDATE.{name}", **config(name, replicas, **more))

    def create(self, name: str, replicas: int, **more: Any) -> int:
        """The error of a new stream."""
        return self.code(f"STREAM.CREATE.{name}", **config(name, replicas, **more))

    def consumers_in(self, tier: str, count: int) -> None:
        """Wait until so many count in a tier, and none elsewhere."""

        def are_there() -> bool:
            found = self.api("INFO")["tiers"]
            counts = {name: one["consumers"] for name, one in found.items() if one["consumers"]}
            return counts == {tier: count}

        wait_for(are_there, f"{count} consumers are in {tier}")

    def move(self, name: str, leader: str = "") -> int:
        """The error of a move away from where a stream is led."""
        public = self._world.tenants[self._account].public
        subject = f"$JS.API.ACCOUNT.STREAM.MOVE.{public}.{name}"
        payload = json.dumps({"server": leader or self.leader(name)}).encode()
        return _code(self._ask(SYSTEM, subject, payload))

    def leader(self, name: str) -> str:
        """Who leads a stream."""
        found = self.api(f"STREAM.INFO.{name}")
        return str(found["cluster"].get("leader", ""))

    def settled(self, name: str, replicas: int) -> None:
        """Wait until a stream is where it should be, and not on its way."""
        wait_for(lambda: self._state(name) == (replicas, False), f"{name} has settled")

    def replicated(self, name: str, replicas: int) -> None:
        """Wait until a stream is where it should be; its consumers may still come there."""
        wait_for(lambda: self._state(name)[0] == replicas, f"{name} has {replicas} replicas")

    def _state(self, name: str) -> tuple[int, bool]:
        """How many current replicas there are, and whether there is more to do."""
        found = self.api(f"STREAM.INFO.{name}").get("cluster", {})
        current = [one["current"] for one in found.get("replicas") or []]
        whole = "leader" in found and all(current)
        return len(current) + 1 if whole else 0, "desired" in found


def _code(answer: Any) -> int:
    code: int = answer.get("error", {}).get("err_code", 0)
    return code


@pytest.fixture(scope="module", params=list(KINDS))
def moving(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Moving]:
    """Three servers."""
    world = OperatorWorld(tmp_path_factory.mktemp("world"))
    for name in ACCOUNTS:
        world.account(name, Account(limits=limits(tiers=FREE)))
    text = NO_ACCOUNTS + world.config()
    with Cluster(3, config=text, server=KINDS[str(request.param)]) as servers:
        yield Moving(servers, world)


ELSEWHERE = {"cluster": "C1"}
"""A placement that no stream here has had."""


def test_a_stream_whose_tier_was_taken_away_stays_where_it_is(moving: Moving) -> None:
    moving.become("LACKING")
    assert moving.create("S", 1) == moving.create("T", 2) == 0
    moving.settled("S", 1)
    moving.settled("T", 2)
    moving.have({"R2": ANY})
    assert moving.move("S") == NO_TIER
    assert moving.update("S", 1, description="a") == NO_TIER
    assert moving.update("S", 1, placement=ELSEWHERE) == NO_TIER
    assert moving.update("S", 2) == 0
    moving.settled("S", 2)
    moving.have({"R1": ANY})
    assert moving.move("T") == NO_TIER
    assert moving.update("T", 2, placement=ELSEWHERE) == NO_TIER
    assert moving.code("STREAM.PEER.REMOVE.T", peer=moving.leader("T")) == 0


def test_a_tier_that_became_too_small_keeps_what_it_has_and_where(moving: Moving) -> None:
    moving.become("FULL")
    assert moving.create("S", 1, max_bytes=1_000) == moving.create("N", 1) == 0
    moving.settled("S", 1)
    moving.settled("N", 1)
    moving.have({"R1": replace(ANY, disk_storage=500), "R2": ANY})
    assert moving.move("S") == moving.move("N") == NO_STORAGE
    assert moving.update("N", 1, description="a") == NO_STORAGE
    assert moving.update("S", 1, max_bytes=600) == NO_STORAGE
    assert moving.update("N", 1, placement=ELSEWHERE) == NO_STORAGE
    assert moving.update("N", 2) == 0
    moving.settled("N", 2)
    assert moving.update("N", 1) == NO_STORAGE
    assert moving.update("S", 1, max_bytes=500) == 0
    assert moving.update("N", 1) == 0
    moving.settled("N", 1)


def test_who_moves_is_not_one_more(moving: Moving) -> None:
    """The number of streams counts for those that are made, the number of consumers for those that
    a stream names."""
    moving.become("FEW")
    assert moving.create("S", 1) == moving.create("T", 1, max_consumers=2) == 0
    moving.settled("S", 1)
    moving.settled("T", 1)
    moving.have({"R1": replace(ANY, streams=1, consumer=1), "R2": replace(ANY, streams=1)})
    assert moving.move("S") == 0
    assert moving.move("T") == NO_CONSUMERS
    moving.settled("S", 1)
    assert moving.update("T", 1, placement=ELSEWHERE) == 0
    moving.settled("T", 1)
    assert moving.update("S", 2) == 0
    assert moving.update("T", 2) == NO_STREAMS


def test_streams_of_an_account_without_jetstream_do_not_move(moving: Moving) -> None:
    moving.become("NONE")
    assert moving.create("S", 1) == 0
    moving.settled("S", 1)
    leader = moving.leader("S")
    moving.have(None)
    assert moving.move("S", leader) == NOT_ENABLED
    moving.have(FREE)
    moving.settled("S", 1)


def test_consumers_follow_their_stream_into_a_tier_without_room_for_them(moving: Moving) -> None:
    moving.become("SCALED")
    assert moving.create("S", 1) == 0
    moving.settled("S", 1)
    for name in ("a", "b"):
        asked = {"name": name, "durable_name": name, "ack_policy": "explicit"}
        body = {"stream_name": "S", "config": asked}
        assert moving.code(f"CONSUMER.CREATE.S.{name}", **body) == 0
    moving.consumers_in("R1", 2)
    moving.have({"R1": ANY, "R3": replace(ANY, consumer=1, max_ack_pending=10)})
    assert moving.update("S", 3) == 0
    moving.replicated("S", 3)
    moving.consumers_in("R3", 2)
    assert moving.update("S", 1) == 0
    moving.replicated("S", 1)
    moving.consumers_in("R1", 2)
