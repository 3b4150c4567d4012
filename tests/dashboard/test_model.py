"""Replies in, snapshots out: what is believed, kept, marked and forgotten."""

from typing import Any

import pytest

from jsctl.api.times import SECOND_NS, format_time
from jsctl.dashboard.model.advisories import event_of
from jsctl.dashboard.model.model import Model, Told
from jsctl.dashboard.model.snapshot import Badge, Level, PeerState, Snapshot
from jsctl.dashboard.once import document_of

T0 = 1_800_000_000 * SECOND_NS
Doc = dict[str, object]


def statsz(name: str, at_ns: int, received: int = 0, leader: str = "n1") -> Told:
    """An answer to a ping of a cluster of three."""
    others = [
        {"name": one, "current": True, "active": 1000} for one in ("n1", "n2", "n3") if one != name
    ]
    meta: Doc = {"leader": leader, "cluster_size": 3, "quorum_needed": 2}
    if name == leader:
        meta["replicas"] = others
    stats = {"storage": 10, "api": {"total": 5, "errors": 1}}
    return Told(
        {"name": name, "id": f"ID{name}", "time": format_time(at_ns)},
        {
            "cpu": 12.0,
            "cores": 4,
            "active_servers": 3,
            "received_from_clients": {"msgs": received, "bytes": received * 10},
            "jetstream": {"stats": stats, "config": {"max_storage": 100}, "meta": meta},
        },
        1000,
    )


def cluster_of(leader: str, *others: str, behind: str = "", lag: int = 7) -> Doc:
    """A group as its leader tells it."""
    replicas = [
        {"name": one, "current": one != behind, "lag": lag if one == behind else 0}
        for one in others
    ]
    return {"name": "C1", "raft_group": "S-R3F-x", "leader": leader, "replicas": replicas}


def detail(name: str, cluster: Doc, last_seq: int = 10, **more: object) -> Doc:
    """A stream in JSZ."""
    replicas = cluster.get("replicas")
    count = len(replicas) + 1 if isinstance(replicas, list) else 1
    return {
        "name": name,
        "cluster": cluster,
        "config": {"name": name, "num_replicas": count, "subjects": [f"{name}.>"]},
        "state": {"messages": last_seq, "last_seq": last_seq, "consumer_count": 0},
        **more,
    }


def jsz(server: str, at_ns: int, *streams: Doc) -> Told:
    """An answer to JSZ."""
    account = {"name": "A", "stream_detail": list(streams)}
    return Told({"name": server}, {"now": format_time(at_ns), "account_details": [account]})


def pinged(model: Model, at_ns: int, *names: str) -> Snapshot:
    """A round of pings that these servers answered."""
    model.read_servers([statsz(name, at_ns) for name in names], at_ns)
    return model.snapshot(at_ns)


def looked(model: Model, at_ns: int, *told: Told, whole: bool = True) -> Snapshot:
    """A round of details."""
    model.read_details(list(told), None, at_ns, whole=whole)
    return model.snapshot(at_ns)


def test_nothing_told_is_no_statement() -> None:
    assert Model("x").snapshot(T0).badge is Badge.CONNECTING


def test_a_server_that_misses_two_rounds_is_away() -> None:
    model = Model()
    assert pinged(model, T0, "n1", "n2", "n3").badge is Badge.HEALTHY
    assert pinged(model, T0 + SECOND_NS, "n1", "n2").badge is Badge.HEALTHY, "once may happen"
    now = pinged(model, T0 + 2 * SECOND_NS, "n1", "n2")
    assert now.badge is Badge.DEGRADED
    assert [one.up for one in now.servers] == [True, True, False]
    assert now.meta.up == 2 and now.meta.spare == 0
    assert [one.what for one in now.events] == ["server", "health"]
    back = pinged(model, T0 + 3 * SECOND_NS, "n1", "n2", "n3")
    assert back.badge is Badge.HEALTHY
    assert back.events[-2].said == "answers again"


