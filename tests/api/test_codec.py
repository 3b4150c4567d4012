"""Round trips of API objects, and refusals in the words of the real server."""

import json
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.api.codec import DecodeError, decode, dumps, encode, loads
from jsctl.api.consumer import ConsumerConfig, ConsumerInfo
from jsctl.api.requests import (
    ConsumerCreateRequest,
    StreamConfigRequest,
    StreamInfoRequest,
    StreamNamesRequest,
)
from jsctl.api.responses import PubAckResponse, StreamInfoResponse, StreamNamesResponse
from jsctl.api.server import ServerInfo
from jsctl.api.stream import StreamConfig, StreamInfo, StreamSource, StreamState
from jsctl.api.words import Compression, Discard, PersistMode, Retention, Storage
from tests.support.quick import examples

configs = st.builds(
    StreamConfig,
    name=st.text(max_size=5),
    subjects=st.lists(st.text(max_size=4), max_size=3).map(tuple),
    retention=st.sampled_from(Retention),
    storage=st.sampled_from(Storage),
    discard=st.sampled_from(Discard),
    compression=st.sampled_from(Compression),
    persist_mode=st.sampled_from(PersistMode),
    max_msgs=st.integers(-1, 2**40),
    max_age=st.integers(0, 2**50),
    sealed=st.booleans(),
    mirror=st.none() | st.builds(StreamSource, name=st.text(max_size=3)),
    sources=st.lists(st.builds(StreamSource, opt_start_seq=st.integers(0, 9)), max_size=2).map(
        tuple
    ),
    metadata=st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=3),
)


@settings(max_examples=examples(100), deadline=None)
@given(configs)
def test_a_stream_configuration_survives_the_wire_lax_and_strict(config: StreamConfig) -> None:
    payload = dumps(config)
    assert loads(StreamConfig, payload) == config
    assert loads(StreamConfig, payload, strict=True) == config
    assert dumps(loads(StreamConfig, payload)) == payload


def test_field_order_and_omission_are_the_servers() -> None:
    assert dumps(StreamConfig(name="S", max_msgs=-1)) == (
        b'{"name":"S","retention":"limits","max_consumers":0,"max_msgs":-1,"max_bytes":0,'
        b'"max_age":0,"max_msgs_per_subject":0,"discard":"old","storage":"file",'
        b'"num_replicas":0,"compression":"none","allow_direct":false,"mirror_direct":false,'
        b'"sealed":false,"deny_delete":false,"deny_purge":false,"allow_rollup_hdrs":false,'
        b'"consumer_limits":{},"allow_msg_ttl":false}'
    )
    assert dumps(StreamState()) == (
        b'{"messages":0,"bytes":0,"first_seq":0,"first_ts":"0001-01-01T00:00:00Z",'
        b'"last_seq":0,"last_ts":"0001-01-01T00:00:00Z","consumer_count":0}'
    )


def test_html_characters_are_escaped_as_go_does() -> None:
    assert dumps({"s": "a.> <b> & c"}) == b'{"s":"a.\\u003e \\u003cb\\u003e \\u0026 c"}'


def test_unknown_keys_and_words_are_kept() -> None:
    text = (
        b'{"name":"S","retention":"someday","max_consumers":1,"max_msgs":1,"max_bytes":1,'
        b'"max_age":1,"max_msgs_per_subject":1,"discard":"old","storage":"file",'
        b'"num_replicas":1,"compression":"none","allow_direct":true,"mirror_direct":false,'
        b'"sealed":false,"deny_delete":false,"deny_purge":false,"allow_rollup_hdrs":false,'
        b'"consumer_limits":{},"allow_msg_ttl":false,"shiny":{"new":[1]}}'
    )
    assert dumps(loads(StreamConfig, text)) == text


def test_null_leaves_the_zero_value() -> None:
    assert loads(StreamConfig, b'{"name":null,"subjects":null,"mirror":null}') == StreamConfig()


