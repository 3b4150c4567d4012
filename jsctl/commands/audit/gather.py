"""`audit gather`: everything that servers tell about themselves, in one archive."""

import base64
import binascii
import getpass
import os
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jsctl import __version__
from jsctl.api.codec import dumps
from jsctl.api.errors import ApiError
from jsctl.api.times import SECOND_NS, format_duration, format_time
from jsctl.client.facts import connection_facts
from jsctl.client.system import SILENCE_SECONDS, NatsSystem, SystemReply
from jsctl.commands.audit.examples import at, number, objects, text
from jsctl.commands.audit.silence import Silence
from jsctl.commands.toolkit.archives.files import LOG, METADATA, UNCLUSTERED, BadName, Writer
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.interrupts import told
from jsctl.errors import JsctlError, NotFound, UsageError

if TYPE_CHECKING:
    from jsctl.client.library import NatsClient
    from jsctl.settings import Settings

CPU_PROFILE_NS_MAX = 15 * SECOND_NS
PAGE = 1024
SERVERS_MAX = 1 << 20
PAGES_MAX = 1024
"""Of one answer: a server may begin anew with each request."""
_SERVER_KINDS = {
    "VARZ": "variables",
    "EXPVARZ": "exp_variables",
    "CONNZ": "connections",
    "ROUTEZ": "routes",
    "GATEWAYZ": "gateways",
    "LEAFZ": "leafs",
    "SUBSZ": "subs",
    "JSZ": "jetstream_info",
    "ACCOUNTZ": "accounts",
    "HEALTHZ": "health",
}
_ACCOUNT_KINDS = {
    "CONNZ": "account_connections",
    "LEAFZ": "account_leafs",
    "SUBSZ": "account_subs",
    "INFO": "account_info",
    "JSZ": "account_jetstream_info",
    "RAFTZ": "account_raftz",
    "IPQUEUESZ": "account_ipqueues",
}
_ASKED_OF_SERVERS = {"RAFTZ": "account", "IPQUEUESZ": "filter"}
"""No account answers these: servers do, with the account as a filter of this name."""
_PROFILES = (
    *(("goroutine", 1), ("goroutine", 2), ("heap", 0), ("allocs", 0), ("mutex", 0)),
    *(("threadcreate", 0), ("block", 0), ("cpu", 0)),
)
_PAGED = {"CONNZ": "connections", "SUBSZ": "subscriptions_list", "JSZ": "account_details"}


async def gather(call: Call) -> None:
    """Nothing is left behind when it fails or is interrupted."""
    default = Path(tempfile.gettempdir()) / f"audit-archive-{time.time_ns() // SECOND_NS}.zip"
    cpu_ns = call.duration("cpu-profile-duration")
    if call.switch("server-profiles") is not False and not 0 < cpu_ns <= CPU_PROFILE_NS_MAX:
        raise UsageError(
            "cpu profile duration must be more than 0s and at most 15s, "
            f"got {format_duration(cpu_ns)}"
        )
    target = Path(call.text("output") or default)
    async with call.client() as client:
        with told(call, lambda: f"nothing was written to {target}"):
            run = await _gathered(call, client, target)
    run.tell(f"Archive created at: {target}")


async def _gathered(call: Call, client: "NatsClient", target: Path) -> "_Gathering":
    facts = await connection_facts(client, call.settings.timeout)
    archive = Writer(target)
    try:
        run = _Gathering(call, client, archive)
        await run.everything()
        metadata = {
            "capture_timestamp": format_time(time.time_ns()),
            "connected_server_name": facts.server_name,
            "connected_server_version": facts.server_version,
            "connect_url": facts.url,
            "user_name": _user(),
            "version": f"jsctl {__version__}",
        }
        archive.add(metadata, {"special": METADATA})
        archive.add_bytes(bytes(run.captured), "log", {"special": LOG})
        archive.finish()
    except OSError as error:
        archive.discard()
        raise JsctlError(f"cannot write {target}: {error.strerror}") from None
    except BaseException:
        archive.discard()
        raise
    return run


