"""`auth account mappings`: where an account's messages go instead."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from jsctl.auth.check_trade import mapping_issues
from jsctl.auth.claims import WEIGHT_MAX, Account, WeightedMapping
from jsctl.commands.auth.asking import ask_text
from jsctl.commands.auth.reading import existing
from jsctl.commands.auth.selecting import Auth, known_names
from jsctl.commands.toolkit.content.yaml_problems import yaml_problem
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, JsctlError, NotFound, UsageError
from jsctl.files import read_text
from jsctl.render.reports.auth.trade import MAPPING_COLUMNS, MappingRow, mappings_screen

Mappings = Mapping[str, tuple[WeightedMapping, ...]]


def add(call: Call) -> None:
    """One target of a subject, or what a file says."""
    config = call.text("config")
    given = _configured(existing(config)) if config else None
    auth = Auth(call)
    operator, account = auth.account()
    changed = given if given is not None else _one(call, account.claims.nats)
    for source, targets in changed.items():
        for issue in mapping_issues(source, targets):
            raise JsctlError(issue.text)
    nats = account.claims.nats
    mappings = {**nats.mappings, **changed}
    auth.issuer.change_account(operator, account, replace(nats, mappings=mappings))
    auth.store.save(operator)
    _show(call, changed)


def _one(call: Call, nats: Account) -> Mappings:
    source = call.text("source") or ask_text(
        call, "Source subject", "The source subject of the mapping"
    )
    target = call.text("target") or ask_text(
        call, "Target subject", "The target subject of the mapping"
    )
    before = nats.mappings.get(source, ())
    if any(one.subject == target for one in before):
        raise Conflict(f"mapping {source} -> {target} already exists")
    one = WeightedMapping(target, call.integer("weight"), call.text("cluster"))
    return {source: (*before, one)}


def _configured(path: Path) -> Mappings:
    """Mappings of a file: a list of `subject`, `weight` and `cluster` for each source."""
    import yaml

    text = read_text(path)
    try:
        document, root = yaml.safe_load(text), yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"unable to load config file: {path}: {yaml_problem(error)}") from None
    what = f"unable to load config file: {path} is not a list of targets for each subject"
    if not isinstance(document, dict):
        raise UsageError(what)
    keys = [str(key.value) for key, _ in root.value] if root else []
    if len(set(keys)) < len(keys):
        raise UsageError(f"unable to load config file: {path} names a subject twice")
    if not all(isinstance(targets, list) for targets in document.values()):
        raise UsageError(what)
    try:
        return {
            str(source): tuple(_target(one) for one in targets)
            for source, targets in document.items()
        }
    except ValueError as error:
        raise UsageError(f"{what}: {error}") from None


def _target(one: object) -> WeightedMapping:
    """One of a list. Raises ValueError, which repeats nothing of a document that may be huge."""
    if not isinstance(one, dict):
        raise ValueError("a target has to be a subject with a weight")
    found = {str(key).lower(): value for key, value in one.items() if value is not None}
    subject, cluster = (found.get(name, "") for name in ("subject", "cluster"))
    weight = found.get("weight", 0)
    if not isinstance(subject, str | int) or not isinstance(cluster, str | int):
        raise ValueError("a subject or a cluster is no text")
    if type(weight) is not int or not 0 <= weight <= WEIGHT_MAX:
        raise ValueError(f"the weight for {subject} is no percentage from 0 to {WEIGHT_MAX}")
    return WeightedMapping(str(subject), weight, str(cluster))


def _show(call: Call, mappings: Mappings) -> None:
    if call.as_json:
        call.output.json(
            {source: [_document(one) for one in targets] for source, targets in mappings.items()}
        )
        return
    call.output.details(mappings_screen(mappings))
    call.output.print()


def _document(one: WeightedMapping) -> dict[str, object]:
    """As `nats` prints it, which is not as claims have it."""
    return {"Subject": one.subject, "Weight": one.weight, "Cluster": one.cluster}


def _picked(call: Call, known: list[str], question: str) -> str:
    source = call.text("source")
    if not source:
        return call.prompts.choose(question, known)
    if source not in known:
        raise NotFound(f'there is no mapping of "{source}"', hints=known_names(source, known))
    return source


def info(call: Call) -> None:
    """The targets of one subject."""
    _, account = Auth(call).account()
    mappings = account.claims.nats.mappings
    if not mappings:
        call.output.print("No mappings defined")
        return
    source = _picked(call, sorted(mappings), "Select a mapping to inspect")
    _show(call, {source: mappings[source]})


def ls(call: Call) -> None:
    """All of them, by source."""
    _, account = Auth(call).account()
    mappings = account.claims.nats.mappings
    if not mappings and not call.output.machine:
        call.output.print("No mappings defined")
        return
    rows = [MappingRow(source, one) for source in sorted(mappings) for one in mappings[source]]
    call.output.table(rows, MAPPING_COLUMNS, f"Subject mappings for account {account.name}")
    if not call.output.machine:
        call.output.print()


def remove(call: Call) -> None:
    """Takes all targets of a subject away."""
    auth = Auth(call)
    operator, account = auth.account()
    nats = account.claims.nats
    if not nats.mappings:
        call.output.print("No mappings defined")
        return
    source = _picked(call, sorted(nats.mappings), "Select a mapping to delete")
    left = {one: targets for one, targets in nats.mappings.items() if one != source}
    auth.issuer.change_account(operator, account, replace(nats, mappings=left))
    auth.store.save(operator)
    call.output.print(f"Deleted mapping {{{source}}}")
