"""Errors of the API: requests that raise them on both servers, and none that no test raises."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jsctl.api.error_table import ROWS
from tests.contract.conftest import KINDS
from tests.support.waiting import wait_for
from tests.support.wire_client import WireClient

ROOT = Path(__file__).parents[2]
SECOND = 1_000_000_000
CONFIG = """
jetstream {
    limits { max_request_batch: 100, max_ack_pending: 5000, duplicate_window: "10m" }
}
"""
STREAMS: tuple[dict[str, Any], ...] = (
    {"name": "E", "subjects": ["e.>"]},
    {"name": "W", "subjects": ["w.>"], "retention": "workqueue"},
    {"name": "W1", "subjects": ["w1.>"], "retention": "workqueue"},
    {"name": "I", "subjects": ["i.>"], "retention": "interest"},
    {
        "name": "L",
        "subjects": ["l.>"],
        "consumer_limits": {"inactive_threshold": 60 * SECOND, "max_ack_pending": 10},
    },
)
EXPLICIT = {"ack_policy": "explicit"}
PUSH = {**EXPLICIT, "deliver_subject": "deliver.here"}
FLOW = {
    "ack_policy": "flow_control",
    "deliver_subject": "deliver.here",
    "flow_control": True,
    "idle_heartbeat": SECOND,
}
LONG = "n" * 256
CONSUMERS: tuple[tuple[int, str, dict[str, Any]], ...] = (
    # code, what follows CONSUMER. (with the stream), config
    (10017, "DURABLE.CREATE.E.a", {**EXPLICIT, "durable_name": "b"}),
    (10018, "DURABLE.CREATE.E.a", EXPLICIT),
    (10020, "CREATE.E", {**EXPLICIT, "durable_name": "a"}),
    (10079, "CREATE.E.a", {**PUSH, "deliver_subject": "deliver.*"}),
    (10080, "CREATE.E.a", {**PUSH, "max_waiting": 1}),
    (10081, "CREATE.E.a", {**PUSH, "deliver_subject": "e.a"}),
    (10082, "CREATE.E.a", {**PUSH, "ack_policy": "none", "max_ack_pending": 1}),
    (10083, "CREATE.E.a", {**PUSH, "idle_heartbeat": 1}),
    (10084, "CREATE.W.a", {"ack_policy": "none"}),
    (10086, "CREATE.E.a", {**EXPLICIT, "rate_limit_bps": 1}),
    (10088, "CREATE.E.a", {**EXPLICIT, "idle_heartbeat": SECOND}),
    (10089, "CREATE.E.a", {**EXPLICIT, "flow_control": True}),
    (10090, "CREATE.E.a", {**EXPLICIT, "direct": True}),
    (10091, "CREATE.E.a", {**PUSH, "direct": True, "durable_name": "a"}),
    (10095, "CREATE.E.a", {**EXPLICIT, "sample_freq": "some"}),
    (10095, "CREATE.E.a", {**EXPLICIT, "sample_freq": "-1"}),
    (10098, "CREATE.W1.a", {**PUSH, "ack_policy": "all"}),
    (10099, "CREATE.W.a", EXPLICIT),
    (10100, "CREATE.W.a", {**EXPLICIT, "filter_subject": "w.*"}),
    (10101, "CREATE.W1.a", {**EXPLICIT, "deliver_policy": "new"}),
    (10102, f"DURABLE.CREATE.E.{LONG}", {**EXPLICIT, "durable_name": LONG}),
    (10107, "CREATE.E.a", {**EXPLICIT, "description": "d" * 4097}),
    (10108, "CREATE.E.a", {**PUSH, "flow_control": True}),
    (10112, "CREATE.E.a", {**PUSH, "deliver_subject": "a..b"}),
    (10115, "CREATE.E.a", {**EXPLICIT, "max_expires": 1}),
    (10116, "CREATE.E.a", {**EXPLICIT, "max_deliver": 1, "backoff": [SECOND, SECOND]}),
    (10121, "CREATE.L.a", {**EXPLICIT, "max_ack_pending": 11}),
    (10121, "CREATE.E.a", {**EXPLICIT, "max_ack_pending": 5001}),
    (10125, "CREATE.E.a", {**EXPLICIT, "max_batch": 101}),
    (10133, "CREATE.E.a", {**EXPLICIT, "num_replicas": -1}),
    (10127, "CREATE.E.a/b", EXPLICIT),
    (10131, "CREATE.E.a.e.x", {**EXPLICIT, "filter_subject": "e.y"}),
    (10135, "CREATE.E.a", {**EXPLICIT, "metadata": {"m": "v" * 200_000}}),
    (10136, "CREATE.E.a", {**EXPLICIT, "filter_subject": "e.x", "filter_subjects": ["e.y"]}),
    (10137, "CREATE.E.a.e.x", {**EXPLICIT, "filter_subjects": ["e.x"]}),
    (10138, "CREATE.E.a", {**EXPLICIT, "filter_subjects": ["e.x", "e.*"]}),
    (10139, "CREATE.E.a", {**EXPLICIT, "filter_subjects": [""]}),
    (10153, "CREATE.L.a", {**EXPLICIT, "inactive_threshold": 61 * SECOND}),
    (10159, "CREATE.E.a", {**EXPLICIT, "priority_policy": "overflow"}),
    (10161, "CREATE.E.a", {**EXPLICIT, "priority_policy": "overflow", "priority_groups": [""]}),
    (10162, "CREATE.E.a", {**EXPLICIT, "priority_policy": "overflow", "priority_groups": ["*"]}),
    (10178, "CREATE.E.a", {**PUSH, "priority_policy": "overflow", "priority_groups": ["g"]}),
    (10183, "CREATE.E.a", {**EXPLICIT, "ack_wait": -1}),
    (10184, "CREATE.E.a", {**EXPLICIT, "backoff": [-1]}),
    (10196, "CREATE.E.a", {**EXPLICIT, "priority_groups": ["g"]}),
    (10197, "CREATE.E.a", {**EXPLICIT, "priority_timeout": SECOND}),
    (10218, "CREATE.E.a", {"ack_policy": "flow_control"}),
    (10220, "CREATE.E.a", {**FLOW, "max_ack_pending": -1}),
    (10221, "CREATE.E.a", {**FLOW, "ack_wait": SECOND}),
    (10222, "CREATE.E.a", {**FLOW, "max_deliver": 3}),
)


def consumer(config: dict[str, Any], where: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """A request for a consumer."""
    tokens = where.split(".")
    stream = tokens[2 if where.startswith("DURABLE") else 1]
    return f"CONSUMER.{where}", {"stream_name": stream, "config": config, **more}


def stream(**config: Any) -> tuple[str, dict[str, Any]]:
    """A request for a stream that is not there."""
    return "STREAM.CREATE.X", {"name": "X", "subjects": ["x.>"], **config}


TRANSFORM = {"src": "x..>", "dest": "y.>"}
OUTSIDE = {"name": "F", "external": {"api": "$JS.hub.API", "deliver": "e"}}
LOWER = {"inactive_threshold": 60 * SECOND, "max_ack_pending": 5}
OTHERS: tuple[tuple[int, tuple[str, dict[str, Any]]], ...] = (
    (10013, consumer({**PUSH, "durable_name": "p", "deliver_subject": "d.other"}, "CREATE.E.p")),
    (10148, consumer({**EXPLICIT, "durable_name": "c"}, "CREATE.E.c", action="create")),
    (10149, consumer({**EXPLICIT, "durable_name": "n"}, "CREATE.E.n", action="update")),
    (10157, consumer({**EXPLICIT, "max_deliver": -2}, "CREATE.E.a", pedantic=True)),
    (10219, consumer({**FLOW, "flow_control": False}, "CREATE.E.a", pedantic=True)),
    (10022, stream(sources=[{"name": "E"}, OUTSIDE])),
    (10069, ("STREAM.UPDATE.L", {**STREAMS[4], "consumer_limits": LOWER})),
    (10128, ("STREAM.CREATE.a/b", {"name": "a/b"})),
    (10133, stream(num_replicas=-1)),
    (10155, stream(subject_transform={"src": "x..>", "dest": "y.>"})),
    (10156, stream(subject_transform={"src": "x.*", "dest": "y.{{wildcard(2)}}"})),
    (10157, stream(max_msgs=-2, pedantic=True)),
    (10052, stream(duplicate_window=11 * 60 * SECOND)),
)
MADE: tuple[tuple[str, dict[str, Any]], ...] = (
    consumer({**EXPLICIT, "durable_name": "c", "description": "one"}, "CREATE.E.c"),
    consumer({**PUSH, "durable_name": "p", "deliver_subject": "d.bound"}, "CREATE.E.p"),
    consumer({**PUSH, "durable_name": "m", "deliver_subject": "d.mirror"}, "CREATE.E.m"),
    consumer({**EXPLICIT, "durable_name": "w"}, "CREATE.W.w", action="create"),
    consumer({**EXPLICIT, "durable_name": "l", "max_ack_pending": 10}, "CREATE.L.l"),
)
REQUESTS = (*((code, consumer(config, where)) for code, where, config in CONSUMERS), *OTHERS)


@pytest.fixture(scope="module", params=list(KINDS))
def client(request: pytest.FixtureRequest) -> Iterator[WireClient]:
    """Of a server with some streams and consumers."""
    with KINDS[str(request.param)](config=CONFIG, name="errors") as server:
        connection = WireClient(server.url)
        connection.send(b"SUB d.bound bound\r\n")
        for one in STREAMS:
            assert "error" not in ask(connection, f"STREAM.CREATE.{one['name']}", one)
        for subject, body in MADE:
            assert "error" not in ask(connection, subject, body)
        yield connection
        connection.close()


def ask(client: WireClient, subject: str, body: dict[str, Any]) -> dict[str, Any]:
    """The answer."""
    payload = client.request(b"$JS.API." + subject.encode(), json.dumps(body).encode())
    found: dict[str, Any] = json.loads(payload)
    return found


def test_each_code_has_its_request(client: WireClient) -> None:
    found = [ask(client, subject, body) for _, (subject, body) in REQUESTS]
    codes = [one.get("error", {}).get("err_code") for one in found]
    assert codes == [code for code, _ in REQUESTS]


def test_the_code_of_a_mirror(client: WireClient) -> None:
    origin = {"name": "E", "consumer": {"name": "m", "deliver_subject": "d.mirror"}}
    assert "error" not in ask(client, "STREAM.CREATE.M", {"name": "M", "mirror": origin})

    def failed() -> Any:
        return ask(client, "STREAM.INFO.M", {})["mirror"].get("error")

    assert wait_for(failed, "an error of the mirror")["err_code"] == 10214


def test_every_code_is_raised() -> None:
    """By its number or its name in some test; the others are in a table, with the reason."""
    table = (ROOT / "docs" / "differences.md").read_text()
    shown = table.split("<!-- errors: begin -->")[1].split("<!-- errors: end -->")[0]
    told = dict(re.findall(r"^\| (\d+) \| (\w+) \| .+", shown, re.MULTILINE))
    known = {str(code): name for name, _, code, _ in ROWS}
    tests = words((ROOT / "tests").rglob("*.py"))
    raised = {code for code, name in known.items() if {name, code} & tests}
    assert told.items() <= known.items()
    assert set(told) | raised == set(known)
    assert set(told) & raised == set(), "it is raised after all"
    path = ROOT / "jsctl" / "api" / "error_table.py"
    ours = words(one for one in (ROOT / "jsctl").rglob("*.py") if one != path)
    assert {name for name in told.values() if name in ours} == set(), "the broker has words for it"


def words(paths: Iterable[Path]) -> set[str]:
    """All names and numbers in some files."""
    return {word for path in paths for word in re.findall(r"\w+", path.read_text())}
