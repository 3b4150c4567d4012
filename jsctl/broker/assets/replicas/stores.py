"""Where the message stores of a stream lie: numbered, so that a received one can replace it."""

from jsctl.broker.ports import Disk
from jsctl.broker.store.checkpoint import Witness
from jsctl.broker.store.memory_store import MemoryStore
from jsctl.broker.store.message_store import MessageStore, StoreOptions
from jsctl.broker.store.stream_store import StreamStore
from jsctl.dataclass import dataclass

_PREFIX = "store."


@dataclass(frozen=True, slots=True)
class StreamStores:
    """Of one stream. `directory` is the stream's own; `volatile`: they are in memory alone."""

    disk: Disk
    directory: str
    volatile: bool
    options: StoreOptions

    def open(self, number: int, witness: Witness | None = None) -> StreamStore:
        """The store of that number, made when there is none, unless `witness` says that there
        was one. Raises DiskError."""
        if self.volatile:
            return MemoryStore()
        return MessageStore.open(self.disk, self.path(number), self.options, witness)

    def path(self, number: int) -> str:
        """Where the store of that number lies."""
        return f"{self.directory}/{_PREFIX}{number}"

    def newest(self) -> int:
        """The highest number that is taken; 0 if none is."""
        names = () if self.volatile else self.disk.list(self.directory)
        numbers = [name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)]
        return max((int(number) for number in numbers if number.isdecimal()), default=0)

    def keep_only(self, number: int) -> None:
        """Remove what broken transfers left behind."""
        for name in self.disk.list(self.directory):
            if name.startswith(_PREFIX) and name != f"{_PREFIX}{number}":
                self.disk.remove_tree(f"{self.directory}/{name}")
