"""Plain publish and subscribe, through nats-py and on the bare socket."""

import asyncio
import json
import socket

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import MaxPayloadError, NoRespondersError

from jsctl.testing import Broker
from tests.support.pulling import settled
from tests.support.waiting import eventually

WAIT_S = 30.0


async def texts(subscription: Subscription, count: int) -> list[str]:
    found: list[str] = []
    for _ in range(count):
        message = await subscription.next_msg(timeout=WAIT_S)
        found.append(f"{message.subject} {message.data.decode()}")
    return found


async def test_wildcards_match_tokens(client: Client, other: Client, fresh: str) -> None:
    star = await client.subscribe(f"{fresh}.*.c")
    full = await client.subscribe(f"{fresh}.>")
    plain = await client.subscribe(f"{fresh}.a.c")
    await settled(client)
    for subject in ("a.c", "b.c", "a.b.c", "a"):
        await other.publish(f"{fresh}.{subject}", subject.encode())
    await settled(other)
    assert await texts(star, 2) == [f"{fresh}.a.c a.c", f"{fresh}.b.c b.c"]
    assert len(await texts(full, 4)) == 4
    assert await texts(plain, 1) == [f"{fresh}.a.c a.c"]
    await settled(client)
    assert [one.pending_msgs for one in (star, full, plain)] == [0, 0, 0]


async def test_a_queue_group_gets_each_message_once(
    client: Client, other: Client, fresh: str
) -> None:
    seen: list[str] = []

    async def take(message: Msg) -> None:
        seen.append(message.data.decode())

    members = [
        await owner.subscribe(fresh, queue="q", cb=take)
        for owner in (client, other)
        for _ in range(2)
    ]
    await settled(client)
    await settled(other)
    for number in range(200):
        await client.publish(fresh, str(number).encode())

    async def all_here() -> bool:
        return len(seen) >= 200

    await eventually(all_here, "200 messages in the group")
    assert sorted(seen, key=int) == [str(number) for number in range(200)]
    assert all(member.delivered > 10 for member in members)


async def test_request_and_reply(client: Client, other: Client, fresh: str) -> None:
    async def answer(message: Msg) -> None:
        await message.respond(message.data.upper())

    await other.subscribe(fresh, cb=answer)
    await settled(other)
    answers = await asyncio.gather(
        *(client.request(fresh, f"m{n}".encode(), timeout=WAIT_S) for n in range(20))
    )
    assert [one.data for one in answers] == [f"M{n}".encode() for n in range(20)]


async def test_nobody_answers(client: Client, fresh: str) -> None:
    with pytest.raises(NoRespondersError):
        await client.request(fresh, b"?", timeout=WAIT_S)


async def test_headers_keep_order_case_and_repeats(
    client: Client, other: Client, fresh: str
) -> None:
    subscription = await client.subscribe(fresh)
    await settled(client)
    await other.publish(fresh, b"body", headers={"X-One": "1", "x-two": "a b"})
    message = await subscription.next_msg(timeout=WAIT_S)
    assert (message.headers, message.data) == ({"X-One": "1", "x-two": "a b"}, b"body")
    await other.publish(fresh, b"", headers={"Empty": "e"})
    assert (await subscription.next_msg(timeout=WAIT_S)).data == b""


async def test_unsubscribe_after_a_number(client: Client, other: Client, fresh: str) -> None:
    subscription = await client.subscribe(fresh)
    await subscription.unsubscribe(limit=3)
    await settled(client)
    for number in range(5):
        await other.publish(fresh, str(number).encode())
    await settled(other)
    assert await texts(subscription, 3) == [f"{fresh} {number}" for number in range(3)]
    await settled(client)
    with pytest.raises(NoRespondersError):
        await other.request(fresh, b"", timeout=WAIT_S)


async def test_no_echo(broker: Broker, other: Client, fresh: str) -> None:
    import nats

    quiet = await nats.connect(broker.url, no_echo=True, allow_reconnect=False, connect_timeout=30)
    subscription = await quiet.subscribe(fresh)
    await quiet.publish(fresh, b"own")
    await settled(quiet)
    await other.publish(fresh, b"theirs")
    assert await texts(subscription, 1) == [f"{fresh} theirs"]
    await quiet.close()


async def test_a_large_payload_and_one_too_large(client: Client, other: Client, fresh: str) -> None:
    subscription = await client.subscribe(fresh)
    await settled(client)
    body = bytes(range(256)) * 4096
    assert client.max_payload == len(body)
    await other.publish(fresh, body)
    assert (await subscription.next_msg(timeout=WAIT_S)).data == body
    with pytest.raises(MaxPayloadError):
        await other.publish(fresh, body + b"x")


def test_who_listens_twice_gets_message_by_message(broker: Broker, fresh: str) -> None:
    """Two subscriptions of one connection: nothing of a message comes behind the next one."""
    sizes = [5] * 30 + list(range(1, 30))
    said = [f"SUB {fresh}.* 1\r\nSUB {fresh}.> 2\r\n"]
    said += [
        f"PUB {fresh}.a {size}\r\n{str(number % 10) * size}\r\n"
        for number, size in enumerate(sizes)
    ]
    said += [f"PUB {fresh}.b{number} 5\r\n{number:05d}\r\n" for number in range(30)]
    with (
        socket.create_connection(("127.0.0.1", broker.port), WAIT_S) as peer,
        peer.makefile("rb") as stream,
    ):
        connect = 'CONNECT {"verbose":false,"pedantic":false}\r\n'
        peer.sendall((connect + "".join(said) + "PING\r\n").encode())
        heard: list[bytes] = []
        while (line := stream.readline()) != b"PONG\r\n":
            assert line
            if line.startswith(b"MSG"):
                heard.append(line.split()[1] + b" " + stream.readline().strip())
    assert len(heard) == 2 * (len(sizes) + 30)
    assert heard[::2] == heard[1::2]


