"""`auth operator add`, `edit`, `import` and `select`."""

from dataclasses import replace

from jsctl.auth.claims import Operator
from jsctl.auth.entities import OperatorEntity, with_tags
from jsctl.auth.keys import KeyKind, KeyPair, KeyProblem, from_text
from jsctl.auth.store import check_name
from jsctl.auth.token import read_as
from jsctl.commands.auth.asking import ask_text
from jsctl.commands.auth.operator.show import show_operator
from jsctl.commands.auth.reading import existing, read_url
from jsctl.commands.auth.selecting import Auth, select_operator
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, UsageError
from jsctl.files import read_text

SYSTEM = "SYSTEM"


def add(call: Call) -> None:
    """A new operator with a system account and, unless told otherwise, a signing key."""
    name = call.text("name") or ask_text(
        call, "Operator Name", "A unique name for the Operator being added"
    )
    name = check_name(name, "operator")
    auth = Auth(call)
    if auth.find(name):
        raise Conflict(f"operator {name} already exist")
    operator = auth.issuer.new_operator(name)
    system = auth.issuer.new_account(operator, SYSTEM)
    nats = _edited(call, operator.claims.nats, replacing=True)
    auth.issuer.change_operator(operator, replace(nats, system_account=system.subject))
    if call.flag("signing-key"):
        auth.issuer.new_operator_key(operator)
    auth.store.save(operator)
    show_operator(call, operator)


def _edited(call: Call, nats: Operator, *, replacing: bool = False) -> Operator:
    """The claims with what was given; no other field changes."""
    if call.given("account-server"):
        nats = replace(nats, account_server_url=read_url(call.text("account-server")))
    if call.given("service"):
        urls = tuple(read_url(url) for url in call.texts("service") if url)
        nats = replace(nats, operator_service_urls=urls)
    gone = () if replacing else call.texts("no-tags")
    tags = with_tags(nats.generic.tags, call.texts("tags"), gone)
    return replace(nats, generic=replace(nats.generic, tags=tags))


def edit(call: Call) -> None:
    """Changes what is given."""
    auth = Auth(call)
    operator = auth.operator(call.text("name"))
    nats = _edited(call, operator.claims.nats)
    if nats != operator.claims.nats:
        auth.issuer.change_operator(operator, nats)
        auth.store.save(operator)
    show_operator(call, operator)


def import_operator(call: Call) -> None:
    """An operator from its JWT and all of its keys."""
    path = existing(call.text("token"))
    auth = Auth(call)
    token = read_text(path).strip()
    claims = read_as(Operator, token)
    wanted = (claims.head.sub, *claims.nats.signing_keys)
    pairs = _imported_keys(call, wanted)
    if len(pairs) != len(wanted):
        raise UsageError(f"not all keys are provided: {len(pairs)}")
    if auth.find(check_name(claims.head.name, "operator")):
        raise Conflict(f"operator {claims.head.name} already exist")
    operator = OperatorEntity(claims.head.name, pairs[claims.head.sub], token, claims)
    operator.signing_keys = [pairs[public] for public in claims.nats.signing_keys]
    operator.added_keys = list(pairs.values())
    auth.issuer.change_operator(operator, claims.nats)
    auth.store.save(operator)
    show_operator(call, operator)


def _imported_keys(call: Call, wanted: tuple[str, ...]) -> dict[str, KeyPair]:
    """The pairs of the files, by public key."""
    pairs: dict[str, KeyPair] = {}
    for at, name in enumerate(call.texts("key")):
        path = existing(name)
        try:
            pair = from_text(read_text(path).strip(), KeyKind.OPERATOR)
        except KeyProblem as error:
            raise UsageError(f"invalid seed at {at}: {error}") from None
        if not pair.seed:
            raise UsageError(f"invalid seed at {at}: {path} holds a public key")
        if pair.public not in wanted:
            raise UsageError(f"invalid seed in {path}: is not referenced by the operator")
        pairs[pair.public] = pair
    return pairs


def select(call: Call) -> None:
    """Makes an operator the default of all other commands."""
    operator = Auth(call).operator(call.text("name"), use_selected=False)
    select_operator(call, operator.name)
    text = f'Selected operator "{operator.name}" as default'
    call.output.tell(text, {"operator": operator.name, "selected": True})
