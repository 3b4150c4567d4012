"""JWTs of accounts and time: which of two counts, and when one begins or ceases to count."""

from collections.abc import Iterable, Iterator

from jsctl.broker.claims.verifying import NotBelieved, account_said, activation_said, read_account


def is_newer(given: str, known: str) -> bool:
    """Whether a JWT is to take the place of one of the same account that a server has: one that it
    cannot read counts for nothing, and the same one again is none."""
    if not given or given == known:
        return False
    try:
        new = read_account(given).claims.head
    except NotBelieved:
        return False
    try:
        old = account_said(known).claims.head
    except NotBelieved:
        return True
    return new.jti != old.jti and new.iat >= old.iat


def next_change_s(tokens: Iterable[str], now_s: int) -> int:
    """When the first of some JWTs begins or ceases to count, or what lets it import, in seconds of
    the Unix epoch; 0: none ever does."""
    times = [time_s for token in tokens for time_s in _times(token) if time_s > now_s]
    return min(times, default=0)


def _times(token: str) -> Iterator[int]:
    try:
        claims = account_said(token).claims
    except NotBelieved:
        return
    head = claims.head
    yield head.nbf
    if head.exp:
        yield head.exp + 1
    for one in claims.nats.imports:
        if one.token:
            try:
                act = activation_said(one.token).head
            except NotBelieved:
                continue
            yield act.nbf
            yield act.exp
