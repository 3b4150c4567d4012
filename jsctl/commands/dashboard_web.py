"""Serving the dashboard to browsers: arguments in, server out."""

from typing import TYPE_CHECKING

from jsctl.commands.call import Call
from jsctl.errors import UsageError

if TYPE_CHECKING:
    from jsctl.dashboard.options import DashboardOptions


def serve(call: Call, options: "DashboardOptions") -> int:
    """Runs until it is interrupted."""
    raise UsageError(f"not yet {call.settings} {options}")