def test_rounds_that_nobody_answers_tell_about_us() -> None:
    model = Model()
    pinged(model, T0, "n1", "n2", "n3")
    found = [pinged(model, T0 + second * SECOND_NS) for second in range(1, 10)]
    assert [one.badge for one in found] == 3 * [Badge.HEALTHY] + 6 * [Badge.UNKNOWN]
    assert found[-1].stale_ns == 9 * SECOND_NS
    assert all(one.up for one in found[-1].servers), "as it was last seen"
    back = pinged(model, T0 + 10 * SECOND_NS, "n1", "n2", "n3")
    assert back.badge is Badge.HEALTHY
    assert [one.said for one in back.events] == ["HEALTHY → UNKNOWN", "UNKNOWN → HEALTHY"]


def test_without_a_meta_leader_it_is_down() -> None:
    model = Model()
    model.read_servers([statsz(name, T0, leader="") for name in ("n1", "n2")], T0)
    assert model.snapshot(T0).badge is Badge.DOWN


def test_rates_follow_the_servers_clock_and_never_fall_below_zero() -> None:
    model = Model()
    model.read_servers([statsz("n1", T0, 1000)], T0)
    model.read_servers([statsz("n1", T0 + 2 * SECOND_NS, 3000)], T0 + 5 * SECOND_NS)
    assert model.snapshot(T0).servers[0].in_msgs == 1000.0
    model.read_servers([statsz("n1", T0 + 3 * SECOND_NS, 10)], T0 + 6 * SECOND_NS)
    assert model.snapshot(T0).servers[0].in_msgs == 0.0, "it was restarted"


def test_the_leader_is_believed_whoever_answers_first() -> None:
    leads = detail("S", cluster_of("n2", "n1", "n3", behind="n3"), 100)
    follows = detail("S", cluster_of("n2", "n2", "n3"), 40)
    for order in ((("n1", follows), ("n2", leads)), (("n2", leads), ("n3", follows))):
        model = Model()
        told = [jsz(server, T0, one) for server, one in order]
        stream = looked(model, T0, *told).streams[0]
        assert stream.messages == 100
        states = {peer.name: peer.state for peer in stream.peers}
        assert states == {
            "n2": PeerState.LEADER,
            "n1": PeerState.CURRENT,
            "n3": PeerState.BEHIND,
        }
        assert (stream.level, stream.replica_lag) == (Level.WARN, 7)


@pytest.mark.parametrize(
    ("lag", "rate", "level"), [(7, 100, Level.OK), (7, 6, Level.WARN), (101, 100, Level.WARN)]
)
def test_a_replica_that_lacks_what_is_on_its_way_is_in_sync(
    lag: int, rate: int, level: Level
) -> None:
    """A leader names it behind, for a moment, while messages come: that is no alarm."""
    model = Model()
    cluster = cluster_of("n1", "n2", "n3", behind="n3", lag=lag)
    for second in range(5):
        at_ns = T0 + second * SECOND_NS
        now = looked(model, at_ns, jsz("n1", at_ns, detail("S", cluster, 10 + rate * second)))
    stream = now.streams[0]
    assert (stream.level, stream.replica_lag) == (level, lag)


def test_a_lone_stream_of_a_lost_server_stays_and_is_offline() -> None:
    model = Model()
    pinged(model, T0, "n1", "n2", "n3")
    lone = jsz("n3", T0, detail("LONE", cluster_of("n3")))
    looked(model, T0, jsz("n1", T0), jsz("n2", T0), lone)
    for second in (1, 2):
        now = pinged(model, T0 + second * SECOND_NS, "n1", "n2")
    assert now.streams[0].level is Level.BAD, "before anybody was asked for details"
    now = looked(model, T0 + 3 * SECOND_NS, jsz("n1", T0), jsz("n2", T0))
    assert [one.name for one in now.streams] == ["LONE"]
    assert now.streams[0].level is Level.BAD and now.streams[0].stale_ns > 0
    assert now.badge is Badge.DEGRADED, "one copy was never promised to survive"


