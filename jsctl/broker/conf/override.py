"""Flags laid over the options of the configuration file."""

from jsctl.broker.conf.flags import Parsed
from jsctl.broker.conf.units import host_port, port_number, route_url
from jsctl.broker.errors import ConfigError
from jsctl.broker.options import (
    ANY_HOST,
    CLUSTER_PORT,
    PORT_OFF,
    AuthOptions,
    ClusterOptions,
    Options,
    Url,
)
from jsctl.broker.tls_options import TlsOptions
from jsctl.dataclass import replace

NO_EFFECT = ("syslog", "remote_syslog", "profile")


def override(options: Options, parsed: Parsed) -> Options:
    """The options with every flag that was given. Raises ConfigError for values of no use."""
    for key in ("port", "http_port", "https_port"):
        number = parsed.number(key)
        if number is not None and port_number(str(number)) is None:
            raise ConfigError(
                f"{number} is no port", place=f"-{key}", remedy="use 1 to 65535, or -1 for any"
            )
    options = _server(options, parsed)
    options = _logging(options, parsed)
    options = _jetstream(options, parsed)
    options = _auth(options, parsed)
    options = replace(options, tls=_tls(options.tls, parsed))
    options = replace(options, cluster=_cluster(options.cluster, parsed))
    notes = tuple(
        f"-{key} has no effect in this server" for key in NO_EFFECT if key in parsed.values
    )
    return replace(options, warnings=options.warnings + notes)


def _server(options: Options, parsed: Parsed) -> Options:
    host, port = parsed.text("host"), parsed.number("port")
    listen = replace(
        options.listen,
        host=options.listen.host if host is None else host.strip("[]"),
        port=options.listen.port if port in (None, 0) else port,
    )
    http, https = parsed.number("http_port"), parsed.number("https_port")
    monitoring = options.monitoring
    if http is not None:
        monitoring = replace(monitoring, port=http)
    if https is not None:
        monitoring = replace(monitoring, https_port=https)
    return replace(
        options,
        listen=listen,
        monitoring=monitoring,
        server_name=_given(parsed.text("name"), options.server_name),
        pid_file=_given(parsed.text("pid"), options.pid_file),
        client_advertise=_given(parsed.text("client_advertise"), options.client_advertise),
        ports_file_dir=_given(parsed.text("ports_file_dir"), options.ports_file_dir),
    )


def _given(value: str | None, otherwise: str) -> str:
    return otherwise if value is None else value


def _logging(options: Options, parsed: Parsed) -> Options:
    log = options.log
    debug, trace, verbose = parsed.switch("debug"), parsed.switch("trace"), parsed.switch("VV")
    for key, with_debug, with_verbose in (("DV", True, False), ("DVV", True, True)):
        value = parsed.switch(key)
        if value is not None:
            debug, trace = value if with_debug else debug, value
            verbose = value if with_verbose else verbose
    if verbose is not None and trace is None:
        trace = verbose
    log = replace(
        log,
        debug=log.debug if debug is None else debug,
        trace=log.trace if trace is None else trace,
        trace_verbose=log.trace_verbose if verbose is None else verbose,
        file=_given(parsed.text("log"), log.file),
    )
    logtime, utc = parsed.switch("logtime"), parsed.switch("logtime_utc")
    size, traced = parsed.number("log_size_limit"), parsed.number("max_traced_msg_len")
    log = replace(
        log,
        logtime=log.logtime if logtime is None else logtime,
        logtime_utc=log.logtime_utc if utc is None else utc,
        size_bytes_max=log.size_bytes_max if size is None else size,
        traced_bytes_max=log.traced_bytes_max if traced is None else traced,
    )
    return replace(options, log=log)


def _jetstream(options: Options, parsed: Parsed) -> Options:
    enabled, store_dir = parsed.switch("jetstream"), parsed.text("store_dir")
    jetstream = options.jetstream
    if enabled is not None:
        jetstream = replace(jetstream, enabled=enabled)
    if store_dir is not None:
        jetstream = replace(jetstream, store_dir=store_dir)
    return replace(options, jetstream=jetstream)


