"""`schema`: the same names, structures and judgements."""

import json
from pathlib import Path

import pytest

from tests.commands.conftest import Result
from tests.commands.parity.conftest import NATS, Same
from tests.commands.test_command_line import Run
from tests.support.nats_tool import nats

SAME = """
schema ls 'stream.*request'
schema find zzz
schema ls names --json
schema search '[' --x
schema info stream_names_request
schema info
schema validate io.nats.jetstream.api.v1.stream_configuration nofile
schema validate io.nats.jetstream.api.v1.stream_configuration good.json
schema validate io.nats.jetstream.api.v1.stream_configuration good.json --json
schema request '$JS.API.INFO'
schema request '$JS.API.STREAM.INFO.NONE' --schema io.nats.jetstream.api.v1.stream_info_response
schema request '$JS.API.STREAM.INFO.NONE' --schema io.nats.x
"""
CONFIG = {
    "name": "A",
    "retention": "limits",
    "storage": "file",
    "num_replicas": 1,
    "max_consumers": -1,
    "max_msgs": -1,
    "max_bytes": -1,
    "max_age": 0,
}
WRONG: list[tuple[str, object]] = [
    ("stream_configuration", {"name": "A b", "max_msgs": "x", "num_replicas": 9, "zzz": 1}),
    ("stream_configuration", {**CONFIG, "retention": "foo", "subjects": ["a", 1], "a/b": 2}),
    ("stream_configuration", {**CONFIG, "name": "a.b", "max_msgs_per_subject": -5}),
    ("stream_configuration", {**CONFIG, "consumer_limits": {"inactive_threshold": "x"}}),
    ("stream_configuration", {**CONFIG, "sources": [{"name": ""}], "no_ack": 1, "mirror": []}),
    ("stream_configuration", [1]),
    ("stream_configuration", None),
    ("consumer_configuration", {"deliver_policy": "by_start_sequence", "replay_policy": 1.5}),
    ("stream_names_response", {"type": "x", "total": -1}),
    ("stream_names_response", {"type": "x", "total": 1.0, "offset": 0, "limit": 0, "streams": []}),
    ("stream_msg_get_response", {"type": "x", "message": {"subject": 1, "time": "no"}}),
]
SHOWN = (
    "stream_configuration",
    "consumer_create_request",
    "stream_info_response",
    "pub_ack_response",
)


def test_schemas(same: Same) -> None:
    Path("good.json").write_text(json.dumps(CONFIG))
    same(SAME)


@pytest.mark.skipif(NATS is None, reason="the nats tool is not installed")
def test_what_is_wrong_is_told_alike(cli: Run, tmp_path: Path) -> None:
    """In another order: that of `nats` is random. Empty lines of it say nothing."""
    path = tmp_path / "d.json"
    for short, document in WRONG:
        name = f"io.nats.jetstream.api.v1.{short}"
        path.write_text(json.dumps(document))
        words = ("schema", "validate", name, str(path), "--json")
        theirs = nats(*words)
        ours: Result = cli(*words)
        wanted = {one for one in json.loads(theirs.stdout) if not one.endswith(": ") and one}
        assert (ours.code, set(json.loads(ours.out))) == (0, wanted), (short, document)


@pytest.mark.skipif(NATS is None, reason="the nats tool is not installed")
@pytest.mark.parametrize("short", SHOWN)
def test_schemas_have_the_same_structure(short: str, cli: Run) -> None:
    words = ("schema", "info", f"io.nats.jetstream.api.v1.{short}")
    theirs = nats(*words)
    assert json.loads(cli(*words).out) == without_sentences(json.loads(theirs.stdout))


def without_sentences(part: object, *, names: bool = False) -> object:
    if isinstance(part, list):
        return [without_sentences(one) for one in part]
    if not isinstance(part, dict):
        return part
    told = ("description", "$comment", "deprecationMessage")
    return {
        key: without_sentences(value, names=not names and key in ("properties", "definitions"))
        for key, value in part.items()
        if names or key not in told
    }


@pytest.mark.skipif(NATS is None, reason="the nats tool is not installed")
def test_the_list_has_all(cli: Run) -> None:
    """And one that `nats` shows and does not list."""
    words = ("schema", "search", "--json")
    theirs = nats(*words)
    more = set(json.loads(cli(*words).out)) ^ set(json.loads(theirs.stdout))
    assert more == {"io.nats.jetstream.advisory.v1.api_limit_reached"}


def test_what_is_no_document_is_refused(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("x")
    name = "io.nats.jetstream.api.v1.stream_configuration"
    done: Result = cli("schema", "check", name, str(tmp_path / "no.json"))
    assert (done.code, "could not parse JSON data" in done.err) == (1, True)
    done = cli("schema", "check", "stream_configuration", str(tmp_path / "no.json"))
    assert (done.code, "unsupported schema type" in done.err) == (1, True)


def test_a_detailed_status_tells_whether_it_is_right(
    cli: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "d.json"
    path.write_text("{}")
    words = ("schema", "validate", "io.nats.jetstream.api.v1.stream_configuration", str(path))
    assert cli(*words).code == 0
    monkeypatch.setenv("JSCTL_EXIT", "detailed")
    assert cli(*words).code == 6
    path.write_text(json.dumps(CONFIG))
    assert cli(*words).code == 0
    assert cli("schema", "info", "stream_configuration").code == 3