def test_a_deleted_stream_is_forgotten() -> None:
    model = Model()
    looked(model, T0, jsz("n1", T0, detail("S", cluster_of("n1"))))
    assert not looked(model, T0 + SECOND_NS, jsz("n1", T0)).streams


def test_a_stream_is_not_forgotten_while_somebody_is_silent() -> None:
    model = Model()
    looked(model, T0, jsz("n1", T0, detail("S", cluster_of("n1"))))
    assert looked(model, T0 + SECOND_NS, jsz("n2", T0), whole=False).streams


def test_the_meta_leaders_names_decide_in_our_own_account() -> None:
    model = Model()
    model.account = "A"
    model.read_details([jsz("n3", T0, detail("S", cluster_of("n3")))], ["S"], T0, whole=True)
    model.read_details([jsz("n1", T0)], ["S"], T0 + 1, whole=False)
    assert model.snapshot(T0).streams
    model.read_details([jsz("n1", T0)], [], T0 + 2, whole=False)
    assert not model.snapshot(T0).streams


def test_a_stream_that_was_never_described_is_listed_as_lost() -> None:
    """A dashboard that starts while the only server of a stream is away."""
    model = Model()
    model.account = "A"
    told = [jsz("n1", T0, detail("S", cluster_of("n1")))]
    model.read_details(told, ["S", "LONE"], T0, whole=True)
    assert [one.name for one in model.snapshot(T0).streams] == ["S"], "it may be too new"
    model.read_details(told, ["S", "LONE"], T0 + 1, whole=True)
    first = model.snapshot(T0 + 1).streams[0]
    assert (first.name, first.level) == ("LONE", Level.BAD)
    assert "no server" in first.why
    back = [jsz("n1", T0, detail("S", cluster_of("n1")), detail("LONE", cluster_of("n1")))]
    model.read_details(back, ["S", "LONE"], T0 + 2, whole=True)
    assert {one.level for one in model.snapshot(T0 + 2).streams} == {Level.OK}
    model.read_details(told, ["S"], T0 + 3, whole=True)
    assert [one.name for one in model.snapshot(T0 + 3).streams] == ["S"]


def test_who_answers_late_has_lost_nothing() -> None:
    """All that lives on a server with many streams, which takes longer than the others."""
    model = Model()
    model.account = "A"
    told = [jsz("n1", T0, detail("S", cluster_of("n1")))]
    for number in range(3):
        model.read_details(told, ["S", "LATE"], T0 + number, whole=False)
        assert [one.name for one in model.snapshot(T0 + number).streams] == ["S"]
    model.read_details(told, ["S", "LATE"], T0 + 3, whole=True)
    assert [one.name for one in model.snapshot(T0 + 3).streams] == ["S"]


def test_a_replicated_stream_without_a_quorum_is_down() -> None:
    model = Model()
    pinged(model, T0, "n1", "n2", "n3")
    group = cluster_of("n1", "n2", "n3")
    looked(model, T0, jsz("n1", T0, detail("S", group)))
    for second in (1, 2):
        now = pinged(model, T0 + second * SECOND_NS, "n1")
    assert now.streams[0].level is Level.BAD
    assert now.badge is Badge.DOWN


def consumer(name: str, leader: str, **more: object) -> Doc:
    """A consumer in JSZ."""
    return {
        "stream_name": "S",
        "name": name,
        "config": {"ack_policy": "explicit", "max_ack_pending": 100},
        "cluster": cluster_of(leader, *({"n1", "n2"} - {leader})),
        **more,
    }


def test_consumers_have_leaders_of_their_own() -> None:
    group = cluster_of("n1", "n2")
    mine = consumer("C", "n2", num_pending=50)
    theirs = consumer("C", "n2", num_pending=0)
    told = (
        jsz("n1", T0, detail("S", group, consumer_detail=[theirs])),
        jsz("n2", T0, detail("S", group, consumer_detail=[mine])),
    )
    for order in (told, told[::-1]):
        now = looked(Model(), T0, *order)
        assert now.consumers[0].lag == 50
        assert now.streams[0].lag == 50


