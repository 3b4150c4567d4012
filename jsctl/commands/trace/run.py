"""Runs `jsctl trace`."""

from jsctl.client.tracing import trace
from jsctl.commands.toolkit.content.bodies import check_names, check_subject
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError
from jsctl.render.reports.trace import passage_document, passage_lines, summary_lines

VERSION_MIN = (2, 11)


async def trace_message(call: Call) -> None:
    """Sends a message that tells its way, and shows that."""
    subject = check_subject(call.text("subject"))
    headers = {key: text.strip() for key, text in call.mapping("header").items()}
    payload = call.text("payload").encode("utf-8", "surrogateescape")
    deliver, out = call.flag("deliver"), call.output
    async with call.client() as client:
        version = client.connected_server_version
        if (version.major, version.minor) < VERSION_MIN:
            raise JsctlError("tracing messages require NATS Server 2.11")
        if not out.asked:
            end = "with delivery to the final destination" if deliver else ""
            out.print(f"Tracing message route to subject {subject} {end}\n")
            out.stdout.flush()
        check_names(headers)
        timeout = call.settings.timeout
        found = await trace(client, subject, payload, headers, deliver=deliver, timeout_s=timeout)
    if out.asked:
        out.json(passage_document(found))
        return
    for line in (*passage_lines(found, stamped=call.flag("timestamp")), *summary_lines(found)):
        out.print(line)
