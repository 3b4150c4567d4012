"""Operator mode: streams with replicas, used over gateways and in clusters of both kinds."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

import pytest

from jsctl.auth.claims import Account
from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.login import Caller
from tests.support.operators import NO_STORAGE, OperatorWorld, limits
from tests.support.ports import free_port
from tests.support.super_clusters import configuration, meta_leader, one_jetstream, super_cluster
from tests.support.tiers import ANY
from tests.support.waiting import wait_for

SIZES = {"a": 1, "b": 3}
OURS, THEIRS = "jsctl", "nats-server"
Servers = Mapping[str, Broker]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> OperatorWorld:
    """An account that stores, one that may not, and one that stores three replicas alone."""
    made = OperatorWorld(tmp_path_factory.mktemp("world"))
    made.account("A")
    made.account("nothing", Account(limits=limits(NO_STORAGE)))
    made.account("three", Account(limits=limits(tiers={"R3": ANY})))
    return made


def enter(server: Broker, world: OperatorWorld, account: str) -> Caller:
    """A new user of an account."""
    caller = Caller(server.port)
    said = world.user(account).login(caller.challenge)
    assert caller.login({**said, "no_responders": True}), caller.refusal
    return caller


def answered(caller: Caller, subject: str, payload: bytes) -> bytes:
    """An answer; empty if nobody listens yet."""
    return caller.request(subject, payload)[1]


def api(caller: Caller, subject: str, **body: Any) -> Any:
    """An answer of the API, as soon as there is one."""
    payload = json.dumps(body).encode() if body else b""
    ask = partial(answered, caller, f"$JS.API.{subject}", payload)
    return json.loads(wait_for(ask, f"somebody answers {subject}"))


def code(answer: Any) -> int:
    """Its error; 0 if there is none."""
    found: int = answer.get("error", {}).get("err_code", 0)
    return found


def is_used(world: OperatorWorld, here: Broker, there: Broker, *, far: bool) -> None:
    """A stream that is made at one server, and used there and at another one. `far`: here is
    another cluster than the stream's."""
    for account in ("A", "three"):
        body: dict[str, Any] = {"name": "S", "subjects": ["s.>"], "num_replicas": 3}
        body |= {"placement": {"cluster": "b"}} if far else {}
        with enter(here, world, account) as one, enter(there, world, account) as other:
            assert code(api(one, "STREAM.DELETE.S")) in (0, 10059)
            made = api(one, "STREAM.CREATE.S", **body)
            assert code(made) == 0, made
            assert code(api(one, "STREAM.CREATE.R1", name="R1", subjects=["r1"])) in (
                (0,) if account == "A" else (10120,)
            )
            for caller, seq in ((one, 1), (other, 2), (one, 3)):
                stored = wait_for(partial(answered, caller, "s.x", b"x"), "it is stored")
                assert json.loads(stored)["seq"] == seq
            info = api(other, "STREAM.INFO.S")
            assert info["state"]["messages"] == 3
            assert len(info["cluster"]["replicas"]) == 2
            asked = {"durable_name": "c", "name": "c", "ack_policy": "explicit"}
            made = api(one, "CONSUMER.CREATE.S.c", stream_name="S", config=asked)
            assert code(made) == 0, made
            subject, body_of_pull = "$JS.API.CONSUMER.MSG.NEXT.S.c", b'{"expires":5000000000}'
            for caller in (one, other, one):
                pull = partial(answered, caller, subject, body_of_pull)
                assert wait_for(pull, "a message comes") == b"x"
            if account == "three":
                tier = api(one, "INFO")["tiers"]["R3"]
                assert (tier["streams"], tier["consumers"]) == (1, 1)
    for server in (here, there):
        with enter(server, world, "nothing") as caller:
            assert code(api(caller, "INFO")) == 10039


@pytest.fixture(scope="module", params=list(KINDS))
def one_kind(request: pytest.FixtureRequest, world: OperatorWorld) -> Iterator[Servers]:
    """One JetStream over two clusters."""
    kinds = dict.fromkeys(SIZES, str(request.param))
    with super_cluster(kinds, SIZES, jetstream=True, accounts=world.config()) as found:
        one_jetstream(found)
        yield found


def test_a_stream_in_the_other_cluster(one_kind: Servers, world: OperatorWorld) -> None:
    is_used(world, one_kind["a1"], one_kind["b2"], far=True)


def test_a_stream_that_is_moved_over_a_gateway(one_kind: Servers, world: OperatorWorld) -> None:
    """Into the cluster of one server, with fewer replicas."""
    with enter(one_kind["b1"], world, "A") as caller:
        assert code(api(caller, "STREAM.DELETE.M")) in (0, 10059)
        body: dict[str, Any] = {"name": "M", "subjects": ["m"], "num_replicas": 1}
        made = api(caller, "STREAM.CREATE.M", **body, placement={"cluster": "b"})
        assert code(made) == 0, made
        stored = wait_for(partial(answered, caller, "m", b"x"), "it is stored")
        assert json.loads(stored)["seq"] == 1
        moved = api(caller, "STREAM.UPDATE.M", **body, placement={"cluster": "a"})
        assert code(moved) == 0, moved

        def is_there() -> bool:
            # While a leader changes a nats-server may not answer at all.
            with suppress(TimeoutError), enter(one_kind["b1"], world, "A") as asking:
                found = json.loads(answered(asking, "$JS.API.STREAM.INFO.M", b"") or b"{}")
                return found.get("cluster", {}).get("leader") == "a1" and "desired" not in found
            return False

        wait_for(is_there, "the stream is in the other cluster")
    with enter(one_kind["b1"], world, "A") as caller:
        assert api(caller, "STREAM.INFO.M")["state"]["messages"] == 1


def test_streams_of_brokers_are_used_from_a_cluster_of_nats_servers(world: OperatorWorld) -> None:
    kinds = {"a": THEIRS, "b": OURS}
    config = world.config()
    with super_cluster(kinds, SIZES, jetstream=True, only="b", accounts=config) as servers:
        meta_leader(servers["b1"], SIZES["b"])
        is_used(world, servers["a1"], servers["b2"], far=False)


@contextmanager
def cluster_of_both(world: OperatorWorld) -> Iterator[Servers]:
    """Three brokers with JetStream and a nats-server without in one cluster."""
    routes = {name: free_port() for name in ("n1", "n2", "n3", "other")}
    with ExitStack() as stack:
        found = {}
        for name in routes:
            text = configuration(name, "C", routes, "", world.config())
            if name == "other":
                text = text.replace("jetstream: enabled\n", "")
            kind = KINDS[THEIRS if name == "other" else OURS]
            found[name] = stack.enter_context(kind(config=text, name=name))
        meta_leader(found["n1"], 3)
        yield found


def test_a_cluster_of_both_kinds(world: OperatorWorld) -> None:
    with cluster_of_both(world) as servers:
        is_used(world, servers["other"], servers["n2"], far=False)
        is_used(world, servers["n1"], servers["other"], far=False)