def _user() -> str:
    """Who gathers; in a container that may be a number without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _can_be_asked(subject: str) -> bool:
    """Names in it are what servers say."""
    words = subject.split(".")
    return all(word and word.isprintable() and not set(word) & set(" *>") for word in words)


class _Gathering:
    """One run: who is there, and what was written so far.

    `servers` are those that are wanted, `everybody` the names of all that answer, by id; `accounts`
    has the ids of the servers that know each of them.
    """

    def __init__(self, call: Call, client: "NatsClient", archive: Writer) -> None:
        self.call, self.client, self.archive = call, client, archive
        self.system = self._asking(call.settings)
        self.hasty = self._asking(call.settings, SILENCE_SECONDS)
        self.servers: dict[str, SystemReply] = {}
        self.everybody: dict[str, str] = {}
        self.accounts: dict[str, list[str]] = {}
        self.silence = Silence(self._answers)
        self.cpu_ns = call.duration("cpu-profile-duration")
        self.system_account = ""
        self.captured = bytearray()
        self.count = 0

    def _asking(self, settings: "Settings", silence_seconds: float = 0.0) -> NatsSystem:
        """What one server tells that nobody can read keeps nothing of the others."""
        return NatsSystem(
            self.client,
            settings,
            silence_seconds=silence_seconds,
            unreadable=lambda problem: self.tell(problem, error=True),
        )

    async def _answers(self, server_id: str) -> bool:
        if not _can_be_asked(f"$SYS.REQ.SERVER.{server_id}.STATSZ"):
            return False
        try:
            return bool(await self.system.gather("STATSZ", server_id=server_id))
        except JsctlError:
            return False  # nobody listens to what is for it

    def tell(self, line: str, *, error: bool = False) -> None:
        """A line of the log; the archive keeps all."""
        self.captured += f"{line}\n".encode()
        if error or self.call.switch("progress") is not False:
            self.call.output.log(line)

    async def everything(self) -> None:
        """All parts that are wanted."""
        await self._find_servers()
        await self._find_accounts()
        for name, skipped, part in (
            ("server-endpoints", "servers endpoints data", self._servers),
            ("server-profiles", "server profiles", self._profiles),
            ("account-endpoints", "accounts endpoints data", self._accounts),
            ("streams", "streams data", self._streams),
        ):
            if self.call.switch(name) is False:
                self.tell(f"Skipping {skipped} gathering")
            else:
                self.count = 0
                await part()

    async def _find_servers(self) -> None:
        self.tell("Broadcasting PING to discover servers... (this may take a few seconds)")
        wanted = self.call.text("cluster")
        replies = await self.system.gather("")
        if len(replies) < max((number(one.data, "active_servers") for one in replies), default=0):
            # One that is slow is one to be looked at: it has all the time that there is.
            replies = await self.system.gather("", expected=SERVERS_MAX)
        self.everybody = {reply.server.id: reply.server.name for reply in replies}
        for reply in replies:
            if not wanted or reply.server.cluster == wanted:
                self.servers[reply.server.id] = reply
                self.tell(f"Discovered server '{reply.server.name}' ({reply.server.id})")
        self.tell(f"Discovered {len(self.servers)} servers")
        if not self.servers:
            raise NotFound("no server was found, nothing was gathered")

    async def _find_accounts(self) -> None:
        self.tell("Broadcasting PING to discover accounts... ")
        replies = await self.system.gather("ACCOUNTZ", expected=len(self.servers))
        for reply in self._good(replies):
            found = at(reply.data, "accounts")
            names = [str(name) for name in found] if isinstance(found, list) else []
            self.tell(f"Discovered {len(names)} accounts on server {reply.server.name}")
            for name in names:
                self.accounts.setdefault(name, []).append(reply.server.id)
            told = text(reply.data, "system_account")
            if told and not self.system_account:
                self.system_account = told
                self.tell(f"Discovered system account name: {told}")
        self.tell(f"Discovered {len(self.accounts)} accounts over {len(self.servers)} servers")

    async def _servers(self) -> None:
        known = len(self.servers)
        self.tell(f"Querying {len(_SERVER_KINDS)} endpoints on {known} known servers...")
        for server_id, server in self.servers.items():
            for kind in _SERVER_KINDS:
                if kind == "JSZ" and not server.server.jetstream:
                    name = server.server.name
                    self.tell(
                        f"Server {name} does not have jetstream enabled - skipping JSZ endpoint"
                    )
                    continue
                await self._pages(kind, server_id, server.server.name)
        self.tell(f"Captured {self.count} endpoint responses from {known} servers")

    async def _pages(self, kind: str, server_id: str, name: str) -> None:
        for offset in range(0, PAGES_MAX * PAGE, PAGE):
            options = self._options(kind, offset)
            replies = await self._asked(
                f"$SYS.REQ.SERVER.{server_id}.{kind}",
                options,
                [server_id],
                f"{kind} from server {name}",
            )
            for reply in replies:
                self._keep(reply, reply.document, {"artifact_type": _SERVER_KINDS[kind]})
            full = len(objects(replies[0].data, _PAGED.get(kind, ""))) >= PAGE if replies else False
            if not (options and full):
                return
        self.tell(f"Server {name} has more than {PAGES_MAX} pages of {kind}", error=True)

    def _options(self, kind: str, offset: int) -> dict[str, object]:
        if self.call.switch("details") is False:
            return {}
        page: dict[str, object] = {"offset": offset, "limit": PAGE}
        subscriptions: dict[str, object] = {"subscriptions": True, "subscriptions_detail": True}
        found: Mapping[str, dict[str, object]] = {
            "CONNZ": {**subscriptions, **page},
            "GATEWAYZ": {
                "accounts": True,
                "subscriptions": True,
                "subscriptions_detail": True,
            },
            "HEALTHZ": {"details": True},
            "JSZ": {
                "accounts": True,
                "streams": True,
                "consumer": self.call.switch("consumers") is not False,
                "config": True,
                "raft": True,
                **page,
            },
            "LEAFZ": {"subscriptions": True},
            "ROUTEZ": subscriptions,
            "SUBSZ": {"subscriptions": True, **page},
        }
        return found.get(kind, {})

    async def _profiles(self) -> None:
        known = len(self.servers)
        self.tell(f"Capturing {len(_PROFILES)} profiles on {known} known servers...")
        settings = self.call.settings
        patient = self._asking(replace(settings, timeout_ns=settings.timeout_ns + self.cpu_ns))
        for server_id, server in self.servers.items():
            for profile, debug in _PROFILES:
                options: dict[str, object] = {"name": profile, "debug": debug}
                if profile == "cpu":
                    options["duration"] = self.cpu_ns
                replies = await self._asked(
                    f"$SYS.REQ.SERVER.{server_id}.PROFILEZ",
                    options,
                    [server_id],
                    f"{profile} profile from server {server.server.name}",
                    system=patient if profile == "cpu" else None,
                )
                for reply in replies:
                    self._keep_profile(reply, f"{profile}_{debug}" if debug else profile)
        self.tell(f"Captured {self.count} server profiles from {known} servers")

    def _keep_profile(self, reply: SystemReply, name: str) -> None:
        try:
            content = base64.b64decode(text(reply.data, "profile"), validate=True)
        except binascii.Error:
            content = b""
        if problem := text(reply.data, "error") or ("" if content else "it is empty"):
            server = reply.server.name
            self.tell(
                f"Failed to retrieve {name} profile from server {server}: {problem}", error=True
            )
            return
        tags = {
            "server": reply.server.name,
            "artifact_type": "profile",
            "profile_name": name,
            "cluster": reply.server.cluster or UNCLUSTERED,
        }
        self._add(lambda: self.archive.add_bytes(content, "prof", tags))

    async def _accounts(self) -> None:
        known = len(self.accounts)
        self.tell(f"Querying {len(_ACCOUNT_KINDS)} endpoints for {known} known accounts...")
        for account, servers in sorted(self.accounts.items()):
            for kind, label in _ACCOUNT_KINDS.items():
                option = _ASKED_OF_SERVERS.get(kind)
                subject = (
                    f"$SYS.REQ.SERVER.PING.{kind}"
                    if option
                    else f"$SYS.REQ.ACCOUNT.{account}.{kind}"
                )
                whom = self.everybody if option else servers
                options = {option: account} if option else {}
                replies = await self._asked(
                    subject, options, whom, f"{kind} for {account}", kind=kind
                )
                for reply in replies:
                    if reply.server.id in self.servers:
                        tags = {"account": account, "artifact_type": label}
                        self._keep(reply, reply.document, tags)
        self.tell(f"Captured {self.count} endpoint responses from {known} accounts")

    async def _streams(self) -> None:
        self.tell("Gathering streams data...")
        for account in sorted(self.accounts):
            if account == self.system_account:
                continue
            options: dict[str, object] = {
                "account": account,
                "streams": True,
                "consumer": self.call.switch("consumers") is not False,
                "config": True,
                "raft": True,
                "direct_consumer": True,
            }
            replies = await self._asked(
                "$SYS.REQ.SERVER.PING.JSZ",
                options,
                self.everybody,
                f"streams of account {account}",
                kind="JSZ",
            )
            names: set[str] = set()
            for reply in replies:
                details = objects(reply.data, "account_details")
                # A server that does not know the account tells about all others.
                if len(details) != 1 or reply.server.id not in self.servers:
                    continue
                for stream in objects(details[0], "stream_detail"):
                    name = text(stream, "name")
                    if name not in names:
                        self.tell(f"Discovered stream {name} in account {account}")
                    names.add(name)
                    self._keep_stream(reply, account, name, stream)
            self.tell(f"Discovered {len(names)} streams in account {account}")

    def _keep_stream(
        self, reply: SystemReply, account: str, name: str, stream: dict[str, object]
    ) -> None:
        tags = {
            "account": account,
            "server": reply.server.name,
            "cluster": text(stream, "cluster", "name") or UNCLUSTERED,
            "stream": name,
            "artifact_type": "stream_info",
        }
        self._add(lambda: self.archive.add(stream, tags))

    async def _asked(
        self,
        subject: str,
        options: Mapping[str, object],
        servers: Collection[str],
        what: str,
        *,
        kind: str = "",
        system: NatsSystem | None = None,
    ) -> list[SystemReply]:
        """The good answers of these servers; what goes wrong is logged."""
        body = dumps(dict(options)) if options else b""
        if not _can_be_asked(subject):
            self.tell(f"Failed to request {what}: no subject can have that name", error=True)
            return []
        if not (waited := self.silence.waited_for(servers)):
            self.tell(f"Failed to request {what}: nobody answers any more", error=True)
            return []
        hasty = self.hasty if self.silence.is_doubtful(waited, kind) else self.system
        try:
            replies = await (system or hasty).gather_on(subject, body, expected=len(waited))
        except (JsctlError, ApiError, ValueError) as error:
            self.tell(f"Failed to request {what}: {error}", error=True)
            return []
        if not replies:
            self.tell(f"Failed to request {what}: nobody answered", error=True)
        known = {reply.server.id for reply in replies}
        for one in await self.silence.note([one for one in waited if one not in known], kind):
            name = self.everybody.get(one, one)
            self.tell(f"Server {name} does not answer any more, and is asked nothing", error=True)
        return self._good(replies)

    def _good(self, replies: list[SystemReply]) -> list[SystemReply]:
        for reply in replies:
            if reply.error is not None:
                problem = f"({reply.error.err_code}) {reply.error.description}"
                self.tell(
                    f"Received an error from server {reply.server.name}: {problem}", error=True
                )
        return [reply for reply in replies if reply.error is None]

    def _keep(self, reply: SystemReply, document: object, tags: Mapping[str, str]) -> None:
        cluster = reply.server.cluster or UNCLUSTERED
        whole = {**tags, "server": reply.server.name, "cluster": cluster}
        self._add(lambda: self.archive.add(document, whole))

    def _add(self, write: Callable[[], None]) -> None:
        try:
            write()
            self.count += 1
        except BadName as error:
            self.tell(f"Failed to add to the archive: {error}", error=True)
