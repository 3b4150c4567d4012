"""Accounts with JetStream by tiers: as an operator signs them, and as a broker is configured."""

from collections.abc import Mapping

from jsctl.auth.claims import Account, JetStreamLimits
from jsctl.broker.options import AccountJetStream, AccountOptions
from jsctl.dataclass import dataclass, replace
from tests.support.node_play import user
from tests.support.operators import FREE, STORES, OperatorWorld, limits

ANY = STORES
"""A tier without limits."""
Tiers = Mapping[str, JetStreamLimits]


@dataclass(frozen=True, slots=True)
class Operated:
    """What the configuration of a server in operator mode says, and the JWT of a user of each
    account, who needs no key."""

    config: str
    users: dict[str, str]


def operated(accounts: Mapping[str, Tiers]) -> Operated:
    """An operator with these accounts, and one for the system."""
    world = OperatorWorld()
    bearing = replace(FREE, bearer_token=True)
    for name, tiers in accounts.items():
        world.account(name, Account(limits=limits(tiers=tiers)))
    users = {name: world.user(name, rules=bearing).token for name in accounts}
    return Operated(world.config(), users)


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
