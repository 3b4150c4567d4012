"""Many patterns at once: which of them meet, and which of them cover another.

Theory of operation. Patterns lie in a trie with one level per token, as in the sublist. Two sets
are compared by walking both tries together, so patterns with a common start are compared once;
a literal token leads to one child, `*` to all of them. For what people write this is linear in the
number of tokens. Patterns can be made for which no way is known that is not quadratic in the end
(each of `a`, `*` at every token), so every walk has a budget of steps, and `Tangled` says that it
was used up.
"""

from collections.abc import Collection, Iterable

STEPS_MAX = 400_000
"""Pairs of nodes that one comparison may look at, which takes well below a second. What has no
wildcards in the way of others needs none; sets of a megabyte that do are compared within it."""
NAMING_STEPS_MAX = 20_000
"""Further steps to find out which of several patterns that meet come first."""
_NOBODY: frozenset[str] = frozenset()


class Tangled(Exception):
    """Patterns with so many wildcards in the way of each other that nobody compares them."""


class _PatternNode:
    __slots__ = ("children", "owners", "pattern")

    def __init__(self) -> None:
        self.children: dict[bytes, _PatternNode] = {}
        self.owners = _NOBODY
        """Shared and empty until there is one: most nodes have none."""
        self.pattern = b""

    def is_empty(self) -> bool:
        return not self.children and not self.owners


class Budget:
    """Steps that are left; `spent` counts those that were taken."""

    __slots__ = ("left", "spent")

    def __init__(self, steps: int = STEPS_MAX) -> None:
        self.left = steps
        self.spent = 0

    def take(self, steps: int) -> None:
        """Raises Tangled when there are none left."""
        self.left -= steps
        self.spent += steps
        if self.left < 0:
            raise Tangled


class PatternSet:
    """Valid subjects and patterns, each with the names of its owners (if any matter)."""

    __slots__ = ("_root",)

    def __init__(self, patterns: Iterable[bytes] = ()) -> None:
        self._root = _PatternNode()
        for pattern in patterns:
            self.insert(pattern)

    def insert(self, pattern: bytes, owner: str = "") -> bool:
        """Add a pattern; False if its owner has it already."""
        node = self._root
        for token in pattern.split(b"."):
            child = node.children.get(token)
            if child is None:
                child = node.children[token] = _PatternNode()
            node = child
        if owner in node.owners:
            return False
        node.owners = node.owners | {owner}
        node.pattern = pattern
        return True

    def remove(self, pattern: bytes, owner: str = "") -> None:
        """Take a pattern out; unknown ones are ignored."""
        path: list[tuple[_PatternNode, bytes]] = []
        node = self._root
        for token in pattern.split(b"."):
            child = node.children.get(token)
            if child is None:
                return
            path.append((node, token))
            node = child
        if owner not in node.owners:
            return
        node.owners = node.owners - {owner}
        for parent, token in reversed(path):
            if not parent.children[token].is_empty():
                break
            del parent.children[token]

    def meeting(self, budget: Budget | None = None) -> tuple[bytes, bytes] | None:
        """Two different patterns of this set that some subject matches both of.

        Raises Tangled.
        """
        budget = budget or Budget()
        alone = [self._root]
        while alone:
            node = alone.pop()
            children = node.children
            alone.extend(children.values())
            tail, star = children.get(b">"), children.get(b"*")
            if tail is not None and len(children) > 1:
                other = next(child for token, child in children.items() if token != b">")
                return tail.pattern, _first_below(other, _NOBODY, budget)
            if star is not None:
                literals = [(star, child) for child in children.values() if child is not star]
                found = _walk_together(literals, _NOBODY, budget)
                if found is not None:
                    return found
        return None

    def meets(
        self,
        other: "PatternSet",
        ignoring: Collection[str] = _NOBODY,
        budget: Budget | None = None,
    ) -> tuple[bytes, bytes] | None:
        """A pattern of this set and one of the other that some subject matches both of.

        Those of `other` whose owners are all in `ignoring` do not count. Raises Tangled.
        """
        budget = budget or Budget()
        return _walk_together([(self._root, other._root)], ignoring, budget)

    def owners_meeting(self, pattern: bytes) -> set[str]:
        """Owners of the patterns that meet one; a walk over this set at most."""
        found: set[str] = set()
        tokens = pattern.split(b".")
        stack = [(self._root, 0)]
        while stack:
            node, depth = stack.pop()
            children = node.children
            if depth == len(tokens):
                found |= node.owners
                continue
            token = tokens[depth]
            if token == b">":
                for child in children.values():
                    _gather(child, found)
                continue
            tail = children.get(b">")
            if tail is not None:
                found |= tail.owners
            if token == b"*":
                stack.extend((c, depth + 1) for name, c in children.items() if name != b">")
                continue
            stack.extend((children[n], depth + 1) for n in (token, b"*") if n in children)
        return found

    def covers(
        self, pattern: bytes, *, besides: bool = False, budget: Budget | None = None
    ) -> bool:
        """Whether a stored pattern matches all that `pattern` matches; itself counts as one.

        With `besides` an equal one does not count. Raises Tangled, if there is a budget.
        """
        tokens = pattern.split(b".")
        size = len(tokens)
        stack = [(self._root, 0)] if all(tokens) else []
        while stack:
            node, depth = stack.pop()
            if budget is not None:
                budget.take(1)
            if depth == size:
                if node.owners and not (besides and node.pattern == pattern):
                    return True
                continue
            children, token = node.children, tokens[depth]
            if b">" in children and not (besides and children[b">"].pattern == pattern):
                return True
            if token == b">" and depth == size - 1:
                continue
            star = children.get(b"*")
            if star is not None:
                stack.append((star, depth + 1))
            child = children.get(token)
            if child is not None and child is not star:
                stack.append((child, depth + 1))
        return False

    def deciding(self, subject: bytes) -> int:
        """How many of a literal subject's tokens, from the first on, decide together with their
        number whether it is covered: any others behind them make no difference."""
        tokens = subject.split(b".")
        stack, decides = [(self._root, 0)], 0
        while stack:
            node, depth = stack.pop()
            if depth == len(tokens):
                continue
            children, token = node.children, tokens[depth]
            star = children.get(b"*")
            if len(children) > (b">" in children) + (star is not None):
                decides = max(decides, depth + 1)
            stack.extend(
                (child, depth + 1) for child in (star, children.get(token)) if child is not None
            )
        return decides


