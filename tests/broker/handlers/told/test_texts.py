"""Infos that are put together as text are what the codec writes, byte for byte."""

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from jsctl.api.cluster import Placement
from jsctl.api.codec import dumps, encode
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.errors import ApiErrorBody
from jsctl.api.responses import ConsumerInfoResponse, StreamCreateResponse
from jsctl.api.stream import ReplicaDamage, SequenceRange, SourceInfo, StreamConfig, StreamSource
from jsctl.broker.handlers import answers, consumer_info, lists, streams
from jsctl.broker.handlers.told import consumer_texts, stream_texts
from jsctl.broker.jetstream.config_texts import CONSUMERS, STREAMS
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.leader import ConsumerLeader
from jsctl.broker.jetstream.consumers.state import ConsumerState
from jsctl.broker.jetstream.meta.assignments import GroupAssignment, StreamAssignment
from tests.support.jetstream_rig import SECOND, Rig

ODD = 'ü<&>\u2028"\\,"metadata":{"x":"y"}'
METADATA: tuple[dict[str, str], ...] = (
    {},
    {"_nats.req.level": "0"},
    {"_nats.req.level": "1", "team": ODD, "_nats.z": "", "a": '"metadata":{}'},
    {"_nats.ver": "9", "_nats.level": "9", "_nats.req.level": "0"},
)
SOURCES = (
    (),
    (SourceInfo(name="O", lag=3, active=-1),),
    (
        SourceInfo(name="O", lag=3, active=5, filter_subject="o.>"),
        SourceInfo(name="P", active=-1, error=ApiErrorBody(code=500, description="<no>")),
    ),
)
DAMAGE = (
    (),
    (ReplicaDamage(name="n0", messages=2, ranges=(SequenceRange(first=1, last=2),)),),
)


class TellingRig(Rig):
    """Tells of damage and of origins, too."""

    found: tuple[ReplicaDamage, ...] = ()
    origins: tuple[SourceInfo, ...] = ()

    def damage(self, assigned: GroupAssignment) -> tuple[ReplicaDamage, ...]:
        return self.found

    def upstreams(self, account: str, name: str) -> list[SourceInfo]:
        return [*self.origins]