def test_embedded_structs_are_flat_and_errors_have_no_content() -> None:
    names = StreamNamesResponse()
    assert dumps(names) == b'{"type":"","total":0,"offset":0,"limit":0,"streams":null}'
    error = loads(
        StreamInfoResponse,
        b'{"type":"t","error":{"code":404,"err_code":10059,"description":"stream not found"},'
        b'"total":0,"offset":0,"limit":0}',
    )
    assert error.info is None
    assert error.head.error is not None
    assert error.head.error.err_code == 10059
    full = StreamInfoResponse(info=StreamInfo(config=StreamConfig(name="S")))
    assert loads(StreamInfoResponse, dumps(full)) == full
    ack = loads(PubAckResponse, b'{"stream":"S","seq":3,"duplicate": true}')
    assert ack.ack is not None
    assert (ack.ack.stream, ack.ack.seq, ack.ack.duplicate) == ("S", 3, True)


REFUSALS = [
    ('{"max_msgs":"x"}', "Go struct field StreamConfigRequest.max_msgs of type int64", "string"),
    (
        '{"max_msgs":1.5}',
        "Go struct field StreamConfigRequest.max_msgs of type int64",
        "number 1.5",
    ),
    ('{"name":5}', "Go struct field StreamConfigRequest.name of type string", "number"),
    ('{"subjects":"x"}', "Go struct field StreamConfigRequest.subjects of type []string", "string"),
    (
        '{"placement":{"cluster":1}}',
        "Go struct field StreamConfigRequest.placement.cluster of type string",
        "number",
    ),
    ('{"sealed":1}', "Go struct field StreamConfigRequest.sealed of type bool", "number"),
    (
        '{"metadata":{"a":1}}',
        "Go struct field StreamConfigRequest.metadata.a of type string",
        "number",
    ),
    ("[1]", "Go value of type server.StreamConfigRequest", "array"),
    ('{"subjects":[1]}', "StreamConfigRequest.subjects.0 of type string", "number"),
    (
        '{"max_age":"1s"}',
        "Go struct field StreamConfigRequest.max_age of type time.Duration",
        "string",
    ),
    ('{"sources":["x"]}', "StreamConfigRequest.sources.0 of type server.StreamSource", "string"),
    (
        '{"sources":[{"name":1}]}',
        "Go struct field StreamConfigRequest.sources.0.name of type string",
        "number",
    ),
    (
        '{"first_seq":-1}',
        "Go struct field StreamConfigRequest.first_seq of type uint64",
        "number -1",
    ),
    (
        '{"max_consumers":[]}',
        "Go struct field StreamConfigRequest.max_consumers of type int",
        "array",
    ),
]


@pytest.mark.parametrize(("document", "place", "found"), REFUSALS, ids=[r[0] for r in REFUSALS])
def test_mismatches_are_named_as_the_server_names_them(
    document: str, place: str, found: str
) -> None:
    with pytest.raises(DecodeError) as refused:
        loads(StreamConfigRequest, document, strict=True)
    assert str(refused.value) == f"json: cannot unmarshal {found} into {place}"


