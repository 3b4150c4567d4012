"""A node that took a changed configuration tells of itself what one does that began with it."""

import json

import pytest

from jsctl.broker.conf.mapper import from_text
from jsctl.broker.options import Options, RaftOptions
from jsctl.dataclass import replace
from tests.contract.reload_rows import SAME
from tests.contract.test_reload_keys import BASE, TAKEN, Row, changed
from tests.support.node_play import LOG_BYTES, NodePlay

pytestmark = pytest.mark.slow

PAGES: tuple[tuple[str, dict[str, str]], ...] = (
    ("/varz", {}),
    ("/accountz", {}),
    ("/accountz", {"acc": "A"}),
    ("/accountz", {"acc": "B"}),
    ("/accstatz", {"unused": "1"}),
    ("/jsz", {"accounts": "1", "config": "1"}),
    ("/subsz", {}),
)
MOVING = {"now", "start", "uptime", "config_load_time", "config_digest", "http_req_stats", "idle"}
MOVING |= {"in_msgs", "out_msgs", "in_bytes", "out_bytes", "update_time", "issuer_time", "total"}
MOVING |= {"num_inserts", "num_removes", "num_matches", "cache_hit_rate", "num_cache"}
MOVING |= {"max_fanout", "avg_fanout"}
"""What tells how long a node runs, and what it did before."""
ELSEWHERE = ("cluster", "compression", "tls", "authorization")
"""Rows of servers that are not alone, or that begin with another configuration."""
ROWS = {name: row for name, row in {**TAKEN, **SAME}.items() if not name.startswith(ELSEWHERE)}


def options(text: str) -> Options:
    """Of a configuration, without what makes it that of this file."""
    text = text.replace("@DIR", "/data")
    accounts = "accounts {\n    $SYS { users: [ {user: sys, password: sys} ] }"
    found = from_text(text.replace("accounts {", accounts, 1), "x.conf", {}).options
    return replace(found, raft=RaftOptions(log_segment_bytes=LOG_BYTES))


def still(page: object) -> object:
    """A page without what moves, and without the order in which things came."""
    if isinstance(page, dict):
        return {key: still(one) for key, one in page.items() if key not in MOVING}
    return sorted(map(still, page), key=str) if isinstance(page, list) else page


def told(play: NodePlay) -> list[object]:
    """Pages, and what a client is told at once."""
    pages = [still(play.get(path, **words)[1]) for path, words in PAGES]
    line = play.connect(said=False).lines[0]
    info = json.loads(line.removeprefix(b"INFO "))
    return [*pages, {key: one for key, one in info.items() if key not in ("client_id", "nonce")}]


@pytest.mark.parametrize("name", list(ROWS))
def test_it_tells_what_it_would_from_the_start(name: str) -> None:
    row = ROWS[name]
    before = options(BASE)
    after = options(changed(BASE, Row(row.old, row.new, ())))
    reloaded, started = NodePlay(before), NodePlay(after)
    reloaded.node.try_out(after)
    reloaded.node.reload(after)
    reloaded.turn()
    assert told(reloaded) == told(started)
    assert reloaded.faults == []
