"""What servers tell each other of the use that accounts make of them; with its bytes."""

from jsctl.broker.peers.frame_codec import FrameReader, FrameWriter
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AccountUse:
    """What an account uses on the sender. Bytes; API requests since the sender's start."""

    account: str
    memory: int
    store: int
    api_total: int
    api_errors: int


@dataclass(frozen=True, slots=True)
class TierUse:
    """The part of an account's bytes on the sender that is in one of the account's tiers."""

    account: str
    tier: str
    memory: int
    store: int


def write_account(out: FrameWriter, item: AccountUse) -> None:
    """An account."""
    out.text(item.account)
    for number in (item.memory, item.store, item.api_total, item.api_errors):
        out.i64(number)


def read_account(data: FrameReader) -> AccountUse:
    """Inverse."""
    return AccountUse(data.text(), data.i64(), data.i64(), data.i64(), data.i64())


def write_tier(out: FrameWriter, item: TierUse) -> None:
    """A tier."""
    out.text(item.account)
    out.text(item.tier)
    out.i64(item.memory)
    out.i64(item.store)


def read_tier(data: FrameReader) -> TierUse:
    """Inverse."""
    return TierUse(data.text(), data.text(), data.i64(), data.i64())
