"""Parts of the broker are whole when they are made: nobody fills in what a class begins without.

A field that is None until somebody else assigns it is a second step of construction: in between the
object is not what its methods take it for, and who reads the class cannot tell who does it, or
whether. What a part needs it is given when it is made, and what it learns later comes by a method.
Some classes have no will of their own: they are what several functions know of one thing. Those are
in `RECORDS`, with the reason.

By names alone, over the syntax trees: of `one.name = something` nobody knows what `one` is. It is
a breach where a class of another module begins with None under that name, and the module that
assigns knows the class, or reaches the object through another one; unless a record that it could
as well be has such a field.

Two more things come to the same. Who makes an object of another module, and assigns to it before
anybody else sees it, has made it with placeholders. And who puts a function into a list that an
object keeps has it call back: what happened is noted as a fact, which is plain data and names no
way back to whom it is about.
"""

import ast
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pytest

from jsctl.dataclass import dataclass

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
BROKER = "jsctl/broker"

OF_A_TURN = "what a turn comes to, noted by all who take part in it"
OF_A_CONNECTION = "what is known of a connection: its handshake and its pings tell more and more"
RECORDS = {
    "TurnInputs": OF_A_TURN,
    "TurnOutputs": OF_A_TURN,
    "ConsumerTurn": OF_A_TURN,
    "Ready": OF_A_TURN,
    "Building": "an entry that is being filled, by whoever has something for it",
    "Gate": OF_A_CONNECTION,
    "Leaf": OF_A_CONNECTION,
    "Link": OF_A_CONNECTION,
    "RoutePeer": OF_A_CONNECTION,
    "RouteAddress": "when a server is dialed next, as the schedule of dials has it",
    "Accepted": "who a client is, of which its certificate tells later",
    "ClientSession": "`sessions/review.py` looks again at what it is allowed, after a reload",
    "RaftState": "the state on which the functions of raft work, in a module for each matter",
    "RaftGroup": "what its parts know of a group: durability, checkpoints, the schedule",
    "Segment": "its file and its table are there while they are needed",
    "KnownNewest": "what a search left behind for the next one",
    "Taken": "a publish on its way into a stream: each rule notes what it comes to",
    "Positions": "the sequences of a subject, in the form that takes least; its index changes it",
    "Router": "what routes beside it joins when it is made, and is told of accounts and mappings",
}
"""Classes whose fields others assign, and why that is right. An entry that is no longer needed is a
breach, too."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """A field of another object that gets something."""

    name: str
    line: int
    is_reached: bool
    """By way of another object, so that the module need not know its class."""


Nodes = Sequence[ast.AST]
"""All of a module."""


def walked(texts: dict[str, str]) -> dict[str, Nodes]:
    """The modules of these texts, each read and walked once."""
    return {path: [*ast.walk(ast.parse(text))] for path, text in texts.items()}


def classes(nodes: Nodes) -> Iterator[ast.ClassDef]:
    """Those of a module, also below conditions."""
    yield from (one for one in nodes if isinstance(one, ast.ClassDef))


def is_none(value: ast.expr | None) -> bool:
    """Whether it says None."""
    return isinstance(value, ast.Constant) and value.value is None


def empty_fields(made: ast.ClassDef) -> set[str]:
    """What a new object begins without: fields with None as default, or set to None at first."""
    found = set()
    for part in made.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            found |= {part.target.id} if is_none(part.value) else set()
        if isinstance(part, ast.FunctionDef) and part.name in ("__init__", "__post_init__"):
            for step in ast.walk(part):
                if isinstance(step, ast.Assign | ast.AnnAssign) and is_none(step.value):
                    targets = step.targets if isinstance(step, ast.Assign) else [step.target]
                    found |= {one.attr for one in targets if isinstance(one, ast.Attribute)}
    return found


def pairs(step: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Targets of an assignment, each with what it gets, as far as that is seen."""
    for target in step.targets:
        if not isinstance(target, ast.Tuple):
            yield target, step.value
        elif isinstance(step.value, ast.Tuple):
            yield from zip(target.elts, step.value.elts, strict=False)
        else:
            yield from ((one, None) for one in target.elts)


