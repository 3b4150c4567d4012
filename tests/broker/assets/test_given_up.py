"""Replicas whose group went on without what they had: they begin anew, as ones that forgot all."""

import pytest

from jsctl.broker.raft.types import StandingKind
from tests.support.cluster_play import ClusterPlay
from tests.support.stream_requests import consumer, stream


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_who_begins_anew_knows_that_it_voted(storage: str) -> None:
    """It is no founder, although this very life of its server was one: with another one like it,
    it would elect a leader that has nothing."""
    cluster = ClusterPlay()
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream(storage=storage))
    cluster["n1"].request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **consumer())
    names = [cluster.group_of("S"), cluster.group_of("S", "C")]
    leaders = [cluster.leader(name) for name in names]
    late = next(one for one in cluster if one not in leaders)
    groups = late.engine.groups
    # Nothing that the meta group decided can come again.
    groups.checkpoints.soon(late.engine.meta.group)
    cluster.run(1)
    assert late.engine.meta.group.checkpointed == late.engine.meta.group.raft.applied
    cluster.isolate(late.name)
    before = {name: groups.by_name[name].raft for name in names}
    before[names[0]].superseded = True
    cluster.run(3)
    for name in names:
        raft = groups.by_name[name].raft
        assert raft is not before[name] and raft.standing.kind is StandingKind.UNKNOWN
        assert (raft.term, raft.vote) == (before[name].term, before[name].vote)
    cluster.cut.clear()
    cluster.wait(
        lambda: all(
            groups.by_name[name].raft.standing.kind is StandingKind.WHOLE for name in names
        ),
        "a leader fills them up",
    )
