"""What buckets of keys and of objects have in common."""

import pytest

from jsctl.api.cluster import Placement
from jsctl.commands.toolkit.assets.buckets import placement_of
from jsctl.commands.toolkit.grammar.values import Value
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.output import make_output
from jsctl.commands.toolkit.invocation.prompts import Prompts
from jsctl.settings import Settings

BEFORE = Placement(cluster="west", tags=("ssd",))


@pytest.mark.parametrize(
    ("values", "before", "after"),
    [
        ({}, None, None),
        ({}, BEFORE, BEFORE),
        ({"cluster": "east"}, None, Placement(cluster="east")),
        ({"cluster": "east"}, BEFORE, Placement(cluster="east", tags=("ssd",))),
        ({"tags": ("hdd",)}, BEFORE, Placement(cluster="west", tags=("hdd",))),
    ],
)
def test_what_is_not_named_stays(
    values: dict[str, Value], before: Placement | None, after: Placement | None
) -> None:
    call = Call(values, {}, Settings(), make_output("", "", {}), Prompts())
    assert placement_of(call, before) == after