def test_stalled_growing_and_paused_consumers_are_marked() -> None:
    model = Model()
    group = cluster_of("n1", "n2")

    def round_at(second: int, *consumers: Doc) -> Snapshot:
        at_ns = T0 + second * SECOND_NS
        return looked(
            model, at_ns, jsz("n1", at_ns, detail("S", group, consumer_detail=list(consumers)))
        )

    full = consumer("full", "n1", num_pending=5, num_ack_pending=100)
    held = consumer("held", "n1", paused=True, pause_remaining=SECOND_NS)
    round_at(0, full, held, consumer("slow", "n1", num_pending=2000))
    now = round_at(1, full, held, consumer("slow", "n1", num_pending=2500))
    found = {one.name: one for one in now.consumers}
    assert found["full"].level is Level.WARN and "nothing is delivered" in found["full"].why
    assert found["slow"].level is Level.WARN and found["slow"].lag_rate == 500.0
    assert found["held"].level is Level.NOTE
    assert now.badge is Badge.HEALTHY, "a client that lags is not the cluster's fault"


def test_lost_messages_and_silent_mirrors_are_told() -> None:
    broken = detail("B", cluster_of("n1"))
    broken["state"] = {"messages": 5, "last_seq": 5, "lost": {"msgs": [3, 4], "bytes": 10}}
    mirror = detail("M", cluster_of("n1"), mirror={"name": "O", "lag": 3, "active": -1})
    mirror["config"] = {"name": "M", "num_replicas": 1, "mirror": {"name": "O"}}
    now = looked(Model(), T0, jsz("n1", T0, broken, mirror))
    assert {one.name: one.why for one in now.streams} == {
        "B": "2 messages lost",
        "M": "mirror O was never heard",
    }


def test_damage_is_yellow_with_its_range_until_it_is_repaired() -> None:
    model = Model()

    def told(second: int, **more: Any) -> tuple[Level, str, Badge]:
        at_ns = T0 + second * SECOND_NS
        now = looked(model, at_ns, jsz("n1", at_ns, detail("S", cluster_of("n1", "n2"), **more)))
        (one,) = now.streams
        return one.level, one.why, now.badge

    found = {"name": "n2", "messages": 12, "ranges": [{"first": 5, "last": 16}]}
    # The leader's own damaged messages are `lost` in its state, too, while they are fetched.
    state = {"messages": 5, "last_seq": 20, "lost": {"msgs": [5], "bytes": 9}}
    assert told(0, jsctl_damage=[found], state=state) == (
        Level.WARN,
        "12 messages damaged on n2, being repaired: 5-16",
        Badge.DEGRADED,
    )
    assert told(1) == (Level.OK, "", Badge.HEALTHY)
    given_up = {**found, "lost": 12}
    assert told(2, jsctl_damage=[given_up])[:2] == (
        Level.BAD,
        "12 messages lost on all replicas: 5-16",
    )


def test_damage_that_is_repaired_before_anybody_asks_is_yellow_for_a_while() -> None:
    model = Model()
    model.account = "A"
    looked(model, T0, jsz("n1", T0, detail("S", cluster_of("n1", "n2"))))
    document: Doc = {"type": "io.nats.jetstream.advisory.v1.stream_damage", "stream": "S"}
    document |= {"server": "n2", "messages": 12, "ranges": [{"first": 5, "last": 16}]}
    for action in ("found", "repaired"):
        told = document | {"action": action, "id": action}
        assert model.read_event("$JS.EVENT.ADVISORY.STREAM.DAMAGE.S", told, T0) is not None
    shown = []
    for second in (1, 4, 6):
        at_ns = T0 + second * SECOND_NS
        now = looked(model, at_ns, jsz("n1", at_ns, detail("S", cluster_of("n1", "n2"))))
        shown.append((now.streams[0].level, now.streams[0].why, now.badge))
    yellow = (Level.WARN, "12 messages damaged on n2, being repaired: 5-16", Badge.DEGRADED)
    assert shown == [yellow, yellow, (Level.OK, "", Badge.HEALTHY)]


