"""Leaders and peers: step-down, peer-remove, balance."""

import json
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from jsctl.api.cluster import ClusterInfo, PeerInfo
from jsctl.commands.toolkit.assets.leaders import plan_moves
from tests.commands.conftest import Result
from tests.support.waiting import wait_for

Run = Callable[..., Result]
SERVERS = ("n1", "n2", "n3")


def leader(run: Run, *words: str) -> str:
    """The leader, once there is one; a leaderless group does not answer."""

    def named() -> str:
        text = run(*words, "-j", "--timeout", "2s").out
        return str(json.loads(text)["cluster"].get("leader", "")) if text else ""

    return wait_for(named, "a leader")


def test_a_stream_gets_another_leader(run: Run) -> None:
    words = ("stream", "add", "G", "--subjects", "g", "--replicas", "3", "--defaults")
    assert run(*words).code == 0
    old = leader(run, "stream", "info", "G")
    result = run("stream", "cluster", "step-down", "G")
    assert result.code == 0, result.err
    lines = [line.partition(" ")[2] for line in result.err.splitlines()]
    assert lines[0] == (
        f'Requesting leader step down of "{old}" for stream "G" in a 3 peer cluster group'
    )
    assert lines[-1].startswith('New leader elected "')
    assert result.out.startswith("\nInformation for Stream G created ")
    wanted = next(name for name in SERVERS if name != leader(run, "stream", "info", "G"))
    result = run("s", "c", "sd", "G", "--preferred", wanted)
    assert f'New leader elected "{wanted}"' in result.err


def test_a_consumer_gets_another_leader(run: Run) -> None:
    run("stream", "add", "G", "--subjects", "g", "--replicas", "3", "--defaults")
    run("consumer", "add", "G", "C", "--pull", "--defaults")
    old = leader(run, "consumer", "info", "G", "C")
    result = run("consumer", "cluster", "step-down", "G", "C")
    assert result.code == 0, result.err
    assert f'Requesting leader step down of "{old}" in a 3 peer RAFT group' in result.err
    assert 'New leader elected "' in result.err


def test_a_peer_is_removed(run: Run) -> None:
    run("stream", "add", "G", "--subjects", "g", "--replicas", "2", "--defaults")
    document = json.loads(run("stream", "info", "G", "-j").out)["cluster"]
    peer = document["replicas"][0]["name"]
    result = run("stream", "cluster", "peer-remove", "G", peer)
    assert result.code == 0, result.err
    assert f'Removing peer "{peer}"' in result.err
    assert f'Requested removal of peer "{peer}"' in result.err

    def gone() -> bool:
        found = json.loads(run("stream", "info", "G", "-j").out).get("cluster", {})
        return peer not in [one["name"] for one in found.get("replicas", [])]

    wait_for(gone, "the peer leaves the stream")


def test_single_copies_have_no_group_to_change(run: Run) -> None:
    run("stream", "add", "G", "--subjects", "g", "--defaults")
    result = run("stream", "cluster", "step-down", "G")
    assert result.err == 'jsctl: error: stream "G" is not clustered\n'
    for force in ((), ("-f",)):
        refused = run("stream", "cluster", "peer-remove", "G", "n1", *force)
        assert refused.code == 1
        assert 'jsctl: error: stream "G" is not clustered\n' in refused.err


def test_balance_always_says_what_it_did(run: Run) -> None:
    assert run("stream", "cluster", "balance").out == ""
    run("stream", "add", "G", "--subjects", "g", "--defaults")
    assert run("stream", "cluster", "balance").out == "Balanced 0 streams.\n"
    assert run("consumer", "cluster", "balance", "G").out == "No consumers on G\n"


def test_balance_spreads_leaders(run: Run) -> None:
    for number in range(3):
        name = f"B{number}"
        run("stream", "add", name, "--subjects", name, "--replicas", "3", "--defaults")
        if leader(run, "stream", "info", name) != "n1":
            run("stream", "cluster", "step-down", name, "--preferred", "n1")
    result = run("stream", "cluster", "balance")
    assert result.code == 0, result.err
    assert result.out == "Balanced 2 streams.\n"
    for line in (
        "Found cluster C1 with a balanced distribution of 1\n",
        "Cluster C1 has 3 available peers\n",
        "Nats server 'n1' is the lead of 3 entities with a offset of 2\n",
        "Nats server 'n2' is the lead of 0 entities with a offset of -1\n",
        "Requesting leader 'n1' step down for stream 'B0'. New preferred leader is n2.\n",
        'New leader elected "n2"\n',
    ):
        assert line in result.err

    def spread() -> bool:
        return {leader(run, "stream", "info", f"B{n}") for n in range(3)} == set(SERVERS)

    wait_for(spread, "every server leads one stream")


@given(st.lists(st.sampled_from(SERVERS), max_size=12))
def test_a_plan_ends_balanced(leaders: list[str]) -> None:
    groups = {
        f"S{at}": ClusterInfo(
            name="C",
            leader=name,
            replicas=tuple(PeerInfo(name=peer, current=True) for peer in SERVERS if peer != name),
        )
        for at, name in enumerate(leaders)
    }
    counts = {name: leaders.count(name) for name in SERVERS}
    moves = plan_moves(groups)
    for _, source, target in moves:
        counts[source] -= 1
        counts[target] += 1
    assert max(counts.values()) - min(counts.values()) <= 1
    assert len({name for name, _, _ in moves}) == len(moves)
