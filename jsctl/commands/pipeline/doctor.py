"""`pipeline doctor`."""

import asyncio

from jsctl.client.addresses import shown_urls
from jsctl.commands.pipeline.session import MASTER, at_work
from jsctl.commands.pipeline.spec import settings_of, spec_of
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError
from jsctl.render.column import Column
from jsctl.settings import Settings
from jsctl.spark.pipeline import doctor as checks
from jsctl.spark.pipeline.doctor import Check, State
from jsctl.spark.pipeline.specification.spec import Spec

COLUMNS: tuple[Column[Check], ...] = (
    Column("name", "Check", lambda check: check.name),
    Column("state", "State", lambda check: check.state.value),
    Column("found", "Found", lambda check: check.found),
    Column("remedy", "Remedy", lambda check: check.remedy),
)


def doctor(call: Call) -> int:
    """Checks everything; 1 when a pipeline could not run."""
    spec = spec_of(call) if call.given("file") else None
    settings = settings_of(call, spec) if spec else call.settings
    found = list(checks.machine(call.environ, checks.libraries_of(spec) if spec else ()))
    found += list(checks.places(spec)) if spec else []
    found += list(checks.master(call.text("master") or (spec.spark.master if spec else MASTER)))
    found += asyncio.run(_servers(call, settings, spec))
    failed = [check for check in found if check.state is State.FAIL]
    if call.flag("deep") and not failed:
        stream = spec.source.stream if spec else ""
        with at_work(call, "doctor", settings, spec, short=True) as work:
            found += list(checks.deep(work.session.start, settings, stream))
    if call.as_json:
        call.output.json([check.document() for check in found])
    else:
        call.output.table(found, COLUMNS, "Pipeline Doctor")
    return 1 if any(check.state is State.FAIL for check in found) else 0


async def _servers(call: Call, settings: Settings, spec: Spec | None) -> list[Check]:
    from jsctl.client.manager import open_manager

    try:
        async with open_manager(settings, call.output.log) as manager:
            return await checks.servers(manager, settings, spec)
    except JsctlError as error:
        where = shown_urls(settings.urls)
        remedy = "; ".join(error.hints) or "see --server, --context and the credentials"
        return [Check("server", State.FAIL, f"{where}: {error}", remedy)]
