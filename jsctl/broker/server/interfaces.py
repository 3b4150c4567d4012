"""By which addresses other machines reach this one."""

from ipaddress import IPv4Address, IPv6Address, ip_address

from jsctl.broker.conf.units import ANY_HOSTS


def reached_at(host: str) -> tuple[str, ...]:
    """The hosts that a listener at `host` has for others: those of all interfaces for "any"."""
    if host not in ANY_HOSTS:
        return (host,)
    import ifaddr  # loaded late: it brings a foreign function interface along

    found: list[str] = []
    for adapter in ifaddr.get_adapters():
        for one in adapter.ips:
            address = ip_address(one.ip if isinstance(one.ip, str) else one.ip[0])
            if _is_global_unicast(address):
                found.append(str(address))
    return tuple(dict.fromkeys(found))


def _is_global_unicast(address: IPv4Address | IPv6Address) -> bool:
    """Whether others can use it; private networks count, as nats-server tells them, too."""
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address == IPv4Address("255.255.255.255")
    )
