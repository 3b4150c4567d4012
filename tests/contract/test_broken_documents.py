"""Bodies of requests that are nearly JSON, or say a thing twice: what both servers make of them."""

import json

import pytest
from nats.aio.client import Client

from tests.contract.test_atomic_batches import ask

NUMBER = "json: cannot unmarshal number"
REFUSED: dict[bytes, str] = {
    # Of what is given twice both have to fit.
    b'{"offset":"x","offset":1}': (
        "json: cannot unmarshal string into Go struct field "
        "JSApiStreamListRequest.offset of type int"
    ),
    b'{"subject":[],"offset":"x","subject":1}': (
        "json: cannot unmarshal array into Go struct field "
        "JSApiStreamListRequest.subject of type string"
    ),
    # Numbers are told as they were written.
    b'{"offset":1e400}': (
        f"{NUMBER} 1e400 into Go struct field JSApiStreamListRequest.offset of type int"
    ),
    b'{"subject":1e400}': (
        f"{NUMBER} into Go struct field JSApiStreamListRequest.subject of type string"
    ),
    # Names that cannot be read are told in escapes.
    b'{"a\\nb":1}': r'json: unknown field "a\nb"',
    b'{"a\\"b":1}': r'json: unknown field "a\"b"',
    # An escape is told as long as a whole one would be.
    b'{"\\u12yzzz":1}': r"invalid escape sequence `\u12yz` in string at offset 8",
    b'{"a":"\\u1"}': r'invalid escape sequence `\u1"}` in string at offset 11',
    '{"\\u1é23":1}'.encode(): r"invalid escape sequence `\u1é2` in string at offset 8",
    '{"\\é":1}'.encode(): r'invalid escape sequence "\\\xc3" in string at offset 4',
    b'{"\\u\n\n\n\n":1}': r'invalid escape sequence "\\u\n\n\n\n" in string at offset 8',
    b'{"\\u123': "unexpected EOF",
}


@pytest.mark.parametrize("body", REFUSED)
async def test_what_is_refused(client: Client, body: bytes) -> None:
    answer = json.loads((await client.request("$JS.API.STREAM.LIST", body)).data)
    assert answer["error"]["description"] == f"invalid JSON: {REFUSED[body]}"


async def created(client: Client, name: str, body: str) -> dict[str, object]:
    """What comes of a request for a stream."""
    answer = await client.request(f"$JS.API.STREAM.CREATE.{name}", body.encode(), timeout=30)
    found: dict[str, object] = json.loads(answer.data)
    return found


async def test_a_zero_with_a_sign(client: Client, fresh: str) -> None:
    sequence = await created(client, fresh, f'{{"name":"{fresh}","first_seq":-0}}')
    assert sequence["error"]["description"] == (  # type: ignore[index]
        "invalid JSON: json: cannot unmarshal number -0 into Go struct field "
        "StreamConfigRequest.first_seq of type uint64"
    )
    word = await created(client, fresh, f'{{"name":"{fresh}","retention":-0}}')
    assert word["error"]["description"].endswith('unmarshal "-0"')  # type: ignore[index]
    assert "error" not in await created(client, fresh, f'{{"name":"{fresh}","max_age":-0}}')


async def test_what_is_said_twice_adds_up(client: Client, fresh: str) -> None:
    kept = [f"y.{fresh}", f"z.{fresh}"]
    one = {"metadata": {"a": "1", "b": "2"}, "max_msgs": 5, "subjects": [f"x.{fresh}"]}
    two = {"metadata": {"b": "3"}, "max_msgs": None, "subjects": kept, "name": fresh}
    made = await created(client, fresh, f"{json.dumps(one)[:-1]},{json.dumps(two)[1:]}")
    config = made["config"]
    assert isinstance(config, dict)
    metadata = {key: value for key, value in config["metadata"].items() if len(key) == 1}
    assert metadata == {"a": "1", "b": "3"}
    assert (config["max_msgs"], config["subjects"]) == (5, kept)


async def test_an_update_that_is_silent_about_the_durable_name(client: Client, fresh: str) -> None:
    await ask(client, f"STREAM.CREATE.{fresh}", {"name": fresh})
    subject = f"CONSUMER.CREATE.{fresh}.c"
    config = {"name": "c", "durable_name": "c", "ack_policy": "explicit"}
    await ask(client, subject, {"stream_name": fresh, "config": config})
    del config["durable_name"]
    made = await ask(client, subject, {"stream_name": fresh, "config": config})
    assert "durable_name" not in made["config"]
    assert "inactive_threshold" not in made["config"]  # or it would end after seconds
