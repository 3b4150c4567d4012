"""`server generate`: configurations of servers, from questions or from their defaults.

Two are known: a server whose accounts are those of `jsctl auth`, and a cluster on this machine.
Others come as bundles.
"""

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from jsctl.auth.entities import OperatorEntity
from jsctl.auth.store import Store
from jsctl.commands.server.development.layout import (
    PASSWORDS,
    PORT_MAX,
    SERVERS_MAX,
    Layout,
    passwords_of,
    written,
)
from jsctl.commands.toolkit.grammar.values import parse_size, parse_whole
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import (
    Conflict,
    JsctlError,
    NeedsConfirmation,
    NotFound,
    UsageError,
    sentence_of,
)
from jsctl.files import make_folder, write_whole

INTRODUCTION = (
    "This tool generates NATS Server configurations based on a question and answer\n"
    "form-based approach and then renders the result into a directory.\n"
)
OPERATOR, CLUSTER = "operator", "cluster"
TITLES = {
    OPERATOR: "'jsctl auth' managed NATS Server configuration",
    CLUSTER: "Development cluster on this machine",
}


class Question(NamedTuple):
    """What is asked, and what may be answered; `check` raises ValueError."""

    name: str
    text: str
    default: str
    check: Callable[[str], str]


def generate(call: Call) -> None:
    """Writes the files of a configuration into a directory that is new."""
    target = Path(call.text("target")).expanduser()
    if target.exists():
        raise Conflict(f"target directory {target} already exist")
    call.output.print(INTRODUCTION)
    source = call.text("source")
    if source:
        from jsctl.commands.server.bundles.run import files_of

        if call.text("template"):
            raise UsageError("--template and --source exclude each other")
        files, after = files_of(call, source, _operator)
    else:
        files, after = _FILES[_template(call)](call, target), ""
    _write(target, files)
    for name in files:
        if not name.endswith("/"):
            call.output.log(f"Created {target / name}")
    if after:
        call.output.print(f"\n{after}\n")


def _write(target: Path, files: Mapping[str, str]) -> None:
    """All or nothing. A name that ends with a slash is a folder."""
    draft = target.with_name(f".{target.name}.{os.getpid()}.new")
    make_folder(draft)
    try:
        for name, text in files.items():
            make_folder(draft / name if name.endswith("/") else (draft / name).parent)
            if not name.endswith("/"):
                write_whole(draft / name, text.encode("utf-8", "surrogateescape"))
        try:
            draft.replace(target)
        except OSError as error:
            raise JsctlError(sentence_of(error, target)) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _template(call: Call) -> str:
    given = call.text("template")
    if given:
        return given
    if not call.prompts.possible:
        raise NeedsConfirmation(
            "cannot prompt for user input without a terminal",
            hints=("--template and --defaults answer all questions",),
        )
    picked = call.prompts.choose("Select a template", sorted(TITLES.values()))
    return next(name for name, title in TITLES.items() if title == picked)


def _answers(call: Call, questions: Sequence[Question]) -> dict[str, str]:
    """Of `--set`, of the defaults or of a person. Raises UsageError for an answer that is none."""
    given, answers = call.mapping("set"), dict[str, str]()
    unknown = sorted(set(given) - {one.name for one in questions})
    if unknown:
        known = ", ".join(one.name for one in questions)
        raise UsageError(f"--set {unknown[0]}: there is no such question; known: {known}")
    for one in questions:
        if one.name in given or call.flag("defaults"):
            try:
                answers[one.name] = one.check(given.get(one.name, one.default))
            except ValueError as error:
                raise UsageError(f"{one.name}: {error}") from None
        elif one.check is _truth:
            said = call.prompts.confirm(one.text, default=one.default == "true", prefix="")
            answers[one.name] = str(said).lower()
        else:
            answers[one.name] = call.prompts.ask(
                one.text, default=one.default, check=one.check, prefix=""
            )
    return answers


def _text(text: str) -> str:
    if not text or "\n" in text:
        raise ValueError("a value is required")
    return text


def _address(text: str) -> str:
    return str(ip_address(text))


def _port(text: str) -> str:
    port = parse_whole(text)
    if not 1 <= port <= PORT_MAX:
        raise ValueError(f"a port is a number from 1 to {PORT_MAX}")
    return str(port)


def _truth(text: str) -> str:
    if text not in ("true", "false"):
        raise ValueError("true or false")
    return text


