"""One typed request to the JetStream API: subject, body, answer, errors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError, decode, dumps
from jsctl.api.errors import ApiError, ApiErrorBody
from jsctl.api.subjects import API_PREFIX, api_subject, domain_prefix
from jsctl.client.addresses import shown_urls
from jsctl.client.connection import Log
from jsctl.client.failures import foreign_errors, translate
from jsctl.client.refusals import subject_of
from jsctl.errors import JsctlError, NotAllowed, Unreachable, UsageError
from jsctl.settings import Settings

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient

T = TypeVar("T")
STREAM_NOT_FOUND = 10059
EVENT_PREFIX = "$JS.EVENT"
UNNAMED = frozenset(" *>\t\r\n\f")
"""What no prefix of the API and no domain has in it."""
SILENCE_SECONDS = 0.5
"""So long after the last answer nobody else is waited for."""
API_LEVEL_HEADER = "Nats-Required-Api-Level"


class Refused(ApiError):
    """An error answer; `about` names what the request was for, empty if it was for no asset."""

    def __init__(self, code: int, err_code: int, description: str, about: str) -> None:
        super().__init__(code, err_code, description)
        self.about = about


def asset(operation: str, names: Sequence[str], err_code: int) -> str:
    """The stream or consumer that an error is about, as people are told."""
    if not names or not operation.startswith(("stream_", "consumer_")):
        return ""
    if operation.startswith("stream_") or len(names) == 1 or err_code == STREAM_NOT_FOUND:
        return f'stream "{names[0]}"'
    return f'consumer "{names[0]} > {names[1]}"'


class Requester:
    """Sends requests of one account and JetStream domain."""

    def __init__(self, client: "NatsClient", settings: Settings, log: Log | None = None) -> None:
        self.client = client
        self.settings = settings
        self._log = log if settings.trace else None
        self.prefix = api_prefix(settings)
        event_prefix(settings)

    async def ask(
        self, operation: str, *names: str, body: object = None, level: int = 0
    ) -> dict[str, object]:
        """The answer as a document. `level` is the API level that the request needs.

        Raises ApiError for an error answer, Unreachable when nobody answers.
        """
        subject = api_subject(operation, *names, prefix=self.prefix).decode()
        payload = b"" if body is None else dumps(body)
        headers = {API_LEVEL_HEADER: str(level)} if level else None
        answer = await self.exchange(subject, payload, headers)
        try:
            document = jsontext.parse(answer)
        except DecodeError:
            raise JsctlError(f"the answer to {subject} is not JSON") from None
        if not isinstance(document, dict):
            raise JsctlError(f"the answer to {subject} is not an object")
        problem = document.get("error")
        if isinstance(problem, dict):
            told = decode(ApiErrorBody, problem)
            about = asset(operation, names, told.err_code)
            raise Refused(told.code, told.err_code, told.description, about)
        return document

    async def call(
        self, answer: type[T], operation: str, *names: str, body: object = None, level: int = 0
    ) -> T:
        """The answer decoded; the response type is dropped. Raises as `ask`."""
        document = await self.ask(operation, *names, body=body, level=level)
        document.pop("type", None)
        return decode(answer, document)

    async def answer(self, operation: str, *names: str, body: object = None) -> "Msg":
        """The answer as it came, with its headers. Raises as `exchange`."""
        subject = api_subject(operation, *names, prefix=self.prefix).decode()
        return await self.message(subject, b"" if body is None else dumps(body))

    async def ask_all(
        self, operation: str, *names: str, body: object, expected: int = 0
    ) -> list[dict[str, object]]:
        """The answers of all servers to what each answers for itself, errors too.

        Ends with a short silence, with as many answers as are expected (0: unknown), or with the
        timeout.
        """
        from nats.errors import TimeoutError as NatsTimeout

        subject = api_subject(operation, *names, prefix=self.prefix).decode()
        inbox = self.client.new_inbox()
        found: list[dict[str, object]] = []
        async with self.client.refusals.scope(lambda: (subject, inbox)):
            subscription = await self.client.subscribe(inbox)
            await self.client.publish(subject, dumps(body), reply=inbox)
            try:
                while not expected or len(found) < expected:
                    wait = SILENCE_SECONDS if found else self.settings.timeout
                    message = await subscription.next_msg(timeout=wait)
                    document = jsontext.parse(message.data or b"{}")
                    if isinstance(document, dict) and document:
                        found.append(document)
            except (NatsTimeout, TimeoutError, ValueError):
                pass
            finally:
                await subscription.unsubscribe()
        return found

    async def exchange(
        self, subject: str, payload: bytes, headers: dict[str, str] | None = None
    ) -> bytes:
        """One raw request and its answer's body; raises Unreachable and NotAllowed."""
        return bytes((await self.message(subject, payload, headers)).data)

    async def message(
        self, subject: str, payload: bytes, headers: dict[str, str] | None = None
    ) -> "Msg":
        """One raw request and its answer; raises Unreachable and NotAllowed."""
        if self._log is not None:
            self._log(f">>> {subject}")
            for name, value in (headers or {}).items():
                self._log(f">>> Header: {name}: [{value}]")
            self._log(payload.decode("utf-8", "replace"))
        refusals = self.client.refusals
        if refusals.no_inbox is not None:
            raise refusals.no_inbox

        scope = refusals.scope(lambda: (subject, self.client.inbox_pattern))
        try:
            async with scope:
                message = await self.client.request(
                    subject, payload, timeout=self.settings.timeout, headers=headers
                )
        except NotAllowed as error:
            if subject_of(str(error)) == self.client.inbox_pattern:
                refusals.no_inbox = error
            raise
        except foreign_errors() as error:
            raise self._explained(translate(error), subject) from error
        if self._log is not None:
            text = message.data.decode("utf-8", "replace")
            self._log(f"<<< {subject}\n{text}\n")
        return message

    def _explained(self, error: JsctlError, subject: str) -> JsctlError:
        if not isinstance(error, Unreachable):
            return error
        if "no responders" in str(error):
            why = "JetStream is not enabled on this server, or not for this account"
            if "" in subject.split("."):  # of a filter; names are looked at before
                why = f'nobody answers "{subject}", as a part of it is empty'
            return Unreachable(str(error), hints=(why,))
        return unanswered(self.settings)


