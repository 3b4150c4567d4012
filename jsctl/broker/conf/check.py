"""What no single option can tell: whether a whole `Options` tree makes sense.

Run at every start and before a reload; `-t` does not run it, as nats-server's does not.
"""

from collections.abc import Callable

from jsctl.broker.conf.units import advertised
from jsctl.broker.errors import ConfigError
from jsctl.broker.options import PORT_OFF, SYSTEM_ACCOUNT, Options, SyncMode
from jsctl.broker.passwords import looks_hashed

Check = Callable[[Options], ConfigError | None]
LEAFNODES_INSECURE = (
    "TLS certificate chain and hostname of solicited leafnodes will not be verified. DO NOT USE IN"
    " PRODUCTION!"
)

GATEWAYS_INSECURE = (
    "TLS certificate chain and hostname of solicited gateways will not be verified. DO NOT USE IN"
    " PRODUCTION!"
)


def check(options: Options) -> list[ConfigError]:
    """All contradictions, worst first; empty for a sound tree."""
    return [error for run in CHECKS if (error := run(options)) is not None]


def start_warnings(options: Options) -> list[str]:
    """What an operator should know at every start, besides `options.warnings`."""
    found: list[str] = []
    passwords = [user.password for user in options.all_users if user.password]
    login = options.leafnodes.login
    passwords += [user.password for user in login.users]
    passwords += [options.auth.password, options.auth.token, login.password]
    passwords = [word for word in passwords if word]
    if any(not looks_hashed(password) for password in passwords):
        found.append("Plaintext passwords detected, use nkeys or bcrypt")
    jetstream = options.jetstream
    if jetstream.enabled and jetstream.sync is SyncMode.INTERVAL:
        seconds = jetstream.sync_interval_ns / 1_000_000_000
        found.append(
            f'JetStream sync is "interval": a crash of the machine loses up to {seconds:g}s of '
            "acknowledged messages"
        )
    if jetstream.enabled and jetstream.sync is SyncMode.NEVER:
        found.append(
            'JetStream sync is "never": a crash of the machine loses acknowledged messages'
        )
    if options.tls is not None and options.tls.insecure:
        found.append("TLS certificates are not verified: insecure is set")
    blocks = [options.leafnodes.tls, *(remote.tls for remote in options.leafnodes.remotes)]
    if any(tls is not None and tls.insecure for tls in blocks):
        found.append(LEAFNODES_INSECURE)
    blocks = [options.gateway.tls, *(remote.tls for remote in options.gateway.remotes)]
    if any(tls is not None and tls.insecure for tls in blocks):
        found.append(GATEWAYS_INSECURE)
    return found


def _payload(options: Options) -> ConfigError | None:
    client = options.client
    if client.payload_bytes_max > client.pending_bytes_max:
        return ConfigError(
            f"max_payload ({client.payload_bytes_max}) cannot be higher than "
            f"max_pending ({client.pending_bytes_max})",
            remedy="lower max_payload or raise max_pending",
        )
    return None


def _lame_duck(options: Options) -> ConfigError | None:
    if options.lame_duck_grace_ns >= options.lame_duck_duration_ns:
        return ConfigError(
            "lame duck grace period should be strictly lower than lame duck duration",
            remedy="lower lame_duck_grace_period",
        )
    return None


def _server_name(options: Options) -> ConfigError | None:
    if any(char.isspace() for char in options.server_name):
        return ConfigError("server name cannot contain spaces", remedy="use - or _ instead")
    return None


def _jetstream_cluster(options: Options) -> ConfigError | None:
    if not options.jetstream.enabled or not options.replicated:
        return None
    if not options.server_name:
        return ConfigError(
            "jetstream cluster requires `server_name` to be set", remedy="use --name or server_name"
        )
    if not (options.cluster.name or options.gateway.name):
        return ConfigError(
            "jetstream cluster requires `cluster.name` to be set",
            remedy="use --cluster_name or name in the cluster block",
        )
    return None


def _gateway(options: Options) -> ConfigError | None:
    name, cluster = options.gateway.name, options.cluster.name
    if name and cluster and name != cluster:
        return ConfigError(
            "cluster name conflicts between cluster and gateway definitions",
            remedy=f'name both "{name}", or both "{cluster}"',
        )
    return None


def _routes(options: Options) -> ConfigError | None:
    if options.cluster.routes and not options.clustered:
        return ConfigError(
            "solicited routes require cluster capabilities, e.g. --cluster",
            remedy="add --cluster nats://0.0.0.0:6222",
        )
    return None