def config_of(chance: random.Random) -> dict[str, object]:
    """Some config of a stream that can be made."""
    made: dict[str, object] = {"name": "S", "subjects": ["s.>", "t.*"], "storage": "memory"}
    made["metadata"] = {"team": ODD} if chance.random() < 0.5 else {}
    if chance.random() < 0.5:
        made |= {"description": ODD, "max_msgs": 5, "first_seq": chance.choice([0, 7])}
    if chance.random() < 0.5:
        made |= {"max_msgs_per_subject": 1, "allow_direct": True, "max_age": 60 * SECOND}
    return made


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("seed", range(40))
def test_a_stream_is_told_as_the_codec_tells_it(seed: int, servers: int) -> None:
    chance = random.Random(seed)
    rig = TellingRig(servers)
    replicas = {"num_replicas": chance.choice([1, 3])} if servers > 1 else {}
    made = rig.ask("STREAM.CREATE.S", {**config_of(chance), **replicas})
    assert "error" not in made
    for number in range(chance.choice([0, 0, 1, 9])):
        rig.publish(f"s.{number}", b"x" * number)
    if chance.random() < 0.5:
        rig.ask("STREAM.MSG.DELETE.S", {"seq": 2})
        rig.ask("STREAM.PURGE.S", {"filter": "s.4"})
    rig.now_ns += chance.choice([0, 1, SECOND // 2, 100 * SECOND])
    rig.found, rig.origins = chance.choice(DAMAGE), chance.choice(SOURCES)
    rig.domain = chance.choice(["", "hub<>"])
    found, stream = rig.meta.stream("A", "S"), rig.stream("A", "S")
    assert found is not None and stream is not None
    found = _altered(found, chance)
    cluster = answers.group_text(rig, found.group) if rig.clustered else ""
    listed = lists.listed(STREAMS, found.config)
    text = stream_texts.info_text(
        rig,
        found,
        stream,
        stream_texts.begun(listed, found.created_ns),
        rig.origins,
        domain=rig.domain,
        cluster=cluster,
    )
    info = streams.stream_info(rig, found, stream)
    expected = info if rig.clustered else replace(info, cluster=None)
    assert text.encode() == lists.listed_stream(expected)
    kept = {k: v for k, v in info.config.metadata.items() if k not in ("_nats.ver", "_nats.level")}
    assert encode(found.config)["retention"] == "limits"
    assert listed == dumps(replace(info.config, metadata=kept))


def _altered(found: StreamAssignment, chance: random.Random) -> StreamAssignment:
    """The same with what no request of this test makes."""
    config = replace(found.config, metadata=chance.choice(METADATA))
    if chance.random() < 0.3:
        config = replace(config, mirror=StreamSource(name="O", filter_subject=ODD))
    if chance.random() < 0.3:
        config = replace(config, placement=Placement(cluster="C1", tags=("a", ODD)))
    if chance.random() < 0.2:
        config = replace(config, extra={"newer": {"metadata": {"_nats.req.level": "0"}}})
    return replace(found, config=config, revision=chance.choice([1, 2]))


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("seed", range(20))
def test_who_makes_a_stream_is_told_as_the_codec_tells_it(seed: int, servers: int) -> None:
    chance = random.Random(seed)
    rig = TellingRig(servers)
    rig.ask("STREAM.CREATE.S", config_of(chance))
    found, stream = rig.meta.stream("A", "S"), rig.stream("A", "S")
    assert found is not None and stream is not None
    rig.domain = chance.choice(["", "hub"])
    asked = chance.choice([b".STREAM.CREATE.S", b".STREAM.UPDATE.S", b".STREAM.RESTORE.S"])
    assert found.request is not None
    request = replace(found.request, subject=b"$JS.API" + asked)
    found = replace(_altered(found, chance), request=request)
    is_update = b"UPDATE" in asked
    info = streams.stream_info(rig, found, stream)
    expected = StreamCreateResponse(
        head=answers.head("stream_update" if is_update else "stream_create"),
        info=replace(
            info,
            domain=rig.domain if is_update and not rig.clustered else "",
            cluster=info.cluster if rig.clustered else None,
        ),
        did_create=b"CREATE" in asked and (found.revision == 1 or not rig.clustered),
    )
    assert streams.create_response(rig, found, stream) == dumps(expected)


@pytest.mark.parametrize("metadata", METADATA)
@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize("led", [False, True])
@pytest.mark.parametrize("clustered", [False, True])
def test_a_consumer_is_told_as_the_codec_tells_it(
    metadata: dict[str, str], paused: bool, led: bool, clustered: bool
) -> None:
    rig = Rig(3 if clustered else 1)
    until = "2030-01-01T00:00:00Z" if paused else ""
    config = ConsumerConfig(
        durable_name="C",
        name="C",
        description=ODD,
        metadata=metadata,
        pause_until=until,
        priority_groups=("g<",) if paused else (),
    )
    consumer = Consumer("S<", "C", config, created_ns=rig.now_ns + 5)
    state = consumer.state
    state.delivered_seq, state.delivered_stream, state.delivered_last_ns = 7, 9, rig.now_ns
    rig.ask("STREAM.CREATE.S", {"name": "S", "num_replicas": 3 if clustered else 1})
    made = rig.meta.stream("A", "S")
    assert made is not None
    leader = _leader(state) if led else None
    for group in (None, rig.group(made.group.name)):
        info = consumer_info.consumer_info(rig, consumer, leader, group)
        assert info.push_bound == led
        expected = dumps(ConsumerInfoResponse(head=answers.head("consumer_info"), info=info))
        assert consumer_info.info_response(rig, consumer, leader, group) == expected
        begins = consumer_texts.begun(consumer, lists.listed(CONSUMERS, config))
        listed = consumer_info.consumer_text(rig, consumer, leader, group, begins)
        assert listed.encode() == lists.listed_consumer(info)


def _leader(state: ConsumerState) -> ConsumerLeader:
    """One that somebody listens to, as far as infos ask it."""
    made = SimpleNamespace(
        state=state,
        delivery=SimpleNamespace(num_pending=12),
        pull=None,
        push=SimpleNamespace(wanted=lambda: True),
    )
    return cast(ConsumerLeader, made)


def test_metadata_is_put_in_the_place_of_other_metadata() -> None:
    for own in METADATA:
        for other in METADATA:
            config = StreamConfig(name="S", description=ODD, metadata=own)
            assert STREAMS.text_with(config, other) == dumps(replace(config, metadata=other))
            consumer = ConsumerConfig(name="C", metadata=own, pause_until="2030-01-01T00:00:00Z")
            expected = dumps(replace(consumer, metadata=other))
            assert CONSUMERS.text_with(consumer, other) == expected
