"""Acknowledgements for many publishers that wait, of which each has an inbox of its own."""

from collections.abc import Sequence

from jsctl.broker.interest.kinds import CLIENT
from jsctl.broker.interest.outbound import Outbound
from jsctl.broker.interest.targets import Namespace, SublistResult
from jsctl.broker.protocol.deliveries import AckRun


def answer_each(
    touched: list[Outbound], account: Namespace, plans: Sequence[SublistResult], run: AckRun
) -> None:
    """As `Deliverer.many` for acknowledgements of which each has a plan that is `sole`; who has
    something to be sent in this turn is put into `touched`."""
    # As `Deliverer.worded`, without a call for each.
    clients = [plan.clients[0] for plan in plans]
    lines = run.each(CLIENT.verb, [sub.infix for sub, _ in clients])
    count = payload_bytes = 0
    for (sub, session), data, size in zip(clients, lines, run.sizes(), strict=True):
        if session.closing:
            continue
        sub.delivered += 1
        session.out_messages += 1
        session.payload_bytes_out += size
        session.out.append(data)
        session.out_bytes += len(data)
        if not session.touched:
            session.touched = True
            touched.append(session)
        count += 1
        payload_bytes += size
    account.out_messages += count
    account.out_bytes += payload_bytes
