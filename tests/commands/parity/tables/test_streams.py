"""The lines of the tables below lines/streams."""

from tests.commands.parity.comparing import alike

test_each_line_is_answered_alike = alike("streams")
