"""Which groups there are: by name and by key, the same ones."""

import pytest

from jsctl.broker.replication.registry import GroupRegistry
from tests.support.groups_rig import lone_group


def test_a_group_is_found_by_name_and_by_key_until_it_is_removed() -> None:
    registry = GroupRegistry()
    group, other = lone_group("S-1"), lone_group("S-2")
    registry.add(group)
    registry.add(other)
    assert list(registry) == [group, other]
    assert registry.by_name["S-1"] is group and registry.of_key(b"S-1") is group
    registry.remove(group)
    assert list(registry) == [other] and registry.of_key(b"S-1") is None
    registry.clear()
    assert not list(registry) and registry.of_key(b"S-2") is None


def test_a_name_is_taken_once() -> None:
    registry = GroupRegistry()
    registry.add(lone_group("S-1"))
    with pytest.raises(AssertionError, match="S-1"):
        registry.add(lone_group("S-1"))
