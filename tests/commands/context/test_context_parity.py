"""`jsctl context` and `nats context`: the same words, each with contexts of its own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.conftest import Result
from tests.support.real_cli import beside, differences, needs_nats

Run = Callable[..., Result]
pytestmark = [needs_nats, pytest.mark.processes]

LINES = (
    "context ls",
    "context ls -j",
    "context ls --names",
    "context info",
    "context info nope",
    "context unselect",
    "context select",
    "context select nope",
    "context previous",
    "context validate",
    "context add",
    "context add a",
    "context add b --server nats://x:1 --user u --password p --description Second --select",
    "context add c --creds /nope.creds --description x",
    "context add d --user u --password p --creds /nope.creds",
    "context add e --nkey nsc://a/b/c --js-domain hub --js-api-prefix p --js-event-prefix q"
    " --inbox-prefix _I --socks-proxy socks5://x:1 --tlsfirst --colors red",
    "context add f --token secret --timeout 200ms",
    "context add g --jwt JWT --seed SEED",
    "context add bad/name",
    "context add x..y",
    "context ls",
    "context ls --names",
    "context ls --completion",
    "context info",
    "context info a",
    "context info e",
    "context show f",
    "context view g",
    "context info b -j",
    "context info a --connect --timeout 200ms",
    "context select a",
    "context previous",
    "context copy a z --description copied",
    "context copy a z",
    "context cp nope y",
    "context rm z",
    "context rm z -f",
    "context rm z",
    "context rm a",
    "context rm a -f",
    "context edit nope",
    "context validate f",
    "context validate nope",
    "context unselect",
    "context unselect",
    "context select b",
    "context save b --socks-proxy none --description ''",
    "context rm nope -f",
    "context info --context b",
    "context -",
)


EXPECTED = frozenset(
    {
        "context ls -j",
        "context -",
        "context add b --server nats://x:1 --user u --password p --description Second --select",
        "context add f --token secret --timeout 200ms",
        "context add g --jwt JWT --seed SEED",
        "context show f",
        "context view g",
        "context info a --connect --timeout 200ms",
        "context rm z",
        "context validate f",
        "context validate nope",
        "context save b --socks-proxy none --description ''",
        "context info --context b",
    }
)
"""Where they differ on purpose; docs/differences.md says why."""


def test_the_same_words_do_the_same(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = beside(LINES, cli, tmp_path, monkeypatch)
    told = differences([pair for pair in pairs if pair[0] not in EXPECTED])
    assert not told, told
