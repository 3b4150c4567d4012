"""`server watch api requests`: which requests JetStream gets, and from which account."""

import re
from collections import deque
from time import time_ns
from typing import TYPE_CHECKING

from jsctl.api import jsontext
from jsctl.api.subjects import parse_api
from jsctl.api.times import format_duration
from jsctl.commands.toolkit.grammar.regexps import compiled
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.watching import repeated
from jsctl.errors import UsageError
from jsctl.render.reports.server.activity import RequestActivity, request_columns

if TYPE_CHECKING:
    from nats.aio.msg import Msg

ROUND_S = 1
KINDS_MAX = 10_000
"""Requests of so many streams, consumers and accounts are told apart."""
MOMENTS_MAX = 100_000
"""Of one kind within the interval; a rate beyond it is told as this."""
Key = tuple[str, str, str, str]


class _Counted:
    """Requests by account, kind and asset."""

    def __init__(self, call: Call) -> None:
        try:
            self._wanted = compiled(call.text("account"))
        except re.error as error:
            raise UsageError(f"--account: {error}") from None
        self._consumers = call.flag("record-consumer")
        self.interval_ns = call.duration("rate") or 60_000_000_000
        self._found: dict[Key, tuple[RequestActivity, deque[int]]] = {}

    async def request(self, message: "Msg") -> None:
        """One more."""
        asked = parse_api(message.subject.encode())
        if asked is None:
            return
        account = self._account((message.headers or {}).get("Nats-Request-Info", ""))
        if not self._wanted.search(account):
            return
        stream = asked.stream if asked.operation.endswith("_info") else ""
        consumer = asked.consumer if stream and self._consumers else ""
        key = account, asked.operation, stream, consumer
        if key not in self._found and len(self._found) >= KINDS_MAX:
            return
        row = RequestActivity(f"{asked.operation}_request", account, stream, consumer)
        row, moments = self._found.setdefault(key, (row, deque(maxlen=MOMENTS_MAX)))
        row.count += 1
        moments.append(time_ns())

    @staticmethod
    def _account(text: str) -> str:
        try:
            found = jsontext.parse(text) if text else {}
        except ValueError:
            return ""
        return str(found.get("acc", "")) if isinstance(found, dict) else ""

    def rows(self) -> list[RequestActivity]:
        """The busiest first."""
        past = time_ns() - self.interval_ns
        for row, moments in self._found.values():
            while moments and moments[0] < past:
                moments.popleft()
            row.moments = len(moments)
        rows = [row for row, _ in self._found.values()]
        return sorted(rows, key=lambda row: (-row.moments, -row.count, row.stream, row.consumer))


async def requests(call: Call) -> int:
    """Counts and rates."""
    counted = _Counted(call)
    columns = request_columns(format_duration(counted.interval_ns), short=call.flag("compact"))

    async def round_(call: Call) -> None:
        rows = counted.rows()
        if not rows and not call.output.machine:
            call.output.print("Waiting for requests...")
            return
        if call.flag("reverse"):
            rows.reverse()
        top = call.integer("top")
        call.output.table(rows[:top], columns, f"Top {top} JS API activity")

    async with call.one_connection(), call.client() as client:
        await client.subscribe("$JS.API.>", cb=counted.request)
        return await repeated(call, round_, ROUND_S, at_once=False)
