"""Accounts with JetStream by tiers: as an operator signs them, and as a broker is configured."""

from collections.abc import Mapping
from dataclasses import replace

from jsctl.auth.claims import (
    UNLIMITED,
    Account,
    AccountLimits,
    Head,
    JetStreamLimits,
    Operator,
    OperatorLimits,
    User,
    UserPermissionLimits,
)
from jsctl.auth.keys import KeyKind, KeyPair, generate
from jsctl.auth.token import Claims, sign
from jsctl.broker.options import AccountJetStream, AccountOptions
from jsctl.dataclass import dataclass
from tests.support.node_play import user

ISSUED_S = 1_700_000_000
ANY = JetStreamLimits(mem_storage=-1, disk_storage=-1, streams=-1, consumer=-1)
"""A tier without limits."""
ALL_ELSE = OperatorLimits(
    nats=UNLIMITED, account=AccountLimits(imports=-1, exports=-1, wildcards=True, conn=-1, leaf=-1)
)
Tiers = Mapping[str, JetStreamLimits]


@dataclass(frozen=True, slots=True)
class Operated:
    """What the configuration of a server in operator mode says, and the JWT of a user of each
    account, who needs no key."""

    config: str
    users: dict[str, str]


def operated(accounts: Mapping[str, Tiers]) -> Operated:
    """An operator with these accounts, and one for the system."""
    operator, system = generate(KeyKind.OPERATOR), generate(KeyKind.ACCOUNT)
    owner = Operator(system_account=system.public)
    preload = [(system.public, _account("SYS", system, operator, {}))]
    users = {}
    for name, tiers in accounts.items():
        tenant, someone = generate(KeyKind.ACCOUNT), generate(KeyKind.USER)
        preload.append((tenant.public, _account(name, tenant, operator, tiers)))
        who = User(rules=UserPermissionLimits(nats=UNLIMITED, bearer_token=True))
        users[name] = sign(Claims(Head(sub=someone.public, name=name), who), tenant, ISSUED_S)[0]
    own = sign(Claims(Head(sub=operator.public, name="O"), owner), operator, ISSUED_S)[0]
    lines = "\n".join(f"    {public}: {token}" for public, token in preload)
    config = f"operator: {own}\nresolver: MEMORY\nresolver_preload {{\n{lines}\n}}\n"
    return Operated(config, users)


def _account(name: str, key: KeyPair, operator: KeyPair, tiers: Tiers) -> str:
    limits = replace(ALL_ELSE, tiered_limits=dict(tiers))
    claims = Claims(Head(sub=key.public, name=name), Account(limits=limits))
    return sign(claims, operator, ISSUED_S)[0]


def options(accounts: Mapping[str, Tiers]) -> tuple[AccountOptions, ...]:
    """The same accounts in a configuration, each with a user of its name in small letters."""
    return (
        *(
            AccountOptions(
                name=name,
                users=(user(name.lower()),),
                jetstream=AccountJetStream(
                    tiers=tuple((tier, _limits(given)) for tier, given in tiers.items())
                ),
            )
            for name, tiers in accounts.items()
        ),
        AccountOptions(name="$SYS", users=(user("sys"),)),
    )


def _limits(given: JetStreamLimits) -> AccountJetStream:
    return AccountJetStream(
        memory_bytes_max=given.mem_storage,
        store_bytes_max=given.disk_storage,
        streams_max=given.streams,
        consumers_max=given.consumer,
        ack_pending_max=given.max_ack_pending or -1,
        memory_stream_bytes_max=given.mem_max_stream_bytes or -1,
        store_stream_bytes_max=given.disk_max_stream_bytes or -1,
        stream_bytes_required=given.max_bytes_required,
    )
