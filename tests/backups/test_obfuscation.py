"""Backups that can be shown to others: what names somebody is not in them."""

import json

from jsctl.backups.archive import ConsumerEntry
from jsctl.backups.obfuscation import Obfuscator


def test_what_clients_said_of_messages_that_were_given_up_is_hidden() -> None:
    state = {
        "delivered": {"consumer_seq": 2, "stream_seq": 2},
        "jsctl_dead": [[1, 5, 1, True, "no such customer: Miller"], [2, 5, 3, False, ""]],
    }
    data = json.dumps({"config": {"durable_name": "C"}, "state": state}).encode()
    hidden = Obfuscator.fresh()
    made = hidden.consumer(ConsumerEntry("C", 5, data))
    assert b"Miller" not in made.data
    told = json.loads(made.data)["state"]
    assert told["delivered"] == state["delivered"]
    (first, second) = told["jsctl_dead"]
    assert (first[:4], second) == ([1, 5, 1, True], [2, 5, 3, False, ""])
    assert hidden.reveal(first[4]) == "no such customer: Miller"
