"""Strange lines of `auth` and `jwt decode`, to `nats` and to jsctl: both say the same of them.

Missing and surplus words, empty and hostile values, limits at their ends, flags that contradict
each other, keys that do not fit. The lines of a file go on from each other.
"""

import base64
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from jsctl.auth.claims import Head, Operator
from jsctl.auth.keys import KeyKind, KeyPair, generate
from jsctl.auth.token import Claims, sign
from tests.commands.conftest import Result
from tests.support.real_cli import beside, differences, needs_nats

Run = Callable[..., Result]
pytestmark = [needs_nats, pytest.mark.processes]
LINES = Path(__file__).parent / "lines"


def made(kind: KeyKind, letter: str) -> KeyPair:
    return generate(kind, lambda count: letter.encode() * count)


USER = made(KeyKind.USER, "u")
CURVE, OTHER = made(KeyKind.CURVE, "c"), made(KeyKind.CURVE, "o")
OPERATOR = made(KeyKind.OPERATOR, "o")
TOKEN, _ = sign(Claims(Head(sub=OPERATOR.public, name="OP"), Operator()), OPERATOR, 1_700_000_000)
RAW = CURVE.seal(b"words", OTHER.public)
SEALED = base64.b64encode(RAW)
SIGNED = base64.urlsafe_b64encode(USER.sign(b"words")).rstrip(b"=")
FILES: dict[str, bytes] = {
    "empty": b"",
    "short": b"\0" * 5,
    "text": b"words",
    "user": USER.seed.encode(),
    "user.pub": USER.public.encode(),
    "both": f"{USER.seed}\n{USER.public}\n".encode(),
    "curve": CURVE.seed.encode(),
    "curve.pub": CURVE.public.encode(),
    "other": OTHER.seed.encode(),
    "other.pub": OTHER.public.encode(),
    "cut": USER.seed[:20].encode(),
    "lower": USER.seed.lower().encode(),
    "spaced": f"  {USER.seed}  \n".encode(),
    "later": f"words\n\n{USER.seed}\n".encode(),
    "windows": f"# words\r\n{USER.seed}\r\n".encode(),
    "signed": SIGNED,
    "wrong": b"A" * 86,
    "raw": RAW,
    "rawcut": RAW[:20],
    "rawnew": b"xkv2" + RAW[4:],
    "sealed": SEALED,
    "folded": "\n".join(textwrap.wrap(SEALED.decode(), 10)).encode(),
    "token": f"\n {TOKEN}\n\n".encode(),
    "decorated": f"-----BEGIN X-----\n{TOKEN}\n------END X------\n".encode(),
    "bom": f"\ufeff{TOKEN}".encode(),
}


def prepare(files: Path) -> None:
    (files / "folder").mkdir()
    for name, content in FILES.items():
        (files / name).write_bytes(content)


@pytest.mark.parametrize("name", sorted(path.stem for path in LINES.glob("*.txt")))
def test_strange_lines_do_the_same(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text = (LINES / f"{name}.txt").read_text()
    publics = {"USER": USER.public, "CURVE": CURVE.public, "OTHER": OTHER.public, "token": TOKEN}
    for word, value in publics.items():
        text = text.replace(f"{{{word}}}", value)
    pairs = beside(text.splitlines(), cli, tmp_path, monkeypatch, prepare)
    told = differences(pairs)
    assert not told, told
    for line, _, ours in pairs:
        lines = [one for one in ours.err.splitlines() if not one.startswith("  ")]
        assert ours.code == 0 or len([one for one in lines if one]) == 1, (line, ours.err)