def _gather(node: _PatternNode, found: set[str]) -> None:
    stack = [node]
    while stack:
        node = stack.pop()
        found |= node.owners
        stack.extend(node.children.values())


def _first_below(node: _PatternNode, ignoring: Collection[str], budget: Budget) -> bytes:
    """A pattern at or below a node that somebody else owns; empty if there is none."""
    stack = [node]
    while stack:
        node = stack.pop()
        budget.take(1)
        if node.owners and _counts(node, ignoring):
            return node.pattern
        stack.extend(node.children.values())
    return b""


def _counts(node: _PatternNode, ignoring: Collection[str]) -> bool:
    return any(owner not in ignoring for owner in node.owners)


def _walk_together(
    pairs: list[tuple[_PatternNode, _PatternNode]], ignoring: Collection[str], budget: Budget
) -> tuple[bytes, bytes] | None:
    """Go down two tries at once; `pairs` are nodes that the same tokens may lead to."""
    while pairs:
        left, right = pairs.pop()
        budget.take(1)
        if left.owners and right.owners and _counts(right, ignoring):
            return left.pattern, right.pattern
        mine, theirs = left.children, right.children
        if not mine or not theirs:
            continue
        found = _tails(mine, theirs, ignoring, budget)
        if found is not None:
            return found
        _descend(mine, theirs, pairs, budget)
    return None


def _tails(
    mine: dict[bytes, _PatternNode],
    theirs: dict[bytes, _PatternNode],
    ignoring: Collection[str],
    budget: Budget,
) -> tuple[bytes, bytes] | None:
    """`>` on one side meets whatever follows on the other."""
    tail = mine.get(b">")
    if tail is not None:
        for child in theirs.values():
            other = _first_below(child, ignoring, budget)
            if other:
                return tail.pattern, other
    tail = theirs.get(b">")
    if tail is not None and _counts(tail, ignoring):
        return _first_below(next(iter(mine.values())), _NOBODY, budget), tail.pattern
    return None


def _descend(
    mine: dict[bytes, _PatternNode],
    theirs: dict[bytes, _PatternNode],
    pairs: list[tuple[_PatternNode, _PatternNode]],
    budget: Budget,
) -> None:
    before = len(pairs)
    star = mine.get(b"*")
    if star is not None:
        pairs.extend((star, child) for token, child in theirs.items() if token != b">")
    star = theirs.get(b"*")
    if star is not None:
        pairs.extend((child, star) for token, child in mine.items() if token not in (b"*", b">"))
    small, large = (mine, theirs) if len(mine) <= len(theirs) else (theirs, mine)
    budget.take(len(small) + len(pairs) - before)
    for token in small:
        if token in large and token not in (b"*", b">"):
            pairs.append((mine[token], theirs[token]))


def first_meeting(patterns: list[bytes]) -> tuple[bytes, bytes] | None:
    """The first of the patterns that meets a later one, and the first such one; None without.

    Equal patterns meet. Raises Tangled.
    """
    if len(patterns) < 2:
        return None
    once = PatternSet()
    double = [pattern for pattern in patterns if not once.insert(pattern)]
    met = (double[0], double[0]) if double else once.meeting()
    if met is None:
        return None
    # That two meet is certain. The first ones are looked for as long as it is cheap.
    later = PatternSet()
    first = None
    budget = Budget(NAMING_STEPS_MAX)
    try:
        for at in range(len(patterns) - 1, -1, -1):
            budget.take(1)
            if later.meets(PatternSet([patterns[at]]), budget=budget) is not None:
                first = at
            later.insert(patterns[at])
    except Tangled:
        return met
    assert first is not None, "what meets, meets"
    one = PatternSet([patterns[first]])
    partner = next(
        other for other in patterns[first + 1 :] if one.meets(PatternSet([other])) is not None
    )
    return patterns[first], partner
