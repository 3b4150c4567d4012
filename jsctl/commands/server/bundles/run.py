"""One bundle: read, asked about, rendered."""

import re
from collections.abc import Callable, Mapping

from jsctl.auth.entities import AccountEntity, OperatorEntity
from jsctl.commands.server.bundles.form import Form
from jsctl.commands.server.bundles.scaffold import Scaffold
from jsctl.commands.server.bundles.source import load
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.templating.parsing import TemplateError
from jsctl.commands.toolkit.templating.values import Callee, Record
from jsctl.errors import JsctlError, UsageError

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

Operators = Callable[[Call], OperatorEntity]
"""Finds the one that is meant, and asks if there are several. Raises NotFound."""


def files_of(call: Call, source: str, operators: Operators) -> tuple[Mapping[str, str], str]:
    """What is to be written, by name, and what is to be said behind it. Raises JsctlError."""
    bundle = load(source)
    operator = operators(call) if bundle.needs_operator else None
    data: dict[str, object] = {"_target": call.text("target"), "_source": source}
    try:
        if bundle.form is not None:
            data |= Form(call, bundle.form, data).filled()
        elif call.mapping("set"):
            raise UsageError("--set: the bundle asks nothing")
    except TemplateError as error:
        raise JsctlError(str(error)) from None
    if operator is not None:
        data["Requirements"] = {"Operator": _operator_record(operator)}
    scaffold = Scaffold(bundle, {})
    before = scaffold.text(bundle.before, data) if bundle.before else ""
    if before:
        call.output.print(f"\n{_CONTROL.sub('', before)}\n")
    files = scaffold.files(data)
    after = scaffold.text(bundle.after, data) if bundle.after else ""
    return files, _CONTROL.sub("", after)


def _operator_record(operator: OperatorEntity) -> Record:
    system = operator.system_account
    account = _account_record(system) if system else None
    values = {"Name": operator.name, "Subject": operator.subject, "JWT": operator.token}
    methods = _methods(values) | {"SystemAccount": Callee(lambda: account)}
    return Record("*ab.OperatorImpl", {}, methods)


def _account_record(account: AccountEntity) -> Record:
    values = {"Name": account.name, "Subject": account.subject, "JWT": account.token}
    return Record("*ab.AccountImpl", {}, _methods(values))


def _methods(values: Mapping[str, str]) -> dict[str, Callee]:
    return {name: Callee(lambda value=value: value) for name, value in values.items()}
