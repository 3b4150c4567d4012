"""Whether there is room for what restores store: in the account, on the server, on its disk.

What is restored is in no stream yet, so nobody else counts it. All restores that are under way
here count, each for all the replicas that its stream is to have.
"""

from collections.abc import Iterable

from jsctl.api.errors import ApiError, api_error
from jsctl.broker.jsapi.archives.restore import Restore, RestoreStage
from jsctl.broker.jsapi.live_view import ApiView
from jsctl.dataclass import dataclass

LOOK_BYTES = 1024 * 1024
"""So much more is stored before it is looked again."""
_COUNTED = (RestoreStage.RECEIVING, RestoreStage.FINISHING, RestoreStage.INSTALLING)


@dataclass(slots=True)
class RestoreRoom:
    """Of one server."""

    view: ApiView

    def refusal(self, one: Restore, restores: Iterable[Restore]) -> ApiError | None:
        """Why this one may not go on. Looks now and then, and at the end of the archive."""
        size = one.build.size_bytes
        if one.stage is RestoreStage.RECEIVING and size < one.looked_bytes + LOOK_BYTES:
            return None
        one.looked_bytes = size
        volatile = one.prepared.base.volatile
        if self.view.engine.context.disk_full and not volatile:
            return api_error("JSStorageResourcesExceededErr")
        alike = [
            other
            for other in restores
            if other.prepared.base.volatile == volatile and other.stage in _COUNTED
        ]
        if self._server_is_full(alike, volatile) or self._account_is_full(one, alike, volatile):
            name = "JSMemoryResourcesExceededErr" if volatile else "JSStorageResourcesExceededErr"
            return api_error(name)
        return None

    def _server_is_full(self, alike: list[Restore], volatile: bool) -> bool:
        options = self.view.options.jetstream
        most = options.memory_bytes_max if volatile else options.store_bytes_max
        if most < 0:
            return False
        here = self.view.usage.here()
        used = sum(one.memory if volatile else one.store for one in here)
        return used + sum(other.build.size_bytes for other in alike) > most

    def _account_is_full(self, one: Restore, alike: list[Restore], volatile: bool) -> bool:
        account, replicas = one.assignment.account, one.assignment.config.num_replicas
        quota = self.view.account(account)
        limits = None if quota is None else quota.maybe_limits(replicas)
        if quota is None or limits is None:
            return True
        most = limits.stored_max(replicas, memory=volatile)
        if most < 0:
            return False
        held = self.view.account_usage(account).of_tier(limits.tier)
        restored = sum(
            other.build.size_bytes * len(other.assignment.group.peers)
            for other in alike
            if other.assignment.account == account
            and quota.tier(other.assignment.config.num_replicas) == limits.tier
        )
        return held.bytes(memory=volatile) + restored > most
