"""What is read of the words of Cargo and libtest, and how each test of a program is run."""

import json
from pathlib import Path

import pytest

from tests.conformance.compare import Outcome
from tests.conformance.rust import Program, first_panic, read_programs, run_program


def test_the_programs_of_a_build_are_those_with_tests() -> None:
    def line(name: str, tested: bool) -> str:
        return json.dumps(
            {
                "reason": "compiler-artifact",
                "manifest_path": "/source/client/Cargo.toml",
                "target": {"name": name},
                "profile": {"test": tested},
                "executable": f"/build/{name}" if tested else None,
            }
        )

    lines = [line("kv", True), line("library", False), '{"reason":"build-finished"}']
    lines.append(line("core", True))
    source = Path("/source/client")
    assert read_programs(lines) == [
        Program("core", "/build/core", source),
        Program("kv", "/build/kv", source),
    ]


def test_where_and_why_a_test_failed() -> None:
    text = "\nthread 't' (7) panicked at tests/kv.rs:12:5:\nassertion failed: x\nnote: more\n"
    assert first_panic(text) == "tests/kv.rs:12:5: assertion failed: x"
    assert first_panic("thread 't' panicked at tests/kv.rs:12:5:") == "tests/kv.rs:12:5:"
    assert first_panic("killed") == ""


@pytest.mark.processes
def test_each_test_of_a_program_has_its_own_process_and_server(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        '  "--list --format terse --ignored") echo "c: test"; exit;;\n'
        '  "--list --format terse") echo "a: test"; echo "b: test"; echo "c: test";;\n'
        '  "a --exact --nocapture") [ "$(nats-server --version)" = "it says --version" ];;\n'
        '  "b --exact --nocapture") printf "panicked at b.rs:1:\\nboom\\n"; exit 101;;\n'
        "  *) exit 102;;\n"
        "esac\n"
    )
    program.chmod(0o755)
    with (tmp_path / "words.txt").open("w") as words:
        found = run_program(Program("p", str(program), tmp_path), ["echo", "it says"], words, "")
    assert {key: result.outcome for key, result in found.items()} == {
        "nats.rs p::a": Outcome.PASS,
        "nats.rs p::b": Outcome.FAIL,
        "nats.rs p::c": Outcome.SKIP,
    }
    assert found["nats.rs p::b"].message == "b.rs:1: boom"
    assert "boom" in (tmp_path / "words.txt").read_text()
