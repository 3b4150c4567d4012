"""Claims whose fields have other types than they declare."""

from dataclasses import replace

import pytest

from jsctl.api.codec import DecodeError
from jsctl.auth.claims import (
    Account,
    Head,
    JetStreamLimits,
    OperatorLimits,
    ResponsePermission,
    UserScope,
    WeightedMapping,
)
from jsctl.auth.shapes import check_shape

SOUND = (
    Head(sub="A", iat=2**63 - 1, nbf=-(2**63)),
    Account(signing_keys=("A", {"kind": "user_scope"}), rest={"later": [1]}),
    Account(mappings={"a": (WeightedMapping("b", 5),)}, revocations={"*": 5}),
    OperatorLimits(tiered_limits={"R1": JetStreamLimits(disk_storage=-1)}),
    UserScope(template=replace(UserScope().template, bearer_token=True)),
)


@pytest.mark.parametrize("value", SOUND)
def test_claims_have_the_types_that_they_declare(value: object) -> None:
    check_shape(value)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Head(sub=5), "sub"),  # type: ignore[arg-type] # what a document may hold
        (Head(iat="x"), "iat"),  # type: ignore[arg-type]
        (Head(iat=True), "iat"),
        (Head(iat=2**63), "iat"),
        (Head(iat=1.5), "iat"),  # type: ignore[arg-type]
        (Account(imports=[]), "imports"),  # type: ignore[arg-type]
        (Account(imports=({},)), "imports"),  # type: ignore[arg-type]
        (Account(mappings={"a": ("b",)}), "mappings"),  # type: ignore[dict-item]
        (Account(revocations={"*": ""}), "revocations"),  # type: ignore[dict-item]
        (Account(limits=None), "limits"),  # type: ignore[arg-type]
        (Account(trace=5), "trace"),  # type: ignore[arg-type]
        (OperatorLimits(tiered_limits={"": JetStreamLimits(streams=True)}), "streams"),
        (ResponsePermission(ttl="1s"), "ttl"),  # type: ignore[arg-type]
    ],
)
def test_any_other_type_is_told_with_its_field(value: object, name: str) -> None:
    with pytest.raises(DecodeError, match=f"unexpected shape of {name}"):
        check_shape(value)