def unanswered(settings: Settings) -> Unreachable:
    """The error of a server that says nothing for as long as is waited for it."""
    where = shown_urls(settings.urls)
    return Unreachable(
        "context deadline exceeded",
        hints=(f"no answer from {where} in {settings.timeout:g}s",),
    )


def api_prefix(settings: Settings) -> bytes:
    """The prefix of API subjects, from a prefix or a domain; ends with a dot.

    Raises UsageError for both, and for one that no subject can begin with.
    """
    given = settings.connection.jetstream_api_prefix
    domain = settings.connection.jetstream_domain
    if given and domain:
        raise UsageError(
            "WithAPIPrefix and WithDomain are mutually exclusive",
            hints=("give --js-api-prefix or --js-domain, or see what the context has",),
        )
    _check_prefix(given, "api")
    if (UNNAMED | {"."}) & set(domain):
        raise UsageError(f'domain "{domain}" is not a valid JetStream name')
    if given:
        return given.encode() + b"."
    return domain_prefix(domain) if domain else API_PREFIX


def event_prefix(settings: Settings) -> str:
    """The prefix of subjects of advisories and metrics, without a dot at its end.

    Raises UsageError for one that no subject can begin with.
    """
    given = settings.connection.jetstream_event_prefix
    _check_prefix(given, "event")
    return given or EVENT_PREFIX


def _check_prefix(given: str, what: str) -> None:
    if given and ((UNNAMED | {"/"}) & set(given) or "" in given.split(".")):
        raise UsageError(f'{what} prefix "{given}" contains invalid subject characters')
