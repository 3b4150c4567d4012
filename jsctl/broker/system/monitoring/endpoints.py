"""The table of everything that monitoring answers, for HTTP and for `$SYS.REQ` alike."""

from collections.abc import Callable

from jsctl.api.monitoring.accountz import AccountStatzOptions, AccountzOptions
from jsctl.api.monitoring.connz import (
    ConnzOptions,
    GatewayzOptions,
    LeafzOptions,
    RoutezOptions,
    SubszOptions,
)
from jsctl.api.monitoring.health import HealthzOptions, IpqueueszOptions, RaftzOptions
from jsctl.api.monitoring.jsz import JSzOptions
from jsctl.broker.system.monitoring.accounts import accountz, accstatz
from jsctl.broker.system.monitoring.connections import connz, leafz, routez, subsz
from jsctl.broker.system.monitoring.gateways import gatewayz
from jsctl.broker.system.monitoring.general import varz
from jsctl.broker.system.monitoring.health import healthz
from jsctl.broker.system.monitoring.jetstream import ipqueuesz, jsz, raftz
from jsctl.broker.system.monitoring.params import Param, flag, integer, state, subs, text, unsigned
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class NoOptions:
    """For what takes none."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One thing that can be asked for. `answer(view, options)` gives an API object or a dict.

    `answer` raises Refused for a request that makes no sense and NotMine to stay silent.
    """

    paths: tuple[str, ...]
    options: type
    answer: Callable[..., object]
    params: tuple[Param, ...] = ()
    indent: int = 2
    title: str = ""
    """In the index page; empty: not listed."""
    refused_status: int = 400


SYS_ROUTES: dict[str, Endpoint] = {
    "VARZ": Endpoint(("/varz",), NoOptions, varz, title="General"),
    "JSZ": Endpoint(
        ("/jsz",),
        JSzOptions,
        jsz,
        (
            text("acc", "account"),
            flag("accounts"),
            flag("streams"),
            flag("consumers", "consumer"),
            flag("direct-consumers", "direct_consumer"),
            flag("config"),
            integer("offset"),
            integer("limit"),
            flag("leader-only", "leader_only"),
            flag("raft"),
            flag("stream-leader-only", "stream_leader_only"),
        ),
        title="JetStream",
    ),
    "CONNZ": Endpoint(
        ("/connz",),
        ConnzOptions,
        connz,
        (
            text("sort"),
            flag("auth"),
            subs("subs"),
            integer("offset"),
            integer("limit"),
            unsigned("cid"),
            state("state"),
            text("user"),
            text("acc"),
            text("mqtt_client"),
            text("filter_subject"),
        ),
        title="Connections",
    ),
    "ACCOUNTZ": Endpoint(
        ("/accountz",), AccountzOptions, accountz, (text("acc", "account"),), title="Accounts"
    ),
    "ACCSTATZ": Endpoint(
        ("/accstatz",),
        AccountStatzOptions,
        accstatz,
        (flag("unused", "include_unused"),),
        title="Account Stats",
    ),
    "SUBSZ": Endpoint(
        ("/subsz", "/subscriptionsz"),
        SubszOptions,
        subsz,
        (
            flag("subs", "subscriptions"),
            integer("offset"),
            integer("limit"),
            text("acc", "account"),
            text("test"),
        ),
        title="Subscriptions",
    ),
    "ROUTEZ": Endpoint(("/routez",), RoutezOptions, routez, (subs("subs"),), title="Routes"),
    "LEAFZ": Endpoint(
        ("/leafz",),
        LeafzOptions,
        leafz,
        (flag("subs", "subscriptions"), text("acc", "account")),
        title="LeafNodes",
    ),
    "GATEWAYZ": Endpoint(
        ("/gatewayz",),
        GatewayzOptions,
        gatewayz,
        (
            subs("subs"),
            flag("accs", "accounts"),
            text("gw_name", "name"),
            text("acc_name", "account_name"),
        ),
        title="Gateways",
    ),
    "RAFTZ": Endpoint(
        ("/raftz",),
        RaftzOptions,
        raftz,
        (text("acc", "account"), text("group")),
        indent=3,
        title="Raft Groups",
        refused_status=404,
    ),
    "HEALTHZ": Endpoint(
        ("/healthz",),
        HealthzOptions,
        healthz,
        (
            flag("js-enabled", "js_enabled"),
            flag("js-enabled-only", "js_enabled_only"),
            flag("js-server-only", "js_server_only"),
            flag("js-meta-only", "js_meta_only"),
            flag("details"),
            text("account"),
            text("stream"),
            text("consumer"),
        ),
        title="Health Probe",
    ),
    "IPQUEUESZ": Endpoint(
        ("/ipqueuesz",),
        IpqueueszOptions,
        ipqueuesz,
        (flag("all"), text("queues", "filter")),
        indent=3,
    ),
}