def _auth(options: Options, parsed: Parsed) -> Options:
    user, password, token = (parsed.text(key) for key in ("user", "pass", "auth"))
    if user is None and password is None and token is None:
        return options
    for key, given in (("user", user), ("pass", password), ("auth", token)):
        if given == "":
            raise ConfigError(
                "it is empty: nobody would need it to log in",
                place=f"--{key}",
                remedy="give one, or leave the flag out",
            )
    if token and (user or password):
        raise ConfigError(
            "cannot have both a token and a user/password", place="--auth", remedy="remove one"
        )
    auth = AuthOptions(
        given=True,
        user=user or "",
        password=password or "",
        token=token or "",
        timeout_ns=options.auth.timeout_ns,
    )
    return replace(options, auth=auth)


def _tls(tls: TlsOptions | None, parsed: Parsed) -> TlsOptions | None:
    wanted, verify = parsed.switch("tls"), parsed.switch("tlsverify")
    cert, key, authority = (parsed.text(name) for name in ("tlscert", "tlskey", "tlscacert"))
    if authority == "":
        raise ConfigError(
            "it is empty: all public authorities would count",
            place="--tlscacert",
            remedy="name a file, or leave the flag out",
        )
    if wanted is False:
        return None
    if not (wanted or verify or cert or key or authority):
        return tls
    found = tls or TlsOptions()
    found = replace(
        found,
        cert_file=_given(cert, found.cert_file),
        key_file=_given(key, found.key_file),
        ca_file=_given(authority, found.ca_file),
    )
    if verify is not None:
        found = replace(found, verify=verify)
    for missing, what in ((found.cert_file, "certificate"), (found.key_file, "private key")):
        if not missing:
            raise ConfigError(
                f"TLS Server {what} must be present and valid",
                place="--tls",
                remedy="use --tlscert and --tlskey",
            )
    return found


def _cluster(cluster: ClusterOptions, parsed: Parsed) -> ClusterOptions:
    listen = parsed.text("cluster_listen")
    named = parsed.text("cluster")
    if named is not None and not _is_address(named):
        cluster = replace(cluster, name=named)
        if listen is None and cluster.port == PORT_OFF:
            cluster = replace(cluster, host=ANY_HOST, port=CLUSTER_PORT)
    elif named is not None:
        listen = named
    if listen is not None:
        cluster = _listening(cluster, listen)
    name, routes = parsed.text("cluster_name"), parsed.text("routes")
    retries, advertise = parsed.number("connect_retries"), parsed.switch("no_advertise")
    return replace(
        cluster,
        name=_given(name, cluster.name),
        routes=cluster.routes if routes is None else route_list(routes),
        advertise=_given(parsed.text("cluster_advertise"), cluster.advertise),
        no_advertise=cluster.no_advertise if advertise is None else advertise,
        connect_retries=cluster.connect_retries if retries is None else retries,
    )


def _is_address(text: str) -> bool:
    return text == "" or "://" in text or host_port(text) is not None


def _listening(cluster: ClusterOptions, text: str) -> ClusterOptions:
    """An empty address switches the cluster off; credentials come from the URL alone."""
    if text == "":
        return replace(cluster, port=PORT_OFF)
    scheme, _, rest = text.rpartition("://")
    login, _, address = rest.rpartition("@")
    found = host_port(address.rstrip("/"))
    if found is None or scheme not in ("", "nats", "nats-route", "tls"):
        raise ConfigError(
            f"{text!r} is no cluster address", place="--cluster", remedy="use nats://host:port"
        )
    user, colon, password = login.partition(":")
    if user and not colon:
        raise ConfigError(
            "expected cluster password to be set", place="--cluster", remedy="use user:password@"
        )
    host = found[0] or ANY_HOST
    return replace(cluster, host=host, port=found[1], user=user, password=password)


def route_list(text: str) -> tuple[Url, ...]:
    """URLs separated by commas. Raises ConfigError for one that is none."""
    found = []
    for part in text.split(","):
        if not part.strip():
            continue
        url = route_url(part)
        if url is None:
            raise ConfigError(
                f"{part.strip()!r} is no route", place="--routes", remedy="use nats://host:port"
            )
        found.append(url)
    return tuple(dict.fromkeys(found))
