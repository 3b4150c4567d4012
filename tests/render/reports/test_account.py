"""What an account may use, as a screen."""

from jsctl.api.account import AccountInfo, AccountLimits, AccountTier
from jsctl.render.reports.account.limits import account_screen


def test_the_screen_of_an_account() -> None:
    limits = AccountLimits(max_memory=-1, max_storage=1024, max_streams=5, max_consumers=-1)
    info = AccountInfo(storage=512, streams=2, limits=limits, reserved_storage=100)
    text = account_screen(info).render()
    assert "Tier: Default:" in text
    assert "Storage: 512 B of 1.0 KiB (100 B reserved)" in text
    assert "Streams: 2 of 5" in text
    tiered = account_screen(AccountInfo(tiers={"R3": AccountTier(limits=limits)})).render()
    assert "Tier: R3:" in tiered