def _no_auth_user(options: Options) -> ConfigError | None:
    name = options.no_auth_user
    users = {user.name or user.nkey for user in options.all_users}
    if name and name not in users:
        return ConfigError(
            f'no_auth_user: "{name}" not present as user or nkey in authorization block or account '
            "configuration",
            remedy="add the user or correct the name",
        )
    return None


def _two_kinds_of_login(options: Options) -> ConfigError | None:
    what = "a user/password" if options.auth.user else "a token" if options.auth.token else ""
    owners = [account.name for account in options.accounts if account.users]
    if what and owners:
        return ConfigError(
            f'cannot have {what} in authorization and users in account "{owners[0]}"',
            remedy=f"move {what} into the users of an account",
        )
    return None


def _lone_password(options: Options) -> ConfigError | None:
    auth = options.auth
    if auth.password and not (auth.user or auth.token or auth.users):
        return ConfigError(
            "a password without a user: nobody would have to log in", remedy="give the user, too"
        )
    return None


def _system_account(options: Options) -> ConfigError | None:
    name = options.system_account
    system = name or SYSTEM_ACCOUNT
    by_name = {account.name: account for account in options.accounts}
    if name and name != SYSTEM_ACCOUNT and name not in by_name:
        return ConfigError(
            f'system account "{name}" is not declared', remedy="add it to the accounts block"
        )
    known = by_name.get(system)
    if known is None or known.jetstream is None:
        return None
    if known.claims is None:
        return ConfigError(
            "jetstream can not be enabled on the system account",
            remedy=f'remove jetstream from account "{system}"',
        )
    given = dict(options.operator.resolver.preload).get(system)
    if options.jetstream.enabled and given == known.claims.token:
        # One that was pushed has none, and the log says so: else no server would start any more.
        return ConfigError(
            "Not allowed to enable JetStream on the system account",
            place="resolver_preload",
            remedy="take its JetStream limits away",
        )
    return None


def _duplicate_users(options: Options) -> ConfigError | None:
    own = {user.name or user.nkey for user in options.auth.users}
    for account in options.accounts:
        for user in account.users:
            if (user.name or user.nkey) in own:
                return ConfigError(
                    f'duplicate user "{user.name or user.nkey}" detected in authorization and '
                    f'account "{account.name}"',
                    remedy="rename one",
                )
    return None


def _tls(options: Options) -> ConfigError | None:
    blocks = {
        "tls": options.tls,
        "cluster.tls": options.cluster.tls,
        "leafnodes.tls": options.leafnodes.tls if options.leafnodes.listens else None,
        "gateway.tls": options.gateway.tls,
    }
    for name, tls in blocks.items():
        if tls is not None and not (tls.cert_file and tls.key_file):
            return ConfigError(
                f"{name}: a certificate and its key are needed", remedy="set cert_file and key_file"
            )
    if options.monitoring.https_port != PORT_OFF and options.tls is None:
        return ConfigError("https_port needs a tls block", remedy="add tls { cert_file, key_file }")
    return None


def _secured(options: Options) -> ConfigError | None:
    """A URL secures nothing; hubs apart, whose certificates anybody may check."""
    cluster, gateway = options.cluster, options.gateway
    routes = cluster.tls is None and any(url.secured for url in cluster.routes)
    plain = [one for one in gateway.others if one.tls is None and gateway.tls is None]
    if routes or any(url.secured for one in plain for url in one.urls):
        return ConfigError(
            f"{'cluster' if routes else 'gateway'}: a URL begins with tls://, but there is no tls"
            " block: the way there would not be secured",
            remedy="add the block, or write nats://",
        )
    return None


def _monitoring(options: Options) -> ConfigError | None:
    if options.monitoring.port != PORT_OFF and options.monitoring.https_port != PORT_OFF:
        return ConfigError(
            "can't specify both HTTP and HTTPs ports", remedy="remove http_port or https_port"
        )
    return None


def _advertise(options: Options) -> ConfigError | None:
    wanted = (
        ("server INFO with ClientAdvertise", options.client_advertise),
        ("route INFO with Cluster.Advertise", options.cluster.advertise),
        ("leafnode INFO with LeafNode.Advertise", options.leafnodes.advertise),
        ("gateway INFO with Gateway.Advertise", options.gateway.advertise),
    )
    for what, text in wanted:
        if text and advertised(text, 0) is None:
            return ConfigError(
                f"Error setting {what} value of {text}", remedy="write host or host:port"
            )
    return None


CHECKS: tuple[Check, ...] = (
    _server_name,
    _payload,
    _lame_duck,
    _jetstream_cluster,
    _gateway,
    _routes,
    _no_auth_user,
    _two_kinds_of_login,
    _lone_password,
    _system_account,
    _duplicate_users,
    _tls,
    _secured,
    _monitoring,
    _advertise,
)
