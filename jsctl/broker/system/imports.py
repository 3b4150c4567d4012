"""The services of the system account that other accounts import."""

from jsctl.broker.accounts.accounts import Account
from jsctl.broker.interest.targets import AccountImport, Subscription
from jsctl.broker.leafnode_options import GLOBAL_ACCOUNT
from jsctl.broker.options import SECOND_NS
from jsctl.broker.routing.router import Router
from jsctl.broker.subject.transforms import compile_transform

ANSWERS_NS = 10 * SECOND_NS
"""How long answers of the cluster's servers are led back."""
SERVICES = {
    "$SYS.REQ.ACCOUNT.PING.CONNZ": "CONNZ",
    "$SYS.REQ.SERVER.PING.CONNZ": "CONNZ",
    "$SYS.REQ.ACCOUNT.PING.STATZ": "STATZ",
}
"""What an account asks for -> the report on that account alone."""
JETSTREAM = b"$JS.API.>"
SERVED_HERE_ONLY = frozenset({"$SYS.REQ.USER.INFO", "$SYS.DEBUG.SUBSCRIBERS"})
"""Requests that the server of the asking connection answers alone."""


def import_services(router: Router, system: Account) -> None:
    """Lead the requests of all accounts to the system account."""

    def install(account: Account) -> list[Subscription]:
        made: list[Subscription] = []
        if account is system or "." in account.name or " " in account.name:
            return made
        for local, kind in SERVICES.items():
            remote = f"$SYS.REQ.ACCOUNT.{account.name}.{kind}"
            bridge = AccountImport(
                system,
                transform=compile_transform(local.encode(), remote.encode()),
                service=True,
                threshold_ns=ANSWERS_NS,
            )
            sub = Subscription(account, local.encode(), b"", b"", bridge, local_only=True)
            router.add(sub)
            made.append(sub)
        return made

    router.services.offer(install)


def import_jetstream(router: Router, system: Account) -> None:
    """Lead requests of the JetStream API to the system account, where servers without a JetStream
    lead them: nats-servers of the same cluster, or another one, that have one listen there alone.
    Brokers listen in each account, and pass over these."""
    simple = {account.name for account in router.accounts} == {GLOBAL_ACCOUNT, system.name}

    def install(account: Account) -> list[Subscription]:
        if account is system or not (simple or account.options.jetstream is not None):
            return []
        bridge = AccountImport(
            system,
            transform=compile_transform(JETSTREAM, JETSTREAM),
            service=True,
            share=True,
            single=True,
            threshold_ns=ANSWERS_NS,
        )
        sub = Subscription(account, JETSTREAM, b"", b"", bridge, local_only=True)
        router.add(sub)
        return [sub]

    router.services.offer(install)
