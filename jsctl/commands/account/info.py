"""`account info`: who the connection is and what its account has."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jsctl.api.account import AccountInfo
from jsctl.api.codec import decode, encode
from jsctl.api.errors import ApiError
from jsctl.api.jsontext import parse_object
from jsctl.api.monitoring.accountz import UserInfo
from jsctl.api.subjects import USER_INFO
from jsctl.client.facts import ConnectionFacts, connection_facts
from jsctl.client.manager import Manager
from jsctl.client.requests import Requester, unanswered
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, NotAllowed, Unreachable
from jsctl.render.humanize import duration
from jsctl.render.reports.account.info import ConnectionRows, account_info_screen

if TYPE_CHECKING:
    from jsctl.client.library import NatsClient

USER_INFO_NS = 1_000_000_000


async def info(call: Call) -> None:
    """The screen, or one document with both parts."""
    async with call.manager() as manager:
        client = manager.client
        user = await _user(client, call)
        facts = await _facts(client, call)
        account, problem = await _jetstream(manager)
    if call.as_json:
        jetstream = encode(account) if account else {"error": problem}
        call.output.json(
            {"user": encode(user), "connection": encode_facts(facts), "jetstream": jetstream}
        )
        return
    call.output.details(account_info_screen(_rows(user, facts), account, problem))


async def _facts(client: "NatsClient", call: Call) -> ConnectionFacts:
    """Of the connection, as far as its server says a word."""
    from nats.errors import FlushTimeoutError

    try:
        return await connection_facts(client, call.settings.timeout)
    except FlushTimeoutError as error:
        raise unanswered(call.settings) from error


def encode_facts(facts: ConnectionFacts) -> dict[str, object]:
    """As a document."""
    from dataclasses import asdict

    return asdict(facts)


async def _user(client: "NatsClient", call: Call) -> UserInfo:
    """Who the server says we are; nothing known when it does not answer."""
    requests = Requester(client, replace(call.settings, timeout_ns=USER_INFO_NS))
    try:
        document = parse_object(await requests.exchange(USER_INFO.decode(), b""))
    except JsctlError:
        return UserInfo()
    return decode(UserInfo, document.get("data") or {})


async def _jetstream(manager: Manager) -> tuple[AccountInfo | None, str]:
    try:
        return await manager.account_info(), ""
    except ApiError as error:
        return None, f"Could not obtain account information: {error}"
    except Unreachable as error:
        if "no responders" in str(error):
            return None, "JetStream is not supported in this account"
        return None, "No response from JetStream server"
    except NotAllowed as error:
        return None, f"Could not obtain account information: {error}"


def _named(identity: str, name: str) -> str:
    return f"{name} ({identity})" if name and identity else identity or name


def _rows(user: UserInfo, facts: ConnectionFacts) -> ConnectionRows:
    rules = user.permissions
    publish: dict[str, Sequence[str]] = {}
    subscribe: dict[str, Sequence[str]] = {}
    for target, given in (
        (publish, rules.publish if rules else None),
        (subscribe, rules.subscribe if rules else None),
    ):
        if given is not None:
            target.update(allow=given.allow, deny=given.deny)
    return ConnectionRows(
        user=_named(user.user, user.user_name),
        account=_named(user.account, user.account_name or user.account),
        system_account=facts.is_system_account,
        expires=duration(user.expires) if user.expires > 0 else "never",
        client_id=facts.client_id,
        client_ip=facts.client_ip,
        rtt_ns=facts.rtt_ns,
        headers=facts.headers,
        max_payload=facts.max_payload,
        cluster=facts.cluster,
        url=facts.url,
        address=facts.address,
        server_id=facts.server_id,
        server_version=facts.server_version,
        server_name=facts.server_name,
        tls=facts.tls,
        publish=publish,
        subscribe=subscribe,
    )
