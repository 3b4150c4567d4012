"""`auth account query` where the server sends something else than the account's JWT."""

import asyncio
from pathlib import Path

import nats
import pytest
from nats.aio.msg import Msg

from jsctl.auth.claims import Account, Head
from jsctl.auth.keys import KeyKind, generate
from jsctl.auth.token import Claims, sign
from jsctl.client.system import NO_RIGHTS
from jsctl.testing import BrokerFactory
from tests.support.forked import jsctl

pytestmark = pytest.mark.processes
OPERATOR, ASKED, OTHER = map(generate, (KeyKind.OPERATOR, KeyKind.ACCOUNT, KeyKind.ACCOUNT))
TOKEN, _ = sign(Claims(Head(sub=OTHER.public, name="OTHER"), Account()), OPERATOR, 1_700_000_000)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (b"", "did not receive a valid token from the server"),
        (b"\xff\xfe", "expected 3 chunks"),
        (b'{"error":"no"}', "expected 3 chunks"),
        (TOKEN.encode(), f"the server sent the token of {OTHER.public} for {ASKED.public}"),
        (TOKEN[:-4].encode() + b"AAAA", "claim failed V2 signature verification"),
    ],
    ids=["nothing", "no text", "an error", "somebody else", "forged"],
)
async def test_only_the_accounts_own_token_is_saved(
    jsctl_broker: BrokerFactory, tmp_path: Path, reply: bytes, told: str
) -> None:
    broker = jsctl_broker()

    async def answer(message: Msg) -> None:
        await message.respond(reply)

    client = await nats.connect(broker.url)
    await client.subscribe("$SYS.REQ.ACCOUNT.*.CLAIMS.LOOKUP", cb=answer)
    await client.flush()
    place = tmp_path / "saved"
    words = ["-s", broker.url, "auth", "account", "query", ASKED.public, str(place)]
    done = await asyncio.to_thread(jsctl, words)
    await client.close()
    assert (done.returncode, done.stderr) == (1, f"jsctl: error: {told}\n")
    assert not place.exists()


async def test_an_account_without_system_rights_is_told_so(jsctl_broker: BrokerFactory) -> None:
    words = ["-s", jsctl_broker().url, "auth", "account", "query", ASKED.public]
    done = await asyncio.to_thread(jsctl, words)
    assert (done.returncode, done.stderr) == (1, f"jsctl: error: {NO_RIGHTS}\n")