def test_events_of_damage() -> None:
    for action, level, said in (
        ("found", Level.WARN, "1,200 messages damaged on n2"),
        ("lost", Level.BAD, "1,200 messages lost: no replica has them"),
        ("repaired", Level.OK, "1,200 messages repaired on n2"),
    ):
        document: Doc = {"type": "io.nats.jetstream.advisory.v1.stream_damage", "stream": "S"}
        document |= {"server": "n2", "action": action, "messages": 1200}
        event = event_of("$JS.EVENT.ADVISORY.STREAM.DAMAGE.S", document, T0)
        assert event is not None
        assert (event.level, event.who, event.said) == (level, "S", said)
    document |= {"action": "found", "ranges": [{"first": 5, "last": 16}, {"first": 20, "last": 20}]}
    event = event_of("$JS.EVENT.ADVISORY.STREAM.DAMAGE.S", document, T0)
    assert event is not None and event.said == "1,200 messages damaged on n2: 5-16, 20"


def test_events_heard_twice_are_shown_once() -> None:
    model = Model()
    elected = {
        "type": "io.nats.jetstream.advisory.v1.stream_leader_elected",
        "id": "one",
        "timestamp": format_time(T0),
        "stream": "S",
        "leader": "n2",
    }
    subject = "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.S"
    assert model.read_event(subject, elected, T0) is not None
    assert model.read_event(subject, elected, T0) is None
    again = {**elected, "id": "two", "timestamp": format_time(T0 + 1000)}
    assert model.read_event(subject, again, T0) is None, "another server said the same"
    later = {**elected, "id": "three", "timestamp": format_time(T0 + SECOND_NS)}
    assert model.read_event(subject, later, T0) is not None
    assert [one.said for one in model.snapshot(T0).events] == ["elected n2", "elected n2"]


def test_reads_are_no_events_and_refusals_are() -> None:
    model = Model()

    def audit(subject: str, response: str) -> object:
        document = {
            "type": "io.nats.jetstream.advisory.v1.api_audit",
            "subject": subject,
            "client": {"user": "deploy"},
            "response": response,
        }
        return model.read_event("$JS.EVENT.ADVISORY.API", document, T0)

    assert audit("$JS.API.STREAM.INFO.S", "{}") is None
    assert audit("$JS.API.STREAM.UPDATE.S", "{}") is not None
    assert audit("$JS.API.STREAM.DELETE.S", '{"error":{"code":404}}') is not None
    assert [(one.who, one.said) for one in model.snapshot(T0).events] == [
        ("deploy", "STREAM.UPDATE.S"),
        ("deploy", "STREAM.DELETE.S refused"),
    ]


def test_a_server_that_says_goodbye_is_missed_at_once() -> None:
    model = Model()
    pinged(model, T0, "n1", "n2", "n3")
    model.read_event("$SYS.SERVER.IDn3.SHUTDOWN", {"server": {"name": "n3"}}, T0)
    assert pinged(model, T0 + SECOND_NS, "n1", "n2").badge is Badge.DEGRADED


def test_a_lame_duck_that_was_started_again_is_none_any_more() -> None:
    """Its last word may be missed: who listened to it was sent away."""
    model = Model()
    pinged(model, T0, "n1", "n2", "n3")
    model.read_event("$SYS.SERVER.IDn3.LAMEDUCK", {"server": {"name": "n3"}}, T0)
    assert pinged(model, T0 + SECOND_NS, "n1", "n2", "n3").badge is Badge.DEGRADED
    again = statsz("n3", T0 + 2 * SECOND_NS)
    again.data["start"] = format_time(T0 + SECOND_NS)  # type: ignore[index] # made above
    model.read_servers([again], T0 + 2 * SECOND_NS)
    assert model.snapshot(T0 + 2 * SECOND_NS).badge is Badge.HEALTHY


