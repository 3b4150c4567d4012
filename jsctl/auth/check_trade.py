"""What accounts give each other, exports, imports and their tokens, and mappings of subjects."""

from collections.abc import Iterator, Sequence

from jsctl.auth.check_subjects import (
    Issue,
    contained,
    has_wildcards,
    info_issues,
    subject_issues,
)
from jsctl.auth.claims import WEIGHT_MAX, Activation, Export, Import, WeightedMapping
from jsctl.auth.keys import KeyKind, kind_of
from jsctl.auth.token import TokenProblem, read_as

SUBJECTS_COMPARED_MAX = 2_000
"""Pairs of subjects are compared; more of one kind than this are left to the server."""
SERVICE, STREAM = "service", "stream"


def mapping_issues(source: str, targets: Sequence[WeightedMapping]) -> Iterator[Issue]:
    """What is wrong with the mappings of one subject."""
    yield from subject_issues(source)
    total, clusters = 0, dict[str, int]()
    for target in targets:
        yield from subject_issues(target.subject)
        weight = target.percent
        if weight > WEIGHT_MAX:
            yield Issue(f'Mapping "{source}" has a weight {weight} that exceeds 100')
        if not target.cluster:
            total += weight
            continue
        clusters[target.cluster] = clusters.get(target.cluster, 0) + weight
        if clusters[target.cluster] > WEIGHT_MAX:
            yield Issue(
                f'Mapping "{source}" in cluster "{target.cluster}" exceeds 100% '
                "among all of it's weighted to mappings"
            )
    if total > WEIGHT_MAX:
        yield Issue(f'Mapping "{source}" exceeds 100% among all of it\'s weighted to mappings')


def exports_issues(exports: Sequence[Export]) -> Iterator[Issue]:
    """What is wrong with the exports of an account, together."""
    for one in exports:
        yield from export_issues(one)
    for kind in (SERVICE, STREAM):
        subjects = [one.subject for one in exports if (one.type_ == SERVICE) == (kind == SERVICE)]
        covered: dict[str, str] = {}
        if len(subjects) > SUBJECTS_COMPARED_MAX:
            continue
        for at, inner in enumerate(subjects):
            for other, outer in enumerate(subjects):
                if at != other and contained(inner, outer):
                    covered.setdefault(outer, inner)
        for outer, inner in covered.items():
            yield Issue(f'{kind} export subject "{outer}" already exports "{inner}"')


def export_issues(export: Export) -> Iterator[Issue]:
    """What is wrong with one export."""
    if export.type_ not in (SERVICE, STREAM):
        yield Issue(f'invalid export type: "{export.type_ or "unknown"}"')
    words = ("", "Singleton", "Stream", "Chunked")
    if export.type_ == SERVICE and export.response_type not in words:
        yield Issue(f'invalid response type for service: "{export.response_type}"')
    if export.type_ == STREAM and export.response_type:
        yield Issue(f'invalid response type for stream: "{export.response_type}"')
    if export.type_ == STREAM and export.allow_trace:
        yield Issue("AllowTrace only valid for service export")
    yield from _latency(export)
    if export.response_threshold < 0:
        yield Issue("negative response threshold is invalid")
    if export.response_threshold > 0 and export.type_ != SERVICE:
        yield Issue("response threshold only valid for services")
    yield from subject_issues(export.subject)
    yield from _token_position(export)
    yield from info_issues(export.info.description, export.info.info_url)


def _latency(export: Export) -> Iterator[Issue]:
    latency = export.service_latency
    if latency is None:
        return
    if export.type_ != SERVICE:
        yield Issue("latency tracking only permitted for services")
    sampling = latency.sampling
    if isinstance(sampling, int) and not 0 <= sampling <= 100:
        yield Issue("sampling percentage needs to be between 1-100")
    yield from subject_issues(latency.results)
    if has_wildcards(latency.results):
        yield Issue("results subject can not contain wildcards")


def _token_position(export: Export) -> Iterator[Issue]:
    position, tokens = export.account_token_position, export.subject.split(".")
    if position <= 0:
        return
    if not has_wildcards(export.subject):
        yield Issue(
            f"Account Token Position can only be used with wildcard subjects: {export.subject}"
        )
    elif position > len(tokens):
        yield Issue(
            f"Account Token Position {position} exceeds length of subject '{export.subject}'"
        )
    elif tokens[position - 1] != "*":
        yield Issue(
            f"Account Token Position {position} matches '{tokens[position - 1]}' "
            f"but must match a * in: {export.subject}"
        )


