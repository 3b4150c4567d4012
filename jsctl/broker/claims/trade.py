"""What the accounts of JWTs give each other: exports, imports, and the tokens that let import.

A token belongs to one import, not to an account: who may import one subject of an export that
demands tokens may not import another one for that. So each import is looked at by itself, and
those that are not allowed are left out.
"""

from collections.abc import Collection, Iterator, Mapping

from jsctl.auth.check_trade import import_issues
from jsctl.auth.claims import Account, Export, Import
from jsctl.auth.token import Claims
from jsctl.broker.claims.verifying import NotBelieved, activation
from jsctl.broker.options import ExportOptions, ImportOptions
from jsctl.broker.subject.matching import subset
from jsctl.dataclass import replace

SERVICE = "service"
RESPONSES = {"stream": "stream", "chunked": "chunked"}
EVERYBODY = "*"


class Trade:
    """All exports and imports of some accounts at one moment.

    Invariant: the imports of all accounts are asked for before the exports of any, because an
    export names the accounts whose imports are allowed.
    """

    def __init__(
        self,
        known: Mapping[str, Claims[Account]],
        signers: Mapping[str, Collection[str]],
        now_s: int,
    ) -> None:
        """`signers`: account -> the keys that may sign for it."""
        self._known = known
        self._signers = signers
        self._now_s = now_s
        self._offers = {name: _Offers(claims.nats.exports) for name, claims in known.items()}
        self._allowed: dict[tuple[str, int], dict[str, None]] = {}
        """Account and number of an export that demands tokens -> who has shown a good one."""

    def imports(self, name: str, notes: list[str]) -> Iterator[ImportOptions]:
        """Those of an account that others allow; what becomes of the rest is noted."""
        for one in self._known[name].nats.imports:
            wrong = self._wrong(name, one)
            if wrong:
                notes.append(f"account {name} imports {one.subject!r} from {one.account}, {wrong}")
            else:
                yield import_options(one)

    def _wrong(self, name: str, wanted: Import) -> str:
        """Why an import is not allowed; empty if it is."""
        if wanted.account not in self._known:
            return "which is not known"
        number = self._offers[wanted.account].of(wanted)
        if number is None:
            return "which does not export that"
        export = self._known[wanted.account].nats.exports[number]
        if not export.token_req or export.account_token_position:
            return ""
        if not self._activated(export, wanted, name):
            return "and has no valid token for that"
        self._allowed.setdefault((wanted.account, number), {})[name] = None
        return ""

    def _activated(self, export: Export, wanted: Import, importer: str) -> bool:
        """Whether the token of an import counts."""
        if not wanted.token or any(one.blocking for one in import_issues(wanted, importer)):
            return False
        try:
            token = activation(wanted.token, self._now_s)
        except NotBelieved:
            return False
        if 0 < token.head.exp <= self._now_s:
            return False
        giver, account_of = wanted.account, token.nats.issuer_account
        if account_of not in ("", giver):
            return False
        if token.head.iss not in (self._signers[giver] if account_of else (giver,)):
            return False
        until = export.revocations
        keys = (importer, EVERYBODY)
        return not any(token.head.iat <= until[key] for key in keys if key in until)

    def exports(self, name: str) -> Iterator[ExportOptions]:
        """What an account exports. One that demands tokens is for those who have shown one, and
        for the account itself: an export for nobody would be one for everybody."""
        for number, one in enumerate(self._known[name].nats.exports):
            latency = one.service_latency
            sampling = latency.sampling if latency is not None else None
            shown = self._allowed.get((name, number), {})
            made = ExportOptions(
                subject=one.subject,
                service=one.type_ == SERVICE,
                accounts=tuple(dict.fromkeys([name, *shown])) if one.token_req else (),
                response_type=RESPONSES.get(one.response_type.lower(), "singleton"),
                account_token_position=one.account_token_position,
                allow_trace=one.allow_trace,
                latency_subject=latency.results if latency is not None else "",
                latency_sampling=sampling if isinstance(sampling, int) else 0,
            )
            threshold_ns = one.response_threshold
            yield replace(made, response_threshold_ns=threshold_ns) if threshold_ns > 0 else made


class _Offers:
    """Which export of an account an import is of."""

    def __init__(self, exports: Collection[Export]) -> None:
        self._same: dict[tuple[bool, str], int] = {}
        """By their very words."""
        self._wide: list[tuple[bool, bytes, int]] = []
        for number, one in enumerate(exports):
            service = one.type_ == SERVICE
            self._same[service, one.subject] = number
            if one.subject.endswith(">") or "*" in one.subject:
                self._wide.append((service, one.subject.encode(), number))

    def of(self, wanted: Import) -> int | None:
        """The number of the export; one in the very words of the import comes first."""
        made = import_options(wanted)
        found = self._same.get((made.service, made.subject))
        if found is not None:
            return found
        subject = made.subject.encode()
        wide = (
            number
            for service, pattern, number in self._wide
            if service is made.service and subset(subject, pattern)
        )
        return next(wide, None)


def import_options(one: Import) -> ImportOptions:
    """Of services the local subject is the one that requests go to, of streams the one that
    messages come on; `to` is what older JWTs have for either, the other way round for services."""
    service = one.type_ == SERVICE
    if one.local_subject:
        return ImportOptions(
            account=one.account,
            subject=one.subject,
            service=service,
            to=one.local_subject,
            share=one.share,
            allow_trace=one.allow_trace,
        )
    if service:
        return ImportOptions(
            account=one.account,
            subject=one.to or one.subject,
            service=True,
            to=one.subject,
            share=one.share,
        )
    return ImportOptions(
        account=one.account, subject=one.subject, prefix=one.to, allow_trace=one.allow_trace
    )