def _bytes(text: str) -> str:
    try:
        return str(parse_size(text))
    except UsageError as error:
        raise ValueError(str(error)) from None


def _count(text: str) -> str:
    count = parse_whole(text)
    if count < 1:
        raise ValueError("a number above 0")
    return str(count)


def _servers(text: str) -> str:
    count = _count(text)
    if int(count) > SERVERS_MAX:
        raise ValueError(f"a number from 1 to {SERVERS_MAX}")
    return count


_OF_OPERATOR = (
    Question("server_name", "Unique name for this server", "nats.example.net", _text),
    Question("address", "Address to listen on", "0.0.0.0", _address),
    Question("port", "The port to listen on for client connections", "4222", _port),
    Question("monitor_port", "Port to listen on for monitoring requests", "8222", _port),
    Question("streams", "Enables JetStream in the cluster", "true", _truth),
    Question("store_dir", "Directory to store JetStream data", "/var/lib/nats/jetstream", _text),
    Question("max_mem", "Maximum amount of RAM that can be used by JetStream", "-1", _bytes),
    Question("max_file", "Maximum amount of disk that can be used by JetStream", "-1", _bytes),
    Question("resolver_dir", "The directory to store JWTs in", "/var/lib/nats/resolver", _text),
    Question("allow_delete", "Should the server allow accounts to be deleted", "true", _truth),
    Question("limit", "The maximum amount of accounts to allow", "1000", _count),
)


def _operator_files(call: Call, _target: Path) -> dict[str, str]:
    operator = _operator(call)
    found = _answers(call, _OF_OPERATOR)
    listen = f"{found['address']}:{found['port']}"
    lines = [
        f"# A server of operator {operator.name}; accounts come from its resolver.",
        f"server_name: {written(found['server_name'])}",
        f"listen: {written(listen)}",
        f"monitor_port: {found['monitor_port']}",
        f"operator: {operator.token}",
    ]
    system = operator.system_account
    if system is not None:
        lines += [
            f"system_account: {system.subject}",
            f"resolver_preload {{\n  # {system.name}\n  {system.subject}: {system.token}\n}}",
        ]
    if found["streams"] == "true":
        store = written(found["store_dir"])
        limits = f"max_mem: {found['max_mem']}\n  max_file: {found['max_file']}"
        lines.append(f"jetstream {{\n  store_dir: {store}\n  {limits}\n}}")
    lines.append(
        f"resolver {{\n  type: full\n  dir: {written(found['resolver_dir'])}\n"
        f'  allow_delete: {found["allow_delete"]}\n  interval: "2m"\n  limit: {found["limit"]}\n}}'
    )
    return {"server.conf": "\n".join(lines) + "\n"}


def _operator(call: Call) -> OperatorEntity:
    operators = Store.default(call.environ).load()
    if not operators:
        raise NotFound("no operator found", hints=("jsctl auth operator add makes one",))
    name = call.text("operator")
    if not name and len(operators) == 1:
        return operators[0]
    names = [one.name for one in operators]
    name = name or call.prompts.choose("Select an Operator", sorted(names))
    if name not in names:
        raise NotFound(f"unknown operator: {name}", hints=(f"known: {', '.join(names)}",))
    return operators[names.index(name)]


_OF_CLUSTER = (
    Question("servers", "How many servers", "3", _servers),
    Question("port", "The first port for clients", "4222", _port),
    Question("jetstream", "Enables JetStream", "true", _truth),
)


def _cluster_files(call: Call, target: Path) -> dict[str, str]:
    found = _answers(call, _OF_CLUSTER)
    target = target.absolute()
    layout = Layout(
        name=target.name,
        directory=target,
        port=int(found["port"]),
        servers=int(found["servers"]),
        jetstream=found["jetstream"] == "true",
        monitor=False,
        passwords=passwords_of(None),
    )
    if max(layout.ports) > PORT_MAX:
        raise UsageError(f"port: the last one would be {max(layout.ports)}, above {PORT_MAX}")
    files = {f"{node}.conf": layout.configuration(at) for at, node in enumerate(layout.nodes)}
    return {**files, PASSWORDS: json.dumps(dict(layout.passwords), indent=2) + "\n"}


_FILES: Mapping[str, Callable[[Call, Path], dict[str, str]]] = {
    OPERATOR: _operator_files,
    CLUSTER: _cluster_files,
}
