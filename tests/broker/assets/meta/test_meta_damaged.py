"""A server whose meta state is damaged still knows what it promised in the groups it had."""

from jsctl.broker.raft.types import StandingKind
from tests.support.cluster_play import ClusterPlay
from tests.support.stream_requests import stream


def test_records_of_groups_outlive_a_damaged_meta_state() -> None:
    cluster = ClusterPlay()
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    group = cluster.group_of("S")
    leader = cluster.leader(group)
    (ack,) = leader.connect("a").request("s.x", b"1")
    assert b'"seq"' in ack
    damaged = next(one for one in cluster if one not in (leader, cluster.leader()))
    groups = damaged.engine.groups
    groups.checkpoints.soon(groups.by_name["_meta_"])
    cluster.run(1)
    before = damaged.engine.groups.by_name[group].raft
    promised = before.last_index, before.term
    damaged.halt()
    for path in damaged.disk.paths():
        if path.startswith("meta/state."):
            damaged.disk.flip_bit(path, 300)
    damaged.begin()
    cluster.wait(lambda: group in damaged.engine.groups.by_name, "the assignments are back")
    raft = damaged.engine.groups.by_name[group].raft
    assert raft.standing.kind is StandingKind.WHOLE
    assert (raft.last_index, raft.term) == promised, "its log and its vote are as they were"
    cluster.run(2)
    assert damaged.engine.assets.streams[("A", "S")].store.messages == 1
    assert not damaged.engine.assets.starter.doubtful
