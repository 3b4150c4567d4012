"""What origins keep for those that mirror or source them, and for how long."""

import pytest

from tests.broker.assets.replicas.test_inbound import config, create, held, publish, seqs
from tests.support.node_play import NodePlay, PlayClient


def retain(client: PlayClient, retention: str) -> None:
    """The origin keeps messages by another rule."""
    client.ask("$JS.API.STREAM.UPDATE.O", **config("O", subjects=["o.>"], retention=retention))


@pytest.mark.parametrize("kind", ["mirror", "source"])
def test_an_origin_that_begins_to_let_go_of_what_was_consumed(
    play: NodePlay, client: PlayClient, kind: str
) -> None:
    """Nothing is missing, and nothing is kept once it is stored elsewhere."""
    declared = {"mirror": {"name": "O"}} if kind == "mirror" else {"sources": [{"name": "O"}]}
    create(client, "S", **declared)
    publish(client, "o.1")
    play.run(1)
    retain(client, "interest")
    for _ in range(12):
        publish(client, "o.2")
        play.run(1)
    assert len(consumers(client, "O")) == 1
    assert len(seqs(client, "S")) == 13
    play.run(30)
    assert seqs(client, "O") == []


def test_an_origin_keeps_nothing_for_long_for_who_does_not_ask_again(
    play: NodePlay, client: PlayClient
) -> None:
    create(client, "S", sources=[{"name": "O"}])
    publish(client, "o.1")
    play.run(1)
    retain(client, "interest")
    client.ask("$JS.API.STREAM.DELETE.S")
    publish(client, "o.2")
    play.run(1)
    assert seqs(client, "O") == [1, 2]
    play.run(30)
    assert seqs(client, "O") == []


def test_an_origin_that_keeps_all_again_lets_go_of_nothing(
    play: NodePlay, client: PlayClient
) -> None:
    create(client, "S", sources=[{"name": "O"}])
    publish(client, "o.1")
    play.run(1)
    for retention in ("interest", "limits"):
        retain(client, retention)
        publish(client, "o.2")
        play.run(1)
    play.run(40)
    assert seqs(client, "O") == seqs(client, "S") == [1, 2, 3]


def test_a_work_queue_keeps_what_its_taker_does_not_store(
    play: NodePlay, client: PlayClient
) -> None:
    """From the first message on, of which no position tells that it is stored."""
    create(client, "W", subjects=["w"], retention="workqueue")
    client.request("w", b"too large")
    create(client, "S", sources=[{"name": "W"}], max_msg_size=5)
    play.run(5)
    assert seqs(client, "S") == [] and seqs(client, "W") == [1]


def consumers(client: PlayClient, name: str) -> list[str]:
    return client.ask(f"$JS.API.CONSUMER.NAMES.{name}")["consumers"] or []


def test_a_work_queue_keeps_nothing_for_a_stream_that_is_deleted(
    play: NodePlay, client: PlayClient
) -> None:
    create(client, "W", subjects=["w"], retention="workqueue")
    create(client, "S", sources=[{"name": "W"}])
    play.run(1)
    assert len(consumers(client, "W")) == 1
    client.ask("$JS.API.STREAM.DELETE.S")
    play.run(1)
    assert consumers(client, "W") == []


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
@pytest.mark.parametrize("before", [1, 2])
def test_nothing_is_kept_or_lost_for_a_source_that_has_another_name_now(
    play: NodePlay, client: PlayClient, before: int, retention: str
) -> None:
    """It depends on how many there are of one stream: whoever leads next asks by that name. The
    consumer of before goes when there is another one."""
    create(client, "W", subjects=["w.*"], retention=retention)
    both = [{"name": "W", "filter_subject": f"w.{number}"} for number in (1, 2)]
    create(client, "S", sources=both[:before])
    publish(client, "w.1", "w.1")
    play.run(1)
    assert len(consumers(client, "W")) == before
    after = both[: 3 - before]
    listener = play.connect("a")
    listener.subscribe("$JS.API.CONSUMER.*.W.>")
    client.ask("$JS.API.STREAM.UPDATE.S", **config("S", sources=after))
    publish(client, "w.1")
    play.run(3)
    names = consumers(client, "W")
    assert len(names) == len(after)
    assert len(held(client, "S")) == 3 and seqs(client, "W") == []
    asked = [to.split(".") for to, _, _ in listener.messages]
    said = [words[3] for words in asked if words[-1] == "1" or words[5] not in names]
    assert said[-2:] == ["CREATE", "DELETE"]
    again = NodePlay(disk=play.disk).connect("a")
    assert sorted(consumers(again, "W")) == sorted(names)
