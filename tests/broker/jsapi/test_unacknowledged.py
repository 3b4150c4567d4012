"""What was published without an acknowledgement counts for who asks right behind it."""

import json

from tests.support.cluster_play import ClusterPlay
from tests.support.stream_requests import stream

INFO = b"PUB $JS.API.STREAM.INFO.S got 0\r\n\r\n"
PUBLISH = b"PUB s.1 1\r\nx\r\n"


def test_an_info_counts_what_came_before_it_in_the_same_turn_and_is_being_stored() -> None:
    cluster = ClusterPlay()
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream(replicas=1))
    server = cluster.leader(cluster.group_of("S"))
    client = server.connect("a")
    client.subscribe("got")
    for count in range(1, 4):
        server.disk_held = True
        client.send(PUBLISH + INFO)
        cluster.run(0.1)
        assert client.messages == [], "it is not stored yet"
        server.release_disk()
        cluster.wait(lambda: bool(client.messages), "it is answered")
        ((_, _, payload),) = client.messages
        assert json.loads(payload)["state"]["messages"] == count
        client.messages.clear()
