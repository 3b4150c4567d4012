"""`server request`: the documents of servers as they are, one line each."""

from collections.abc import Mapping

from jsctl.api.codec import encode
from jsctl.api.monitoring.connz import (
    ConnzOptions,
    GatewayzOptions,
    RoutezOptions,
    SubszOptions,
)
from jsctl.api.monitoring.health import IpqueueszOptions, RaftzOptions
from jsctl.api.monitoring.jsz import JSzOptions
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.monitoring.asking import (
    STATES,
    count_of,
    request_filter,
    servers_if_told,
)
from jsctl.errors import UsageError
from jsctl.render.formats import as_json_line


async def accounts(call: Call) -> None:
    """ACCOUNTZ."""
    await _print_replies(call, "ACCOUNTZ", {"account": call.text("account")})


async def connections(call: Call) -> None:
    """CONNZ."""
    options = ConnzOptions(
        sort=call.text("sort"),
        auth=True,
        subscriptions=call.flag("subscriptions"),
        subscriptions_detail=call.flag("subscriptions"),
        offset=call.integer("offset"),
        limit=call.integer("limit"),
        cid=call.integer("filter-cid"),
        state=STATES[call.text("filter-state")],
        user=call.text("filter-user"),
        acc=call.text("filter-account"),
        filter_subject=call.text("filter-subject"),
    )
    await _print_replies(call, "CONNZ", encode(options), skip_empty=call.flag("filter-empty"))


async def gateways(call: Call) -> None:
    """GATEWAYZ. What is listened to is shown of one account, or where it is asked for."""
    account = call.text("filter-account")
    shown = call.flag("subscriptions") if account else call.switch("subscriptions") is True
    options = GatewayzOptions(
        name=call.text("filter-name"),
        accounts=call.flag("accounts") or bool(account),
        account_name=account,
        subscriptions=shown,
    )
    await _print_replies(call, "GATEWAYZ", encode(options))


async def jetstream_health(call: Call) -> None:
    """HEALTHZ."""
    options: dict[str, object] = {
        "js-enabled-only": call.flag("js-enabled"),
        "js-server-only": call.flag("server-only"),
        "account": call.text("account"),
        "stream": call.text("stream"),
        "consumer": call.text("consumer"),
        "details": call.flag("details"),
    }
    if options["stream"] and not options["account"]:
        raise UsageError("--stream needs --account")
    if options["consumer"] and not options["stream"]:
        raise UsageError("--consumer needs --stream")
    await _print_replies(call, "HEALTHZ", {key: value for key, value in options.items() if value})


async def jetstream(call: Call) -> None:
    """JSZ."""
    everything = call.flag("all")
    options = JSzOptions(
        account=call.text("account"),
        accounts=call.flag("accounts") or everything,
        streams=call.flag("streams") or everything,
        consumer=call.flag("consumer") or everything,
        config=call.flag("config") or everything,
        raft=call.flag("raft") or everything,
        leader_only=call.flag("leader"),
        stream_leader_only=call.flag("stream-leader"),
        offset=call.integer("offset"),
        limit=call.integer("limit"),
    )
    await _print_replies(call, "JSZ", encode(options), only_one=call.flag("leader"))


async def ipqueue(call: Call) -> None:
    """IPQUEUESZ."""
    options = IpqueueszOptions(all=call.flag("all"), filter=call.text("filter"))
    await _print_replies(call, "IPQUEUESZ", encode(options))


async def raft(call: Call) -> None:
    """RAFTZ."""
    options = RaftzOptions(account=call.text("account"), group=call.text("group"))
    await _print_replies(call, "RAFTZ", encode(options))


async def leafnodes(call: Call) -> None:
    """LEAFZ."""
    await _print_replies(call, "LEAFZ", {"subscriptions": call.flag("subscriptions")})


async def routes(call: Call) -> None:
    """ROUTEZ."""
    shown = call.flag("subscriptions")
    options = RoutezOptions(subscriptions=shown, subscriptions_detail=shown)
    await _print_replies(call, "ROUTEZ", encode(options))


async def subscriptions(call: Call) -> None:
    """SUBSZ."""
    options = SubszOptions(
        offset=call.integer("offset"),
        limit=call.integer("limit"),
        subscriptions=call.flag("detail"),
        account=call.text("filter-account"),
        test=call.text("filter-subject"),
    )
    await _print_replies(call, "SUBSZ", encode(options))


async def variables(call: Call) -> None:
    """VARZ."""
    await _print_replies(call, "VARZ", {})


async def _print_replies(
    call: Call,
    kind: str,
    options: Mapping[str, object],
    *,
    only_one: bool = False,
    skip_empty: bool = False,
) -> None:
    from jsctl.client.facts import source_options

    where = request_filter(call)
    expected = count_of(call, "wait")
    if not expected and (only_one or where.server_name or where.host):
        expected = 1
    async with call.system() as system:
        if not expected and not (where.cluster or where.tags or where.domain):
            expected = await servers_if_told(system)
        given = source_options(system, options)
        replies = await system.gather(kind, given, where=where, expected=expected)
    found = [reply for reply in replies if not skip_empty or reply.data.get("connections")]
    if call.output.asked and call.output.form != "jsonl":
        call.output.json([reply.document for reply in found])
        return
    for reply in found:
        call.output.print(as_json_line(reply.document))
