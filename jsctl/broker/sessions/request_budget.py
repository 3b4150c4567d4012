"""How much work of requests a turn does, so that what many of them need keeps nobody else waiting.

Units are counted, not measured: the same input makes the same turns. What a request costs beyond
being taken is spent where it becomes known, and what begins with something `left` is carried out.
"""

import re

from jsctl.dataclass import dataclass

UNLIMITED = 1 << 40
REQUEST_UNITS = 16
"""Of a request of the JetStream or system API."""
ANSWER_BYTES = 512
"""An answer counts a unit for each of these."""
may_search = re.compile(rb"[*>\\]|last_per_subject").search
"""What a request for a pattern has in it, be it escaped: it looks through all subjects."""
PAGE_BYTES = 128
"""A page of what there is on a server, too: it takes longer to make."""


@dataclass(slots=True)
class RequestBudget:
    """What is `left` of a turn, which begins with `units_max`. Without a turn there is no end."""

    units_max: int
    left: int = UNLIMITED
