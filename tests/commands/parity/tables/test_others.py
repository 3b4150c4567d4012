"""The lines of the tables below lines/others."""

from tests.commands.parity.comparing import alike

test_each_line_is_answered_alike = alike("others")
