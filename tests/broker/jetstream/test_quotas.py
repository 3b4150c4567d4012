"""Which limits count for what, with tiers and without."""

import pytest

from jsctl.api.errors import ApiError
from jsctl.broker.jetstream.quotas import ALL, AccountQuota, TierLimits, tier_name

FLAT = TierLimits(memory_max=10, store_max=20, memory_stream_bytes_max=3, store_stream_bytes_max=4)
THREE = TierLimits(tier="R3", memory_max=10, store_max=20)


def test_tiers_are_named_by_replicas() -> None:
    assert [tier_name(replicas) for replicas in (0, 1, 3)] == ["R1", "R1", "R3"]


def test_an_account_without_tiers_has_one_set_of_limits() -> None:
    quota = AccountQuota("A", tiers={ALL: FLAT})
    assert not quota.tiered and quota.tier(3) == ALL
    assert quota.limits(1) is quota.limits(3) is FLAT
    assert FLAT.covers(1) and FLAT.covers(3)


def test_an_account_with_tiers_has_nothing_else() -> None:
    quota = AccountQuota("A", tiers={"R3": THREE})
    assert quota.tiered and quota.tier(3) == "R3"
    assert quota.limits(3) is THREE and quota.maybe_limits(0) is None
    with pytest.raises(ApiError) as refused:
        quota.limits(1)
    assert refused.value.err_code == 10120
    assert THREE.covers(3) and not THREE.covers(1)


def test_an_account_that_nobody_limits_may_do_anything() -> None:
    assert AccountQuota("A").limits(5) == TierLimits()


def test_bytes_of_replicas_count_in_the_account_or_in_the_limit_of_the_tier() -> None:
    assert [FLAT.reserved(size, 3) for size in (5, 0, -1)] == [15, 0, 0]
    assert [THREE.reserved(size, 3) for size in (5, 0, -1)] == [5, 0, 0]
    assert FLAT.reserved(5, 0) == 5
    assert [FLAT.stored_max(3, memory=memory) for memory in (True, False)] == [10, 20]
    assert [THREE.stored_max(3, memory=memory) for memory in (True, False)] == [30, 60]
    assert TierLimits(tier="R1", store_max=20).stored_max(0, memory=False) == 20


@pytest.mark.parametrize(("most", "stored"), [(0, 0), (-1, -1)])
def test_nothing_and_no_limit_stay_so(most: int, stored: int) -> None:
    limits = TierLimits(tier="R3", store_max=most)
    assert limits.stored_max(3, memory=False) == stored


def test_each_kind_of_storage_has_its_own() -> None:
    assert [FLAT.bytes_max(memory=memory) for memory in (True, False)] == [10, 20]
    assert [FLAT.stream_bytes_max(memory=memory) for memory in (True, False)] == [3, 4]