def test_a_removed_server_is_not_missed() -> None:
    model = Model()
    pinged(model, T0, "n1", "n2", "n3")
    for second in (1, 2):
        now = pinged(model, T0 + second * SECOND_NS, "n1", "n2")
    assert now.badge is Badge.DEGRADED
    shrunk = statsz("n1", T0 + 3 * SECOND_NS)
    meta = shrunk.data["jetstream"]["meta"]  # type: ignore[index] # made above
    meta["replicas"], meta["cluster_size"] = meta["replicas"][:1], 2
    model.read_servers([shrunk, statsz("n2", T0 + 3 * SECOND_NS)], T0 + 3 * SECOND_NS)
    now = model.snapshot(T0 + 3 * SECOND_NS)
    assert [one.name for one in now.servers] == ["n1", "n2"]
    assert now.badge is Badge.HEALTHY


def test_peers_without_a_name_are_called_by_their_id() -> None:
    group = cluster_of("n1")
    unknown = "Server name unknown at this time (peerID: yrzKKRBu)"
    group["replicas"] = [{"name": unknown, "peer": "yrzKKRBu", "offline": True}]
    now = looked(Model(), T0, jsz("n1", T0, detail("S", group)))
    assert [peer.name for peer in now.streams[0].peers] == ["n1", "yrzKKRBu"]


def test_a_report_can_be_read_in_steps() -> None:
    model = Model()
    told = [jsz("n1", T0, *(detail(f"S{at}", cluster_of("n1")) for at in range(120)))]
    steps = model.details_in_steps(told, None, T0, whole=True)
    next(steps)
    assert not model.snapshot(T0).streams, "half a report is not shown"
    list(steps)
    assert len(model.snapshot(T0).streams) == 120


def test_broken_replies_do_no_harm() -> None:
    model = Model()
    model.read_servers([Told({"name": "n1"}, {"jetstream": None, "cpu": "much"})], T0)
    broken: Doc = {"account_details": [{"name": "A", "stream_detail": [{"name": "S"}, 7, None]}]}
    looked(model, T0, Told({"name": "n1"}, broken))
    model.read_event("$JS.EVENT.ADVISORY.X", {"type": 7}, T0)
    now = model.snapshot(T0)
    assert [one.name for one in now.streams] == ["S"]


@pytest.mark.parametrize(
    "odd",
    [float("inf"), float("-inf"), float("nan"), 10**400, -(10**400)],
    ids=["inf", "-inf", "nan", "huge", "-huge"],
)
def test_numbers_that_are_none_harm_nobody(odd: float) -> None:
    """JSON knows them, and whoever may publish advisories may write them."""
    model = Model()
    told = statsz("n1", T0)
    model.read_servers([Told(told.server, {**told.data, "cpu": odd, "mem": odd})], T0)
    consumer = {"name": "C", "num_pending": odd, "delivered": {"consumer_seq": odd}}
    stream = detail("S", cluster_of("n1"), consumer_detail=[consumer])
    stream["state"] = {"messages": odd, "last_seq": odd, "bytes": odd}
    stream["config"] = {"name": "S", "max_bytes": odd, "max_msgs": odd}
    for number in (1, 2):
        model.read_details([jsz("n1", T0 + number, stream)], None, T0 + number, whole=True)
    kind = "io.nats.jetstream.advisory.v1.max_deliver"
    assert model.read_event("$JS.EVENT", {"type": kind, "stream_seq": odd}, T0) is not None
    assert model.snapshot(T0 + 3).stream("A/S") is not None


def test_names_with_halves_of_characters_can_be_written_out() -> None:
    model = Model()
    model.read_servers([statsz("n\ud800", T0)], T0)
    stream = detail("S", cluster_of("n1"))
    stream["config"] = {"name": "S", "subjects": ["\udfff.>"]}
    model.read_details([jsz("n1", T0, stream)], None, T0, whole=True)
    document_of(model.snapshot(T0)).encode()


def test_lists_with_streams_that_lack_their_names_are_read() -> None:
    model = Model()
    model.read_lists([{"name": "S", "config": None}, {}], [], (), T0)
    assert {one.name for one in model.snapshot(T0).streams} == {"S", ""}
