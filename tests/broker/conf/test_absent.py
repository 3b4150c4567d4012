"""Blocks that nothing listens for: what is asked of processes, asked of the grammar."""

import base64
import binascii

import pytest

from jsctl.broker.conf.mapper import from_text
from jsctl.broker.errors import ConfigErrors
from jsctl.broker.nkey import KeyKind, is_seed
from tests.contract.test_absent_blocks import BAD, GOOD
from tests.support.configurations import Bad
from tests.support.login import Seed


@pytest.mark.parametrize("name", list(GOOD))
def test_what_is_right_is_warned_of_alone(name: str) -> None:
    found = from_text(GOOD[name], "x.conf", {})
    block = name.partition(",")[0]
    assert [one for one in found.options.warnings if f'"{block}" has no effect' in one]
    assert found.strict_errors == ()


@pytest.mark.parametrize("bad", BAD)
def test_what_is_wrong_is_told_with_place_and_remedy(bad: Bad) -> None:
    with pytest.raises(ConfigErrors) as caught:
        from_text(bad, "x.conf", {})
    assert any(bad.said in str(one) for one in caught.value.errors)
    assert all(one.place.startswith("x.conf:") and one.remedy for one in caught.value.errors)


def test_seeds_of_users() -> None:
    seed = Seed(1)
    assert is_seed(seed.text, KeyKind.USER)
    assert not is_seed(seed.text, KeyKind.ACCOUNT)
    assert not is_seed(seed.public, KeyKind.USER)
    assert not is_seed(seed.text[:-1] + ("A" if seed.text[-1] != "A" else "B"), KeyKind.USER)
    assert not is_seed("S" + "1" * 57, KeyKind.USER)
    assert not is_seed("é" * 58, KeyKind.USER)
    public = bytes([KeyKind.USER, 0]) + bytes(32)
    public += binascii.crc_hqx(public, 0).to_bytes(2, "little")
    assert not is_seed(base64.b32encode(public).decode().rstrip("="), KeyKind.USER)