def assigned(nodes: Nodes) -> Iterator[Assigned]:
    """What a module assigns to objects that are not its methods' own, but None: to take what is
    there, and leave nothing, fills in nothing."""
    for step in (one for one in nodes if isinstance(one, ast.Assign)):
        for target, value in pairs(step):
            if isinstance(target, ast.Attribute) and not is_none(value):
                of = target.value
                if not (isinstance(of, ast.Name) and of.id == "self"):
                    yield Assigned(target.attr, step.lineno, isinstance(of, ast.Attribute))


def words(nodes: Nodes) -> set[str]:
    """Names that a module imports."""
    found = (one.names for one in nodes if isinstance(one, ast.ImportFrom))
    return {alias.name for names in found for alias in names}


def breaches(trees: dict[str, Nodes], records: Collection[str]) -> tuple[list[str], set[str]]:
    """Where fields of other modules' classes are filled in, and the records of which that is so."""
    empty: dict[str, dict[str, str]] = {}
    """Name of a field -> classes that begin without, and where they are."""
    for path, tree in trees.items():
        for made in classes(tree):
            for name in empty_fields(made):
                empty.setdefault(name, {})[made.name] = path
    found, needed = [], set()
    for path, tree in trees.items():
        known = words(tree)
        for one in assigned(tree):
            lacking = empty.get(one.name, {})
            if path in lacking.values():
                continue
            could_be = sorted(name for name in lacking if one.is_reached or name in known)
            allowed = set(could_be).intersection(records)
            needed |= allowed
            if not allowed:
                found += [f"{path}:{one.line}: {one.name} of {name}" for name in could_be]
    return found, needed


def named(called: ast.expr) -> str:
    """What is called, without where it is."""
    if isinstance(called, ast.Name):
        return called.id
    return called.attr if isinstance(called, ast.Attribute) else ""


def made_here(steps: Sequence[ast.Assign]) -> dict[str, str]:
    """Variable -> what was called for it: its class, if it is one."""
    found: dict[str, str] = {}
    for step in steps:
        if isinstance(step.value, ast.Call):
            found |= {
                one.id: named(step.value.func) for one in step.targets if isinstance(one, ast.Name)
            }
    return found


def finished_later(trees: dict[str, Nodes]) -> list[tuple[str, str]]:
    """(class, where) of objects that a function of another module makes and then assigns to."""
    homes = {made.name: path for path, tree in trees.items() for made in classes(tree)}
    found: dict[tuple[str, str], None] = {}
    for path, tree in trees.items():
        for part in (one for one in tree if isinstance(one, ast.FunctionDef)):
            steps = [one for one in ast.walk(part) if isinstance(one, ast.Assign)]
            made = made_here(steps)
            for step in steps:
                for target, value in pairs(step):
                    if not isinstance(target, ast.Attribute) or is_none(value):
                        continue
                    of = made.get(target.value.id, "") if isinstance(target.value, ast.Name) else ""
                    if homes.get(of, path) != path:
                        found[of, f"{path}:{step.lineno}: {target.attr}"] = None
    return list(found)


def is_callback(annotation: ast.expr) -> bool:
    """Whether it says that something holds functions."""
    return any(isinstance(one, ast.Name) and one.id == "Callable" for one in ast.walk(annotation))


def lists_of_callbacks(made: ast.ClassDef) -> set[str]:
    """Fields of a class that hold several functions."""
    return {
        named(step.target) or ast.unparse(step.target)
        for step in ast.walk(made)
        if isinstance(step, ast.AnnAssign)
        and isinstance(step.annotation, ast.Subscript)
        and named(step.annotation.value) in ("list", "set", "dict", "deque")
        and is_callback(step.annotation)
    }


def put_elsewhere(nodes: Nodes) -> Iterator[tuple[str, int]]:
    """(field, line) where something is put into a field of another object."""
    for call in (one for one in nodes if isinstance(one, ast.Call)):
        put = call.func
        if not isinstance(put, ast.Attribute) or put.attr not in ("append", "add"):
            continue
        field = put.value
        if not isinstance(field, ast.Attribute):
            continue
        if not (isinstance(field.value, ast.Name) and field.value.id == "self"):
            yield field.attr, call.lineno


def called_back(trees: dict[str, Nodes]) -> list[tuple[str, str]]:
    """(class, where) of functions that other modules put into such a field."""
    holders: dict[str, dict[str, str]] = {}
    for path, tree in trees.items():
        for made in classes(tree):
            for name in lists_of_callbacks(made):
                holders.setdefault(name, {})[made.name] = path
    found = []
    for path, tree in trees.items():
        for name, line in put_elsewhere(tree):
            of = holders.get(name, {}).items()
            found += [(holder, f"{path}:{line}: {name}") for holder, home in of if home != path]
    return found


