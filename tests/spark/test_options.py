"""Options: what is taken, and what a wrong one is answered."""

import json
from dataclasses import fields
from pathlib import Path

import pytest

from jsctl.errors import NotFound, UsageError
from jsctl.settings import Context, Settings
from jsctl.spark.options import (
    CONNECTION_OPTIONS,
    LATEST,
    SINK_OPTIONS,
    SOURCE_OPTIONS,
    ReadMode,
    connection_options,
    secrets,
    sink_options,
    source_options,
)

GIVEN = {"servers": "nats://h:1", "stream": "S"}
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "spark.md"


def test_defaults_are_those_of_the_table() -> None:
    made = source_options(GIVEN)
    assert made.streams == ("S",)
    assert made.read_mode is ReadMode.AUTO
    assert made.fail_on_data_loss and not made.include_headers
    assert made.end.everywhere == LATEST
    assert made.connection.settings.urls == ["nats://h:1"]
    assert made.connection.outage_ns == 60 * 10**9


def test_names_are_not_case_sensitive() -> None:
    made = source_options({**GIVEN, "startingoffsets": '{"S": 7}', "MAXOFFSETSPERTRIGGER": "5"})
    assert made.start.of("S") == 7
    assert made.max_offsets == 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stream": "S"}, "neither option servers nor option context"),
        ({**GIVEN, "sream": "S"}, "unknown option sream"),
        ({"servers": "h"}, "either option stream or option streamPattern"),
        ({**GIVEN, "streamPattern": "S.*"}, "either option stream or option streamPattern"),
        ({"servers": "h", "streamPattern": "("}, "option streamPattern: '('"),
        ({**GIVEN, "stream": "a.b"}, "option stream: 'a.b'"),
        ({**GIVEN, "filterSubjects": "a..b"}, "option filterSubjects: 'a..b'"),
        ({**GIVEN, "minPartitions": "0"}, "option minPartitions: '0'"),
        ({**GIVEN, "failOnDataLoss": "yes"}, "option failOnDataLoss: 'yes'"),
        ({**GIVEN, "readMode": "push"}, "auto, consumer, direct"),
        ({**GIVEN, "timeout": "soon"}, "option timeout"),
        ({**GIVEN, "startingOffsets": "first"}, "option startingOffsets: 'first'"),
        ({**GIVEN, "startingOffsets": '{"S": "1"}'}, "option startingOffsets"),
        ({**GIVEN, "startingOffsets": '{"T": 1}'}, "startingOffsets and endingOffsets name T"),
        ({**GIVEN, "endingOffsets": "earliest"}, "option endingOffsets"),
        ({**GIVEN, "startingTimestamp": "monday"}, "option startingTimestamp: 'monday'"),
        (
            {**GIVEN, "startingTimestamp": "1", "startingOffsets": "latest"},
            "either option startingOffsets or option startingTimestamp",
        ),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        source_options(options)
    assert words in str(caught.value)


def test_a_misspelt_option_is_answered_with_its_name() -> None:
    with pytest.raises(UsageError) as caught:
        source_options({**GIVEN, "maxOffsetPerTrigger": "5"})
    assert caught.value.hints == ("did you mean maxOffsetsPerTrigger?",)


def test_a_sink_has_its_own_options() -> None:
    made = sink_options({"servers": "h", "subject": "a.b", "maxInFlight": "10"})
    assert (made.subject, made.max_in_flight) == ("a.b", 10)
    with pytest.raises(UsageError, match="subject"):
        sink_options({"servers": "h", "subject": "a.*"})
    with pytest.raises(UsageError, match="unknown option stream"):
        sink_options({"servers": "h", "stream": "S"})
    with pytest.raises(UsageError, match="stateBucket"):
        sink_options({"servers": "h", "stateBucket": "a.b"})


def test_a_context_of_the_operator_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "nats" / "context"
    directory.mkdir(parents=True)
    (directory / "prod.json").write_text(json.dumps({"url": "nats://p:1", "user": "u"}))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    made = source_options({"context": "prod", "stream": "S", "password": "pw"})
    connection = made.connection.settings.connection
    assert (connection.url, connection.user, connection.password) == ("nats://p:1", "u", "pw")
    with pytest.raises(NotFound, match="nope"):
        source_options({"context": "nope", "stream": "S"})


def test_a_selected_context_and_the_environment_do_not_leak_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("NATS_USER", "somebody")
    assert source_options(GIVEN).connection.settings.connection.user == ""


def test_settings_become_options_and_settings_again() -> None:
    texts = {f.name: f"v-{f.name}" for f in fields(Context) if f.type is str}
    texts["url"] = "nats://h:1"
    context = Context(**texts, tls_first=True)  # type: ignore[arg-type] # names are fields
    made = connection_options(Settings(connection=context, timeout_ns=7 * 10**9))
    again = source_options({**made, "stream": "S"}).connection.settings
    assert again.timeout_ns == 7 * 10**9
    for name in ("url", "user", "password", "token", "creds", "ca", "cert", "key", "tls_first"):
        assert getattr(again.connection, name) == getattr(context, name)
    assert set(secrets(made)) == {"v-password", "v-token", "v-user_jwt", "v-user_seed"}


def test_every_option_is_documented() -> None:
    text = DOCUMENT.read_text()
    for option in CONNECTION_OPTIONS + SOURCE_OPTIONS + SINK_OPTIONS:
        row = next((line for line in text.split("\n") if line.startswith(f"| `{option.name}`")), "")
        assert row, f"docs/spark.md has no row for {option.name}"
        if option.default:
            assert f"`{option.default}`" in row, row
