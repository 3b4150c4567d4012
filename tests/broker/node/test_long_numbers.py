"""Numbers of thousands of digits, which the interpreter does not convert: whoever tells one hears
that it is none, and the server goes on."""

import pytest

from tests.support.node_play import NodePlay, PlayClient

LONG = "9" * 5000
ZEROS = "0" * 5000


def started() -> tuple[NodePlay, PlayClient]:
    """A node with a stream, and a client of its account."""
    play = NodePlay()
    client = play.connect("a")
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["s"])
    return play, client


def goes_on(play: NodePlay) -> bool:
    """Whether nothing unforeseen happened."""
    play.run(2)
    return play.exit is None and not play.faults


@pytest.mark.parametrize("text", [LONG, f"+{LONG}%", "9223372036854775808"])
def test_of_how_many_acks_is_told(text: str) -> None:
    play, client = started()
    config = {"durable_name": "C", "ack_policy": "explicit", "sample_freq": text}
    answer = client.ask("$JS.API.CONSUMER.DURABLE.CREATE.S.C", stream_name="S", config=config)
    number = text.removesuffix("%")
    assert answer["error"]["description"] == (
        f'failed to parse consumer sampling configuration: strconv.Atoi: parsing "{number}":'
        " value out of range"
    )
    assert goes_on(play)


@pytest.mark.parametrize("text", [ZEROS, f"-{ZEROS}%", f"{ZEROS}7", "9223372036854775807"])
def test_zeros_in_front_count_for_nothing(text: str) -> None:
    play, client = started()
    config = {"durable_name": "C", "ack_policy": "explicit", "sample_freq": text}
    answer = client.ask("$JS.API.CONSUMER.DURABLE.CREATE.S.C", stream_name="S", config=config)
    assert answer["config"]["sample_freq"] == text
    assert goes_on(play)


@pytest.mark.parametrize(("stream", "consumer"), [(LONG, "1"), ("1", LONG), (ZEROS, "0")])
def test_an_answer_to_flow_control(stream: str, consumer: str) -> None:
    play, client = started()
    client.subscribe("d")
    config = {
        "durable_name": "C",
        "deliver_subject": "d",
        "ack_policy": "flow_control",
        "flow_control": True,
        "idle_heartbeat": 10**9,
    }
    client.ask("$JS.API.CONSUMER.DURABLE.CREATE.S.C", stream_name="S", config=config)
    for _ in range(40):
        client.publish("s", b"x" * 3000)
    play.run(1)
    asked = [reply for _, reply, _ in client.messages if reply.startswith("$JS.FC.")]
    told = f"NATS/1.0\r\nNats-Last-Stream: {stream}\r\nNats-Last-Consumer: {consumer}\r\n\r\n"
    client.publish(asked[-1], headers=told.encode())
    assert goes_on(play)
    assert client.ask("$JS.API.CONSUMER.INFO.S.C")["num_ack_pending"] == 40


def test_the_status_of_an_origin() -> None:
    play, client = started()
    client.subscribe("far.>")
    mirror = {"name": "X", "external": {"api": "far.api", "deliver": "far.d"}}
    client.ask("$JS.API.STREAM.CREATE.M", name="M", mirror=mirror)
    asked = [reply for subject, reply, _ in client.messages if subject.startswith("far.api.")]
    client.publish(asked[-1], headers=f"NATS/1.0 {LONG}\r\n\r\n".encode())
    assert goes_on(play)


@pytest.mark.parametrize(
    "token", ["{{wildcard(%s)}}", "$%s", "{{partition(%s)}}", "{{left(1,%s)}}"]
)
def test_what_subjects_become(token: str) -> None:
    play, client = started()
    transform = {"src": "t.*", "dest": f"x.{token % LONG}"}
    answer = client.ask(
        "$JS.API.STREAM.CREATE.T", name="T", subjects=["t.*"], subject_transform=transform
    )
    assert answer["error"]["err_code"] == 10156
    assert goes_on(play)
