"""Commands of `server` that need no server, beside the real tool."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.conftest import Result
from tests.support.real_cli import beside, differences, needs_nats

Run = Callable[..., Result]
pytestmark = [pytest.mark.processes]

LINES = (
    "server mappings a b a",
    "server mappings a b c",
    "server mappings 'a.*' 'b.$1' a.xy-z",
    "server mappings 'a.*' 'b.$2' a.x",
    "server mappings 'a.>' 'b.>' a.x.y",
    "server mappings a 'b.>' a",
    "server mappings 'a.*.>' b a.x",
    "server mapping 'a.*' b a.x",
    "server mappings a..b c a",
    "server mappings 'a.*.*' 'x.{{wildcard(2)}}.{{Wildcard(1)}}' a.1.2",
    "server mappings 'a.*' 'b.{{partition(3,1)}}' a.xy-z",
    "server mappings 'a.*' 'b.{{bad(1)}}' a.x",
    "server mappings 'a.*' 'b.{{split(1,-)}}' a.xy-z",
    "server mappings 'a.*' 'b.{{left(9,1)}}' a.x",
    "server mappings 'a.*' '{{partition(x)}}' a.x",
    "server mappings 'a.*' 'b.*' a.x",
    "server mappings '*' '{{SliceFromLeft(1,2)}}' abcde",
    "server mappings 'a.*' 'b.{{wildcard()}}' a.x",
    "server mappings 'a.*.*' 'b.{{wildcard(1,2)}}' a.x.y",
    "server mappings 'a.*' 'b.{{wildcard(3)}}' a.x",
    "server mappings",
    "server mappings a",
    "server passwd",
    "server passwd -p short",
    "server passwd -p 1234567890 -c 3",
    "server passwd -p 1234567890 -c 32",
    "server mkpasswd nope",
)


@needs_nats
def test_the_same_words_do_the_same(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = differences(beside(LINES, cli, tmp_path, monkeypatch))
    assert not told, told


def test_a_hash_is_of_its_password(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import bcrypt

    found = cli("server", "passwd", "-p", "correct horse", "-c", "4").out.strip()
    assert found.startswith("$2a$04$")
    assert bcrypt.checkpw(b"correct horse", found.encode())
    made = dict(
        line.strip().split(": ", 1)
        for line in cli("server", "passwd", "-c", "4", "-g").out.splitlines()
    )
    assert len(made["Generated password"]) == 22
    assert bcrypt.checkpw(made["Generated password"].encode(), made["bcrypt hash"].encode())
    monkeypatch.setenv("PASSWORD", "from elsewhere")
    found = cli("server", "passwd", "-c", "4").out.strip()
    assert bcrypt.checkpw(b"from elsewhere", found.encode())
    assert cli("server", "passwd", "-p", "ü" * 40).code == 1
    found = cli("server", "passwd", "-c", "4", "-p", "ten bytes \udcff").out.strip()
    assert bcrypt.checkpw(b"ten bytes \xff", found.encode())
