"""What `stream add` and `consumer add` ask on a terminal, and what comes of the answers."""

import json
import sys
from pathlib import Path

import pytest

from jsctl.testing import Broker
from tests.commands.parity.conftest import PASSWORD, Line, real
from tests.support.dialogues import Step, talked
from tests.support.nats_tool import NATS

LIMITS = (
    "--storage file --replicas 1 --retention limits --discard old --max-msgs=-1 --max-bytes=-1 "
    "--max-msgs-per-subject=-1 --max-age=-1 --max-msg-size=-1 --dupe-window 2m --no-allow-rollup "
    "--no-deny-delete --no-deny-purge"
)
NO_CONSUMER = "Configure a custom durable consumer (y/N)", "n"
STREAMS: tuple[tuple[str, tuple[Step, ...]], ...] = (
    (f"stream add D1 {LIMITS}", (("Subjects", "d1.a,d1.b d1.c"),)),
    (
        f"stream add D2 --mirror D1 {LIMITS}",
        (
            NO_CONSUMER,
            ("Adjust mirror start (y/N)", "y"),
            ("Mirror Start Sequence", ""),
            ("Mirror Start Time (YYYY:MM:DD HH:MM:SS)", "2026:01:02 03:04:05"),
            ("Adjust mirror filter and transform (y/N)", "y"),
            ("Filter mirror by subject (hit enter to finish)", "d1.a"),
            ("Subject transform destination", "x.a"),
            ("Filter mirror by subject (hit enter to finish)", ""),
            ("Import mirror from a different JetStream domain (y/N)", "y"),
            ("Foreign JetStream domain name", "hub"),
            ("Delivery prefix", "far"),
        ),
    ),
    (
        f"stream add D3 --mirror D1 {LIMITS}",
        (
            NO_CONSUMER,
            ("Adjust mirror start (y/N)", "y"),
            ("Mirror Start Sequence", "7"),
            ("Adjust mirror filter and transform (y/N)", ""),
            ("Import mirror from a different JetStream domain (y/N)", ""),
            ("Import mirror from a different account (y/N)", "y"),
            ("Foreign account API prefix", "far.api"),
            ("Foreign account delivery prefix", "far.deliver"),
        ),
    ),
    (
        f"stream add D4 --source D1 --source OTHER --subjects d4 {LIMITS}",
        (
            ('Configure a custom durable consumer for "D1" (y/N)', ""),
            ('Adjust source "D1" start (y/N)', "y"),
            ("D1 Source Start Sequence", "3"),
            ("D1 Source UTC Time Stamp (YYYY:MM:DD HH:MM:SS)", ""),
            ('Adjust source "D1" filter and transform (y/N)', "y"),
            ("Filter source by subject (hit enter to finish)", "d1.b"),
            ("Subject transform destination", ""),
            ("Filter source by subject (hit enter to finish)", ""),
            ('Import "D1" from a different JetStream domain (y/N)', "n"),
            ('Import "D1" from a different account (y/N)', "n"),
            ('Configure a custom durable consumer for "OTHER" (y/N)', ""),
            ('Adjust source "OTHER" start (y/N)', ""),
            ('Adjust source "OTHER" filter and transform (y/N)', ""),
            ('Import "OTHER" from a different JetStream domain (y/N)', "y"),
            ("OTHER Source foreign JetStream domain name", "hub"),
            ("OTHER Source foreign JetStream domain delivery prefix", ""),
        ),
    ),
)
CONSUMERS: tuple[tuple[str, tuple[Step, ...]], ...] = (
    (
        "consumer add D1",
        (
            ("Consumer name", "P"),
            ("Delivery target (empty for Pull Consumers)", "out"),
            ("Delivery Queue Group", "q"),
            ("Start policy", "subject"),
            ("Acknowledgment policy", ""),
            ("Replay policy", ""),
            ("Filter Stream by subjects", ""),
            ("Idle Heartbeat", "5s"),
            ("Enable Flow Control, ie --flow-control (y/N)", "y"),
            ("Deliver headers only without bodies (y/N)", "y"),
        ),
    ),
    (
        "consumer add D1 Q --pull --deliver last_per_subject",
        (
            ("Acknowledgment policy", ""),
            ("Replay policy", ""),
            ("Filter Stream by subjects", "d1.a d1.b"),
            ("Maximum Allowed Deliveries", "7"),
            ("Maximum Acknowledgments Pending", "9"),
            ("Deliver headers only without bodies (y/N)", ""),
            ("Add a Retry Backoff Policy (y/N)", "n"),
        ),
    ),
)
OTHERS: tuple[tuple[str, tuple[Step, ...]], ...] = (
    ("pub d1.a hello -J", ()),
    ("stream view D1 0", ()),
    ("stream view D1 26", ()),
    ("stream view D1 1 --id=-1", (("Next Page? (Y/n)", "y"),)),
    ("stream view D1 1 --since 0", (("Next Page? (Y/n)", "n"),)),
    (
        "stream get D1",
        (
            ("Message Sequence to retrieve (-1)", ""),
            ("Subject to retrieve last message for", "d1.a"),
        ),
    ),
    ("stream get D1", (("Message Sequence to retrieve (-1)", "1"),)),
    ("stream rmm D1", (("Message Sequence to remove", "1"), ("Really remove message 1", "y"))),
    (
        "consumer pause D1 Q",
        (("Pause until (time or duration)", "2h"), ("Really pause Consumer D1 > Q", "y")),
    ),
    ("consumer resume D1 Q", (("Really resume Consumer D1 > Q", "y"),)),
)
SHOWN = (
    *(f"stream info D{at} -j" for at in range(1, 5)),
    *(f"consumer info D1 {name} -j" for name in "PQ"),
)
REMOVED = tuple(f"stream rm D{at} -f" for at in range(1, 5))


@pytest.mark.processes
def test_dialogues_are_those_of_nats(one_server: Broker, tmp_path: Path) -> None:
    assert NATS is not None
    made: dict[str, list[object]] = {}
    for who, program in (("theirs", [NATS]), ("ours", [sys.executable, "-m", "jsctl"])):
        login = f"--server {one_server.url} --user {who} --password {PASSWORD}"
        for words, steps in (*STREAMS, *CONSUMERS, *OTHERS):
            assert talked(program, tmp_path, f"{words} {login}", steps) == 0, (who, words)
        said = [real(one_server, who, Line.of(words)) for words in SHOWN]
        made[who] = [json.loads(one.out)["config"] for one in said]
        assert all(real(one_server, who, Line.of(words)).code == 0 for words in REMOVED)
    assert made["ours"] == made["theirs"]