async def test_drain_delivers_the_rest(client: Client, other: Client, fresh: str) -> None:
    seen: list[bytes] = []

    async def take(message: Msg) -> None:
        seen.append(message.data)

    subscription = await client.subscribe(fresh, cb=take)
    await settled(client)
    for number in range(50):
        await other.publish(fresh, str(number).encode())
    await settled(other)
    await subscription.drain()  # type: ignore[no-untyped-call] # as nats-py has it
    assert len(seen) == 50


async def test_silence_after_unsubscribe(client: Client, other: Client, fresh: str) -> None:
    seen: list[bytes] = []

    async def take(message: Msg) -> None:
        seen.append(message.data)

    subscription = await client.subscribe(fresh, cb=take)
    marker = await client.subscribe(f"{fresh}.marker")
    await subscription.unsubscribe()
    await settled(client)
    await other.publish(fresh, b"lost")
    await other.publish(f"{fresh}.marker", b"x")
    assert (await marker.next_msg(timeout=WAIT_S)).data == b"x"
    assert seen == []


LINES: dict[str, tuple[dict[str, object], str, str]] = {
    "verbose": ({"verbose": True}, "SUB a 1\r\nPING\r\n", "+OK +OK PONG"),
    "quiet": ({"verbose": False}, "SUB a 1\r\nPING\r\n", "PONG"),
    "echo": ({}, "SUB a 1\r\nPUB a 2\r\nhi\r\nPING\r\n", "MSG a 1 2|hi|PONG"),
    "reply": ({}, "SUB a 7\r\nPUB a back 2\r\nhi\r\nPING\r\n", "MSG a 7 back 2|hi|PONG"),
    "empty": ({}, "SUB a 1\r\nPUB a 0\r\n\r\nPING\r\n", "MSG a 1 0||PONG"),
    "max": (
        {},
        "SUB a 1\r\nUNSUB 1 1\r\nPUB a 0\r\n\r\nPUB a 0\r\n\r\nPING\r\n",
        "MSG a 1 0||PONG",
    ),
    "case": ({}, "sub a 1\r\npub a 1\r\nx\r\nping\r\n", "MSG a 1 1|x|PONG"),
    "tabs": ({}, "SUB\ta\t1\r\nPUB\ta\t1\r\nx\r\nPING\r\n", "MSG a 1 1|x|PONG"),
    "unknown": ({}, "HELLO\r\n", "-ERR 'Unknown Protocol Operation'"),
    "pedantic": (
        {"pedantic": True},
        "PUB a.*.b 0\r\n\r\nPING\r\n",
        "-ERR 'Invalid Publish Subject'|PONG",
    ),
    "bad subject": ({}, "SUB a..b 1\r\nPING\r\n", "-ERR 'Invalid Subject'|PONG"),
    "no responders": (
        {"headers": True, "no_responders": True},
        "SUB in 1\r\nPUB nobody in 0\r\n\r\nPING\r\n",
        "HMSG in 1 38 38|NATS/1.0 503|Nats-Subject: nobody|||PONG",
    ),
    "headers": (
        {"headers": True},
        "SUB a 1\r\nHPUB a 18 20\r\nNATS/1.0\r\nA: b\r\n\r\nhi\r\nPING\r\n",
        "HMSG a 1 18 20|NATS/1.0|A: b||hi|PONG",
    ),
}


@pytest.mark.parametrize("case", LINES)
def test_bytes_on_the_socket(broker: Broker, case: str) -> None:
    options, said, expected = LINES[case]
    connect = {"verbose": False, "lang": "test", "version": "1", "protocol": 1} | options
    with (
        socket.create_connection(("127.0.0.1", broker.port), WAIT_S) as peer,
        peer.makefile("rb") as stream,
    ):
        assert stream.readline().startswith(b"INFO {")
        peer.sendall(f"CONNECT {json.dumps(connect)}\r\n{said}".encode())
        lines: list[str] = []
        while not lines or not (lines[-1] == "PONG" or lines[-1].startswith("-ERR 'Un")):
            line = stream.readline()
            if not line:
                break
            lines.append(line.decode().rstrip("\r\n"))
    heard = [line for line in lines if not line.startswith("INFO")]
    assert "|".join(heard).replace("+OK|", "+OK ") == expected


INFO = {
    *("server_id", "server_name", "version", "proto", "go", "host", "port", "headers"),
    *("max_payload", "jetstream", "client_id", "client_ip", "api_lvl"),
}
OF_EITHER = [{"git_commit", "xkey"}, {"jsctl_version"}]


def test_what_a_server_says_of_itself(broker: Broker) -> None:
    with (
        socket.create_connection(("127.0.0.1", broker.port), WAIT_S) as peer,
        peer.makefile("rb") as stream,
    ):
        first = json.loads(stream.readline().removeprefix(b"INFO "))
        peer.sendall(b'CONNECT {"verbose":false,"protocol":1}\r\nPING\r\n')
        assert stream.readline() == b"PONG\r\n"
        second = json.loads(stream.readline().removeprefix(b"INFO "))
    own = first.keys() - INFO
    assert own in OF_EITHER and first.keys() == INFO | own
    assert second.keys() - first.keys() == {"connect_info", "remote_account"}
    assert {key: second[key] for key in first} == first
    assert (second["connect_info"], second["remote_account"]) == (True, "$G")