def imports_issues(imports: Sequence[Import], account: str) -> Iterator[Issue]:
    """What is wrong with the imports into `account`, together."""
    taken: dict[str, list[str]] = {}
    for one in imports:
        if one.type_ == SERVICE:
            subject = one.to or _unreferenced(one.local_subject) or one.subject
            known = taken.setdefault(one.account, [])
            for other in known[:SUBJECTS_COMPARED_MAX]:
                if contained(subject, other) or contained(other, subject):
                    yield Issue(
                        f'overlapping subject namespace for "{subject}" and "{other}" '
                        f'in same account "{one.account}"'
                    )
            if subject in known:
                yield Issue(
                    f'overlapping subject namespace for "{subject}" in account "{one.account}"'
                )
            known.append(subject)
        yield from import_issues(one, account)


def import_issues(one: Import, account: str) -> Iterator[Issue]:
    """What is wrong with one import into `account`."""
    if one.type_ not in (SERVICE, STREAM):
        yield Issue(f'invalid import type: "{one.type_ or "unknown"}"')
    if one.type_ == SERVICE and one.allow_trace:
        yield Issue("AllowTrace only valid for stream import")
    if not one.account:
        yield Issue("account to import from is not specified")
    if one.to:
        yield Issue("the field to has been deprecated (use LocalSubject instead)", blocking=False)
    yield from subject_issues(one.subject)
    if one.local_subject:
        yield from _renaming(one.local_subject, one.subject)
        if one.to:
            yield Issue("Local Subject replaces To")
    if one.share and one.type_ != SERVICE:
        yield Issue(
            "sharing information (for latency tracking) is only valid for services: "
            f'"{one.subject}"'
        )
    if one.token:
        yield from _token(one, account)


def _token(one: Import, account: str) -> Iterator[Issue]:
    try:
        claims = read_as(Activation, one.token)
    except TokenProblem:
        yield Issue(f'import "{one.subject}" contains an invalid activation token')
        return
    activation = claims.nats
    if one.account not in (claims.head.iss, activation.issuer_account):
        yield Issue(f'activation token doesn\'t match account for import "{one.subject}"')
    if claims.head.sub != account:
        yield Issue(
            f'activation token doesn\'t match account it is being included in, "{one.subject}"'
        )
    if activation.kind != one.type_:
        yield Issue(
            f"mismatch between token import type {activation.kind} and type of import {one.type_}"
        )
    yield from activation_issues(activation)
    subject = one.to if one.type_ == SERVICE and one.to else one.subject
    if not contained(subject, activation.subject):
        yield Issue(
            f'activation token import subject "{activation.subject}" '
            f'doesn\'t match import "{one.subject}"'
        )


def _renaming(subject: str, source: str) -> Iterator[Issue]:
    yield from subject_issues(subject)
    if not source:
        yield Issue("subject cannot be empty")
    if " " in subject:
        yield Issue(f'subject "{subject}" cannot have spaces')
    if _open_ended(subject) != _open_ended(source):
        yield Issue("both, renaming subject and subject, need to end or not end in >")
    wildcards = source.split(".").count("*")
    references = 0
    for token in subject.split("."):
        if token == "*":
            references += 1
        elif _is_reference(token):
            if int(token[1:]) > wildcards:
                yield Issue(
                    f'Reference ${int(token[1:])} in "{subject}" reference * '
                    f'in "{source}" that do not exist'
                )
            else:
                references += 1
    if references != wildcards:
        yield Issue("subject does not contain enough * or reference wildcards $[0-9]")


def _is_reference(token: str) -> bool:
    digits = token[1:]
    return token.startswith("$") and digits.isascii() and digits.isdigit() and len(digits) < 19


def _unreferenced(subject: str) -> str:
    return ".".join("*" if _is_reference(token) else token for token in subject.split("."))


def _open_ended(subject: str) -> bool:
    return subject == ">" or subject.endswith(".>")


def activation_issues(activation: Activation) -> Iterator[Issue]:
    """What is wrong with what a token allows."""
    if activation.kind not in (SERVICE, STREAM):
        yield Issue(f'invalid import type: "{activation.kind or "unknown"}"')
    yield from subject_issues(activation.subject)
    if activation.issuer_account and kind_of(activation.issuer_account) is not KeyKind.ACCOUNT:
        yield Issue("account_id is not an account public key")