def ways_back(texts: dict[str, str]) -> list[str]:
    """Fields that hold a function."""
    return [
        f"{path}:{one.lineno}: {named(one.target)}"
        for path, text in texts.items()
        for one in ast.walk(ast.parse(text))
        if isinstance(one, ast.AnnAssign) and is_callback(one.annotation)
    ]


def broker() -> dict[str, str]:
    """All its modules."""
    paths = sorted((ROOT / BROKER).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}


def test_nothing_is_filled_in_from_outside() -> None:
    trees = walked(broker())
    found, needed = breaches(trees, RECORDS)
    assert not found, "given when it is made, or told by a method:\n" + "\n".join(found)
    more = [*finished_later(trees), *called_back(trees)]
    wrong = [f"{where} of {name}" for name, where in more if name not in RECORDS]
    assert not wrong, "given when it is made, or noted as a fact:\n" + "\n".join(wrong)
    needed |= {name for name, _ in more}
    assert needed == set(RECORDS), f"not needed: {set(RECORDS) - needed}"


def test_facts_name_no_way_back() -> None:
    told = {path: text for path, text in broker().items() if path.endswith("/facts.py")}
    found = ways_back(told)
    assert not found, "plain data:\n" + "\n".join(found)
    fact = "class Served:\n    name: str\n    told: Callable[[], None]\n"
    assert ways_back({**told, "facts.py": fact}) == ["facts.py:3: told"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f():\n    made = Child()\n    made.x = 2", ["Child"]),
        ("def f():\n    made = child.Child(1)\n    made.y, made.x = 1, 2", ["Child", "Child"]),
        ("def f(made):\n    made.x = 2", []),
        ("def f():\n    made = Child()\n    made.owner = None", []),
        ("class Child:\n    def f(self):\n        made = Child()\n        made.x = 1", []),
    ],
)
def test_what_is_finished_later_is_found(text: str, expected: list[str]) -> None:
    texts = {"owner.py": text} if "class" in text else {"child.py": DECLARED, "owner.py": text}
    assert [name for name, _ in finished_later(walked(texts))] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("class Owner:\n    def f(self):\n        self.child.told.append(self.g)", ["Child"]),
        ("def f(child):\n    child.told.append(print)", ["Child"]),
        ("def f(child):\n    child.plain.append(1)", []),
        ("class Own:\n    def f(self):\n        self.told.append(print)", []),
    ],
)
def test_who_is_called_back_is_found(text: str, expected: list[str]) -> None:
    child = "class Child:\n    told: list[Callable[[], None]]\n    plain: list[int]\n"
    texts = {"child.py": child, "owner.py": text}
    assert [name for name, _ in called_back(walked(texts))] == expected


BEGINS_WITHOUT = """class Child:
    def __init__(self):
        self.owner = None
        self.x = 1
"""
DECLARED = "class Child:\n    owner: Owner | None = None\n    x: int = 1\n"


@pytest.mark.parametrize("child", [BEGINS_WITHOUT, DECLARED])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from child import Child\nmade.owner = me", ["owner"]),
        ("from child import Child\nmade.x, made.owner = 1, me", ["owner"]),
        ("from child import Child\nfirst, made.owner = both", ["owner"]),
        ("made.child.owner = me", ["owner"]),
        ("made.owner = me", []),
        ("from child import Child\nmade.x = 2", []),
        ("from child import Child\nwas, made.owner = made.owner, None", []),
        ("from child import Child\nclass Own:\n    def f(self):\n        self.owner = 1", []),
    ],
)
def test_what_is_filled_in_is_found(child: str, text: str, expected: list[str]) -> None:
    found, _ = breaches(walked({"child.py": child, "owner.py": text}), ())
    assert [one.split()[1] for one in found] == expected
    texts = {"child.py": child + "one.owner = 1", "owner.py": ""}
    assert breaches(walked(texts), ()) == ([], set())


def test_records_may_be_filled_in() -> None:
    text = "from child import Child\nmade.owner = me"
    texts = {"child.py": DECLARED, "owner.py": text}
    assert breaches(walked(texts), ["Child"]) == ([], {"Child"})