@pytest.mark.parametrize(
    ("cls", "document", "text"),
    [
        (StreamConfigRequest, '{"bogus":1}', 'json: unknown field "bogus"'),
        (StreamConfigRequest, '{"placement":{"x":1}}', 'json: unknown field "x"'),
        (StreamConfigRequest, '{"retention":"bogus"}', r'can not unmarshal "\"bogus\""'),
        (StreamConfigRequest, '{"retention":5}', 'can not unmarshal "5"'),
        (StreamConfigRequest, '{"compression":"x"}', "unknown compression algorithm"),
        (ConsumerCreateRequest, '{"action":"zz"}', 'unknown consumer action: "zz"'),
        (
            ConsumerCreateRequest,
            '{"config":{"max_deliver":"a"}}',
            "json: cannot unmarshal string into Go struct field "
            "CreateConsumerRequest.config.max_deliver of type int",
        ),
        (
            ConsumerCreateRequest,
            '{"config":{"backoff":["a"]}}',
            "json: cannot unmarshal string into CreateConsumerRequest.config.backoff.0 "
            "of type time.Duration",
        ),
        (
            StreamNamesRequest,
            '{"offset":"a"}',
            "json: cannot unmarshal string into Go struct field "
            "JSApiStreamNamesRequest.offset of type int",
        ),
        (
            StreamConfigRequest,
            '{"sources":[{"opt_start_time":"bad"}]}',
            'parsing time "bad" as "2006-01-02T15:04:05Z07:00": cannot parse "bad" as "2006"',
        ),
        (StreamConfigRequest, '{"name":"A"', "unexpected EOF"),
        (
            StreamConfigRequest,
            '{"name":}',
            "invalid character '}' looking for beginning of value at offset 9",
        ),
        (
            StreamConfigRequest,
            "x",
            "invalid character 'x' looking for beginning of value at offset 1",
        ),
        (
            StreamConfigRequest,
            '{"name":"A" x}',
            "invalid character 'x' after object key:value pair at offset 13",
        ),
        (
            StreamConfigRequest,
            "{x}",
            "invalid character 'x' looking for beginning of object key string at offset 2",
        ),
    ],
)
def test_refusals_have_the_servers_words(cls: type, document: str, text: str) -> None:
    with pytest.raises(DecodeError) as refused:
        loads(cls, document, strict=True)
    assert str(refused.value) == text


def test_an_empty_payload_is_an_empty_request() -> None:
    assert loads(StreamInfoRequest, b"", strict=True) == StreamInfoRequest()


def test_lax_decoding_still_refuses_other_shapes() -> None:
    with pytest.raises(DecodeError):
        decode(StreamInfo, {"config": 5})
    with pytest.raises(DecodeError):
        decode(StreamInfo, [])


def test_every_field_of_a_consumer_has_a_json_name_of_its_own() -> None:
    names = list(encode(ConsumerInfo(config=ConsumerConfig(name="C"))))
    assert len(names) == len(set(names))
    assert {f.name for f in fields(ServerInfo)} >= {"name", "host", "id", "ver", "jetstream"}


def test_documents_of_a_nested_kind_keep_their_values() -> None:
    document = json.loads(b'{"config":{"name":"S","sources":[{"name":"A"}]},"future":1}')
    info = decode(StreamInfo, document)
    assert info.config.sources[0].name == "A"
    assert encode(info)["future"] == 1


@pytest.mark.parametrize(
    ("cls", "document", "told"),
    [
        (
            StreamInfo,
            {"state": {"messages": "5"}},
            "string into .*messages of .*64",
        ),
        (StreamInfo, {"state": {"messages": 1.5}}, "number 1.5 into"),
        (StreamInfo, {"state": {"messages": 2**70}}, "of type uint64"),
        (StreamInfo, {"state": []}, "cannot unmarshal array"),
        (StreamInfo, {"created": "today"}, "parsing time"),
        (StreamInfo, {"created": 5}, "number into .* of type time.Time"),
        (StreamConfig, {"subjects": "a"}, "string into .*subjects of type .*string"),
        (StreamConfig, {"subjects": [5]}, "number into"),
        (StreamConfig, {"metadata": [["a", "b"]]}, "array into .*metadata"),
        (StreamConfig, {"metadata": {"a": 5}}, "number into"),
        (StreamConfig, {"sealed": 1}, "number into .* of type bool"),
        (StreamConfig, {"storage": ["file"]}, "array into .*storage"),
        (StreamConfig, {"name": {}}, "object into .*name of type string"),
        (ServerInfo, {"tags": {"a": 1}}, "object into"),
    ],
)
def test_a_value_of_another_kind_is_refused_lax_too(
    cls: type[object], document: dict[str, object], told: str
) -> None:
    """Answers are anybody's: what is done with them relies on their types."""
    with pytest.raises(DecodeError, match=told):
        decode(cls, document)


def test_what_newer_servers_say_passes() -> None:
    found = decode(StreamConfig, {"storage": "tape", "later": [1], "subjects": ["a", None]})
    assert (found.storage.value, found.subjects) == ("tape", ("a", ""))
    assert decode(ServerInfo, {"time": "", "tags": None}) == ServerInfo(time="")
