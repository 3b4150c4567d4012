"""`counter`: numbers of any size."""

from tests.commands.parity.conftest import Same

COUNTERS = """
counter
counter get c.a
counter increment c.a 5
counter incr c.a 999999999999999999999999
counter decrement c.a 3
counter decr c.a x
counter incr c.a 1.5
counter dec c.a 1000000000000000000000009
counter get c.a
counter g c.a --stream CTR
counter get c.a --stream NOPE
counter get nope.a
counter get p.a
counter view c.a
counter view c.zz
counter v c.a --stream CTR
counter list
counter list c.a
counter ls c.*
counter list --stream CTR --json
counter list --stream PLAIN
counter list --stream CTR zz
counter incr p.a 1
counter get
"""


def test_counters(same: Same) -> None:
    same("stream add CTR --subjects c.> --allow-counter --defaults", tidy=lambda text: "")
    same("stream add PLAIN --subjects p.> --defaults", tidy=lambda text: "")
    same(COUNTERS)
