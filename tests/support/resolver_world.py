"""An operator whose accounts are pushed to running servers, and who asks these about them."""

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsctl.auth.claims import Account, Activation, Head, Operator, OperatorLimits, User
from jsctl.auth.keys import KeyKind, KeyPair, generate
from jsctl.auth.token import Claims, sign
from jsctl.dataclass import replace
from jsctl.testing import Broker
from tests.support.login import Caller
from tests.support.operators import FREE, NO_STORAGE, Member, deletion, limits, now_s


class ResolverWorld:
    """An operator with a system account, and what it signs."""

    def __init__(self) -> None:
        self.pair = generate(KeyKind.OPERATOR)
        self.system = generate(KeyKind.ACCOUNT)
        said = Operator(system_account=self.system.public)
        self.token = sign(Claims(Head(name="O", sub=self.pair.public), said), self.pair, now_s())[0]
        self.system_token = self.account(self.system, Account(limits=limits(NO_STORAGE)))
        self.boss = self.user(self.system)

    def account(
        self,
        pair: KeyPair,
        said: Account | None = None,
        *,
        issuer: KeyPair | None = None,
        issued_s: int = 0,
        expires_s: int = 0,
        name: str = "A",
    ) -> str:
        """The JWT of an account; without a word it may do everything."""
        head = Head(name=name, sub=pair.public, exp=expires_s)
        given = said or Account()
        if given.limits == OperatorLimits():
            given = replace(given, limits=limits())
        return sign(Claims(head, given), issuer or self.pair, issued_s or now_s())[0]

    def user(self, account: KeyPair, *, issued_s: int = 0) -> Member:
        """A user of an account."""
        pair = generate(KeyKind.USER)
        claims = Claims(Head(name="u", sub=pair.public), User(rules=FREE))
        return Member(sign(claims, account, issued_s or now_s())[0], pair)

    def activation(self, giver: KeyPair, taker: KeyPair, subject: str, *, expires_s: int) -> str:
        """What lets an account import a service for a while."""
        said = Activation(subject=subject, kind="service")
        head = Head(name=subject, sub=taker.public, exp=expires_s)
        return sign(Claims(head, said), giver, now_s())[0]

    def deletion(self, *accounts: str, by: KeyPair | None = None, said: object = None) -> bytes:
        """An order to delete accounts; `said` stands in place of their list."""
        return deletion(by or self.pair, *accounts, said=said)

    def config(self, directory: str, more: str = "", preload: str = "") -> str:
        """Of a server with a resolver of type full."""
        return (
            f'operator: "{self.token}"\n'
            f'resolver {{ type: full, dir: "{directory}", {more} }}\n'
            f'resolver_preload {{ {self.system.public}: "{self.system_token}"\n{preload} }}\n'
        )

    def in_memory(self, *accounts: tuple[str, str]) -> str:
        """Of a server with all accounts in its file."""
        given = "\n".join(f'{name}: "{token}"' for name, token in accounts)
        return (
            f'operator: "{self.token}"\nresolver: MEMORY\n'
            f'resolver_preload {{ {self.system.public}: "{self.system_token}"\n{given} }}\n'
        )

    # Servers

    @contextlib.contextmanager
    def asking(self, server: Broker, user: Member | None = None) -> Iterator[Caller]:
        """A connection of a user, of the system account where none is named."""
        with Caller(server.port) as caller:
            assert caller.login((user or self.boss).login(caller.challenge)), caller.refusal
            yield caller

    def may_come(self, server: Broker, user: Member) -> bool:
        """Whether a user is let in."""
        with Caller(server.port) as caller:
            return caller.login(user.login(caller.challenge))

    def ask(self, server: Broker, subject: str, payload: bytes = b"") -> dict[str, Any]:
        """The answer of a server, without its head."""
        with self.asking(server) as caller:
            answer: dict[str, Any] = json.loads(caller.request(subject, payload)[1])
        head = answer.pop("server")
        assert head["name"] == server.name and head["seq"] > 0
        return answer

    def push(self, server: Broker, token: str) -> dict[str, Any]:
        """Give a server a JWT; what it says."""
        return self.ask(server, "$SYS.REQ.CLAIMS.UPDATE", token.encode())

    def look_up(self, server: Broker, account: str) -> str:
        """What a server has of an account."""
        with self.asking(server) as caller:
            return caller.request(f"$SYS.REQ.ACCOUNT.{account}.CLAIMS.LOOKUP")[1].decode()

    def look_up_here(self, server: Broker, account: str) -> str:
        """What this server alone has stored of an account."""
        place = re.search(r'type: full, dir: "([^"]*)"', server.config)
        assert place is not None
        path = Path(place.group(1)) / f"{account}.jwt"
        return path.read_text() if path.exists() else ""

    def listed(self, server: Broker) -> list[str]:
        """The accounts that a server has, but for the system account."""
        found = self.ask(server, "$SYS.REQ.CLAIMS.LIST")["data"]
        return sorted(one for one in found if one != self.system.public)
