"""The index of the monitoring port: its links lead somewhere, below any base path."""

import json
import re
from urllib.error import HTTPError
from urllib.parse import quote, urljoin
from urllib.request import urlopen

import pytest

from jsctl.testing import Broker
from tests.contract.conftest import KINDS

LINK = re.compile(r"<a href=\"?([^\s\">]+)")
PAGES = {"varz", "jsz", "connz", "accountz", "accstatz", "subsz", "routez", "leafz", "gatewayz"}


def links(root: str) -> list[str]:
    """Where an index leads on its own server."""
    with urlopen(root) as answer:
        assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/html")
        found = LINK.findall(answer.read().decode())
    return [urljoin(root, one) for one in found if not one.startswith("http")]


def lead_somewhere(root: str) -> None:
    """All links of an index are followed; there are no groups of raft, which its page says."""
    found = links(root)
    assert {one.rpartition("/")[2] for one in found} > PAGES
    for one in found:
        try:
            with urlopen(one) as answer:
                assert answer.status == 200 and json.load(answer), one
        except HTTPError as error:
            assert one.endswith("/raftz") and error.code == 404, one
            assert error.read() == b"No Raft nodes registered", one


def index_of(broker: Broker, base: str) -> str:
    """Where the index is, without a slash behind a path."""
    return f"{broker.monitor_url}/{quote(base.strip('/'))}"


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("base", ["", "/", "x", "/x/"])
def test_links_lead_somewhere(kind: str, base: str) -> None:
    with KINDS[kind](config=f'http_base_path: "{base}"') as broker:
        lead_somewhere(index_of(broker, base))


@pytest.mark.parametrize("base", ["/x", "/x/y", "/x y"])
def test_links_lead_somewhere_from_any_path(base: str) -> None:
    """nats-server has no page with a slash behind its path, and leads astray from longer ones."""
    with KINDS["jsctl"](config=f'http_base_path: "{base}"') as broker:
        lead_somewhere(index_of(broker, base))
        lead_somewhere(index_of(broker, base) + "/")
