"""Documents of a real three server cluster decode and encode to the same JSON."""

import gzip
import json
from functools import cache
from pathlib import Path

import pytest

from jsctl.api.codec import decode, encode
from jsctl.api.monitoring.accountz import AccountStatz, Accountz
from jsctl.api.monitoring.connz import Connz, Gatewayz, Leafz, Routez, Subsz
from jsctl.api.monitoring.health import Healthz, RaftzGroup
from jsctl.api.monitoring.jsz import Jsz
from jsctl.api.monitoring.varz import Varz

KINDS: dict[str, type] = {
    "varz": Varz,
    "jsz": Jsz,
    "connz": Connz,
    "routez": Routez,
    "gatewayz": Gatewayz,
    "leafz": Leafz,
    "subsz": Subsz,
    "accountz": Accountz,
    "accstatz": AccountStatz,
    "healthz": Healthz,
}


@cache
def samples() -> dict[str, object]:
    packed = Path(__file__).with_name("monitoring_samples.json.gz").read_bytes()
    documents = json.loads(gzip.decompress(packed))
    assert isinstance(documents, dict)
    return documents


@pytest.mark.parametrize("name", sorted(samples()))
def test_a_real_document_survives(name: str) -> None:
    document = samples()[name]
    kind = name.partition("?")[0]
    if kind == "raftz":
        assert isinstance(document, dict)
        for groups in document.values():
            for group in groups.values():
                assert json.dumps(encode(decode(RaftzGroup, group))) == json.dumps(group)
        return
    again = encode(decode(KINDS[kind], document))
    assert json.dumps(again) == json.dumps(document), "same keys, values and order"
