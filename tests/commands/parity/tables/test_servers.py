"""The lines of the tables below lines/servers."""

from tests.commands.parity.comparing import alike

GONE_S = 20
"""Consumers of the stories before, which nobody asks any more, go one after the other; until then
reports count another number of them each time."""

test_each_line_is_answered_alike = alike("servers", patience_s=GONE_S)
