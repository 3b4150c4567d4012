"""Permissions as tables: entries, subject, queue, verdict."""

import tracemalloc

import pytest

from jsctl.broker.accounts.leaf_guard import LeafGuard, Subjects
from jsctl.broker.accounts.permissions import (
    DECISIONS_CACHED_MAX,
    REPLIES_TRACKED_MAX,
    Permissions,
)
from jsctl.broker.login_options.permissions import PermissionRules as Rules
from jsctl.broker.login_options.permissions import ResponsePermission, SubjectPermission


@pytest.mark.parametrize(
    ("allow", "deny", "subject", "allowed"),
    [
        (None, (), b"a", True),
        ((), (), b"a", False),
        (("a.*",), (), b"a.b", True),
        (("a.*",), (), b"a.b.c", False),
        (("a.>",), ("a.x",), b"a.x", False),
        (None, ("a.>",), b"a.b", False),
        (None, ("a.>",), b"b", True),
    ],
)
def test_publish(
    allow: tuple[str, ...] | None, deny: tuple[str, ...], subject: bytes, allowed: bool
) -> None:
    permissions = Permissions(Rules(publish=SubjectPermission(allow, deny)))
    assert permissions.may_publish(subject) == allowed
    assert permissions.may_publish(subject) == allowed
    for number in range(DECISIONS_CACHED_MAX + 1):
        permissions.may_publish(b"n.%d" % number)
    assert permissions.may_publish(subject) == allowed


@pytest.mark.parametrize(
    ("allow", "deny", "subject", "queue", "allowed"),
    [
        (None, (), b"a", b"", True),
        (("bar",), (), b"bar.>", b"", False),
        (("bar.>",), (), b"bar.>", b"", True),
        (("bar.>",), (), b"bar.*", b"", True),
        (("q.* grp",), (), b"q.1", b"", False),
        (("q.* grp",), (), b"q.1", b"grp", True),
        (("q.* g*",), (), b"q.1", b"grp", False),
        (("q.* g.*",), (), b"q.1", b"g.1", True),
        (("foo", "foo v1"), (), b"foo", b"", True),
        (("foo", "foo v1"), (), b"foo", b"v1", True),
        (("foo", "foo v1"), (), b"foo", b"v2", False),
        (("foo.>", "foo.x v1"), (), b"foo.y", b"v2", True),
        (("foo.>", "foo.x v1"), (), b"foo.>", b"v2", True),
        (("foo",), ("foo v2",), b"foo", b"v2", False),
        (("foo",), ("foo v2",), b"foo", b"v1", True),
        (("foo.>",), ("foo.x",), b"foo.>", b"", True),
        (("foo.>",), ("foo.x",), b"foo.x", b"", False),
    ],
)
def test_subscribe(
    allow: tuple[str, ...] | None,
    deny: tuple[str, ...],
    subject: bytes,
    queue: bytes,
    allowed: bool,
) -> None:
    permissions = Permissions(Rules(subscribe=SubjectPermission(allow, deny)))
    assert permissions.may_subscribe(subject, queue) == allowed


def test_narrower_denials_filter() -> None:
    permissions = Permissions(Rules(subscribe=SubjectPermission(None, ("a.x", "b.>"))))
    filters = permissions.denied_within(b"a.*")
    assert filters is not None and filters.match(b"a.x") and not filters.match(b"a.y")
    assert permissions.denied_within(b"c.*") is None


@pytest.mark.parametrize(
    ("queue", "denied"),
    [(b"", {b"b"}), (b"v1", {b"a", b"b"}), (b"v2", {b"b"}), (b"g.x", {b"b", b"c"})],
)
def test_narrower_denials_of_queues_filter(queue: bytes, denied: set[bytes]) -> None:
    """A wildcard gets around none of them."""
    permissions = Permissions(Rules(subscribe=SubjectPermission(None, ("a v1", "b", "c g.*"))))
    assert permissions.may_subscribe(b"*", queue)
    filters = permissions.denied_within(b"*", queue)
    assert filters is not None
    assert {subject for subject in (b"a", b"b", b"c", b"d") if filters.match(subject)} == denied


def test_responses() -> None:
    permissions = Permissions(Rules(responses=ResponsePermission(2, 100)))
    assert permissions.tracks_replies
    assert not permissions.may_publish(b"inbox")
    assert not permissions.may_answer(b"inbox", 0)
    permissions.note_reply(b"inbox", 10)
    assert [permissions.may_answer(b"inbox", 20) for _ in range(3)] == [True, True, False]
    permissions.note_reply(b"inbox", 10)
    assert not permissions.may_answer(b"inbox", 111)
    endless = Permissions(Rules(responses=ResponsePermission(-1, -1)))
    endless.note_reply(b"r", 0)
    assert all(endless.may_answer(b"r", 10**18) for _ in range(5))


def test_what_was_answered_takes_no_place_of_what_was_not() -> None:
    permissions = Permissions(Rules(responses=ResponsePermission(1, -1)))
    permissions.note_reply(b"slow", 0)
    for number in range(REPLIES_TRACKED_MAX):
        permissions.note_reply(b"quick.%d" % number, 0)
        assert permissions.may_answer(b"quick.%d" % number, 0)
    assert not permissions.may_answer(b"quick.0", 0)
    assert permissions.may_answer(b"slow", 0)


def test_a_reply_that_is_used_again_takes_its_own_place() -> None:
    permissions = Permissions(Rules(responses=ResponsePermission(1, -1)))
    for number in range(REPLIES_TRACKED_MAX):
        permissions.note_reply(b"%d" % number, 0)
    permissions.note_reply(b"1", 0)
    assert all(permissions.may_answer(b"%d" % number, 0) for number in range(3))


@pytest.mark.parametrize("leaf", [False, True])
def test_a_connection_makes_the_server_keep_little(leaf: bool) -> None:
    """As many subjects as are kept, each as long as it may be."""
    deny = SubjectPermission(deny=("secret",))
    guard = LeafGuard(Subjects(), Subjects(), Subjects(deny=(b"secret",)))
    permissions = Permissions(Rules(publish=deny))
    tracemalloc.start()
    for number in range(DECISIONS_CACHED_MAX):
        subject = b"%d." % number + b"s" * 50_000
        taken = guard.may_take(subject, 1) if leaf else permissions.may_publish(subject)
        assert taken
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 1 << 20
