"""The subscriptions of one account, found by subject.

Theory of operation. Patterns live in a trie with one level per token and two special children,
`*` and `>`. Walking it costs about a microsecond, so answers are kept in a cache by literal
subject. Inserting or removing a pattern without wildcards drops one cached answer; one with
wildcards drops all that it matches when the cache is small and everything otherwise. Every
change moves `generation`, so that whoever keeps answers of its own knows when they are stale.

Subjects that are used once only (acknowledgements, inboxes, orders with a number) find nothing
there. But where no pattern on the way tells the tokens behind a prefix apart, all subjects of as
many tokens behind it have the same answer: a family. The walk notices how many tokens it depended
on, and the answer is kept by that prefix, too (`families`).

An answer (`M`) is made by the function given at construction, from the plain subscriptions and
the queue groups that match. Subjects that only one subscription matches (a client's replies)
share one answer. Answers are shared: nobody may change them.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from jsctl.broker.subject.families import Families
from jsctl.broker.subject.matching import matches
from jsctl.broker.subject.validity import has_wildcard, literal_start

CACHE_ENTRIES_MAX = 4096
"""Cached answers per account; at the limit a quarter of them, the oldest, is dropped."""

SCAN_ENTRIES_MAX = 64
"""A pattern change scans a cache up to this size; a larger one is cleared."""

MANY_FROM = 8
"""Batches from this size on are looked at for one answer to all of them."""


CHANGES_MAX = 4096
"""Patterns kept for whoever wants to know of changes and does not come for them."""


class Subscriber(Protocol):
    """What the sublist needs to know of a subscription; identity is `is`."""

    @property
    def queue(self) -> bytes:
        """Queue group name, empty for a plain subscription."""


T = TypeVar("T", bound=Subscriber)
M = TypeVar("M")
Build = Callable[[tuple[T, ...], tuple[tuple[T, ...], ...]], M]


class _SublistNode(Generic[T]):
    __slots__ = ("children", "groups", "plain")

    def __init__(self) -> None:
        self.children: dict[bytes, _SublistNode[T]] = {}
        self.plain: dict[int, T] = {}
        self.groups: dict[bytes, dict[int, T]] = {}

    def is_empty(self) -> bool:
        return not self.children and not self.plain and not self.groups


class Sublist(Generic[T, M]):
    """Trie of patterns with a cache of answers by literal subject.

    `build(plain, groups)` makes an answer; each group holds the members of one queue name.
    """

    def __init__(self, build: Build[T, M]) -> None:
        self._build = build
        self._root: _SublistNode[T] = _SublistNode()
        self._cache: dict[bytes, M] = {}
        self._families: Families[M] = Families()
        self._singles: dict[int, M] = {}
        self._nobody = build((), ())
        """The answer for subjects that nothing matches: most of them are asked about once."""
        self._count = 0
        self.generation = 0
        self.changed: list[bytes] | None = None
        """Patterns that came or went, until whoever wants to know takes them. None: nobody does, or
        there are too many."""
        self.inserts = 0
        self.removes = 0
        self.cache_hits = 0
        self.cache_misses = 0

    def __len__(self) -> int:
        return self._count

    @property
    def cache_count(self) -> int:
        """Answers in the cache."""
        return len(self._cache)

    def insert(self, pattern: bytes, sub: T) -> None:
        """Add a subscription. `pattern` is a valid subject; adding one twice is a no-op."""
        node = self._root
        for token in pattern.split(b"."):
            child = node.children.get(token)
            if child is None:
                child = node.children[token] = _SublistNode()
            node = child
        members = node.groups.setdefault(sub.queue, {}) if sub.queue else node.plain
        if id(sub) in members:
            return
        members[id(sub)] = sub
        self._count += 1
        self.inserts += 1
        self._changed(pattern, came=True)

    def remove(self, pattern: bytes, sub: T) -> None:
        """Take a subscription out; unknown ones are ignored."""
        path: list[tuple[_SublistNode[T], bytes]] = []
        node = self._root
        for token in pattern.split(b"."):
            child = node.children.get(token)
            if child is None:
                return
            path.append((node, token))
            node = child
        members = node.groups.get(sub.queue, {}) if sub.queue else node.plain
        if members.pop(id(sub), None) is None:
            return
        if sub.queue and not members:
            del node.groups[sub.queue]
        for parent, token in reversed(path):
            if not parent.children[token].is_empty():
                break
            del parent.children[token]
        self._count -= 1
        self.removes += 1
        self._changed(pattern)

    def has(self, pattern: bytes) -> bool:
        """Whether somebody subscribed to just this, in no queue group."""
        node: _SublistNode[T] | None = self._root
        for token in pattern.split(b"."):
            node = None if node is None else node.children.get(token)
        return node is not None and bool(node.plain)

    def may_match_below(self, tokens: Sequence[bytes]) -> bool:
        """Whether somebody may listen to a subject that begins with these tokens, and has more. It
        is known without a walk for each subject that most of them concern nobody."""
        node = self._root
        for token in tokens:
            children = node.children
            if b">" in children or b"*" in children:
                return True
            child = children.get(token)
            if child is None:
                return False
            node = child
        return True

    def touch(self, pattern: bytes) -> None:
        """Forget the answers for `pattern`: something in its subscriptions changed."""
        self._changed(pattern)

    def take_changed(self) -> list[bytes] | None:
        """Patterns of what came and went since the last call; None: too many, or never asked."""
        changed, self.changed = self.changed, []
        return changed

    def _changed(self, pattern: bytes, *, came: bool = False) -> None:
        self.generation += 1
        if self.changed is not None:
            self.changed.append(pattern)
            if len(self.changed) > CHANGES_MAX:
                self.changed = None
        if not came or len(self._singles) >= CACHE_ENTRIES_MAX:
            self._singles.clear()
        cache = self._cache
        if not has_wildcard(pattern):
            cache.pop(pattern, None)
            self._families.drop(pattern)
            return
        self._families.clear()
        if len(cache) > SCAN_ENTRIES_MAX:
            cache.clear()
        else:
            # Of a subject that looks like a pattern itself, the walk takes each token literally.
            start, every = literal_start(pattern), b" ".join(cache)
            if start not in every and b"*" not in every and b">" not in every:
                return
            stale = [
                one
                for one in cache
                if b"*" in one or b">" in one or (one.startswith(start) and matches(one, pattern))
            ]
            for subject in stale:
                del cache[subject]

    def match(self, subject: bytes) -> M:
        """The answer for one published subject; shared, not to be changed."""
        answer = self._cache.get(subject)
        if answer is not None:
            self.cache_hits += 1
            return answer
        answer = self._families.find_sibling(subject)
        if answer is not None:  # Most are inboxes that come once.
            self.cache_hits += 1
            return answer
        answer = self._families.find(subject)
        if answer is not None:
            self.cache_hits += 1
        else:
            self.cache_misses += 1
            answer = self._search(subject)
        if len(self._cache) >= CACHE_ENTRIES_MAX:
            for old in list(self._cache)[: CACHE_ENTRIES_MAX // 4]:
                del self._cache[old]
        self._cache[subject] = answer
        return answer

    def _search(self, subject: bytes) -> M:
        """Walk the trie, and keep the answer for the subject's family."""
        plain: list[T] = []
        groups: dict[bytes, list[T]] = {}
        tokens = subject.split(b".")
        if not all(tokens):
            return self._nobody
        # Where no token has a say, the first one is as good as none: prefixes have one at least.
        depth = max(1, self._collect(tokens, plain, groups))
        if len(plain) == 1 and not groups:
            answer = self._singles.get(id(plain[0]))
            if answer is None:
                answer = self._singles[id(plain[0])] = self._build((plain[0],), ())
        elif not plain and not groups:
            answer = self._nobody
        else:
            answer = self._build(tuple(plain), tuple(tuple(one) for one in groups.values()))
        if depth < len(tokens):
            self._families.add(subject, depth, answer)
        return answer

    def deciding(self, subject: bytes) -> int:
        """How many of a subject's tokens, from the first on, decide on its answer together with
        their number: any others behind them, but empty ones, are answered the same. 0: all do, as
        far as is known."""
        return self._families.depth_of(subject)

    def match_many(self, subjects: Sequence[bytes]) -> list[M]:
        """The answers for a batch of subjects, in order."""
        if len(subjects) >= MANY_FROM:
            first = subjects[0]
            if first == subjects[-1] and subjects.count(first) == len(subjects):
                self.cache_hits += len(subjects) - 1
                return [self.match(first)] * len(subjects)
            common = self._families.find_common(subjects)
            if common is not None:
                self.cache_hits += len(subjects)
                return [common] * len(subjects)
        try:
            found = list(map(self._cache.__getitem__, subjects))
        except KeyError:
            siblings = self._families.find_siblings(subjects)
            if siblings is None:
                return list(map(self.match, subjects))
            found = siblings
        self.cache_hits += len(found)
        return found

    def matching(self, subject: bytes) -> list[T]:
        """The subscriptions that a literal subject matches, for who counts them."""
        plain, groups = list[T](), dict[bytes, list[T]]()
        self._collect(subject.split(b"."), plain, groups)
        return plain + [one for members in groups.values() for one in members]

    def _collect(self, tokens: list[bytes], plain: list[T], groups: dict[bytes, list[T]]) -> int:
        """Gather what matches. A branch is put off while the one of `*` is followed.

        Returned is how many tokens, from the first on, had a say: any others in the place of those
        behind them are answered the same.
        """
        size, depth = len(tokens), 0
        branches: list[tuple[_SublistNode[T], int]] = [(self._root, 0)]
        while branches:
            node, position = branches.pop()
            children = node.children
            tail = children.get(b">")
            if tail is not None and position < size:
                _add(tail, plain, groups)
            if position == size:
                _add(node, plain, groups)
                continue
            token = tokens[position]
            position += 1
            following = children.get(token)
            if following is not None and (token != b">" or position < size):
                branches.append((following, position))
            one = children.get(b"*")
            if one is not None and token != b"*":
                branches.append((one, position))
            if len(children) > (tail is not None) + (one is not None) and position > depth:
                depth = position
        return depth

    def __iter__(self) -> Iterator[T]:
        """All subscriptions, in the order of the trie."""
        stack = [self._root]
        while stack:
            node = stack.pop()
            yield from node.plain.values()
            for members in node.groups.values():
                yield from members.values()
            stack.extend(node.children.values())


def _add(node: _SublistNode[T], plain: list[T], groups: dict[bytes, list[T]]) -> None:
    plain.extend(node.plain.values())
    for queue, members in node.groups.items():
        groups.setdefault(queue, []).extend(members.values())
