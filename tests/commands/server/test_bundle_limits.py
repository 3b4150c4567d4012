"""Bundles whose templates would run without end, or fill the memory."""

import json
import resource
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jsctl.commands.server.bundles import limits
from jsctl.commands.server.bundles.form import rendered
from jsctl.commands.server.bundles.limits import within
from jsctl.errors import JsctlError
from tests.commands.conftest import Result

Run = Callable[..., Result]
GIGABYTE = 1 << 30
STEPS_MAX = 100_000
"""Fewer than there are really, for the sake of the test's own time."""
STEPS = f"more than {STEPS_MAX} steps"
LONG = "a text has at most"
DOUBLED = "{{$a := list 1 2}}{{range until 40}}{{$a = list $a $a}}{{end}}"
TWICE = "".join(
    f'{{{{define "t{at}"}}}}{{{{template "t{at + 1}"}}}}{{{{template "t{at + 1}"}}}}{{{{end}}}}'
    for at in range(60)
)
"""Each of these templates runs the next one twice."""
ENDLESS = (
    ("{{range 9000000}}{{end}}", STEPS),
    ("{{range 9000}}{{range 9000}}{{if true}}{{end}}{{end}}{{end}}", STEPS),
    (TWICE + '{{define "t60"}}{{end}}{{template "t0"}}', STEPS),
    (TWICE + '{{define "t60"}}x{{end}}{{template "t0"}}', STEPS),
    (f"{{{{range 9000000}}}}{'x' * 9000}{{{{end}}}}", "writes more than"),
    (DOUBLED + "{{$a}}", STEPS),
    (DOUBLED + "{{toJson $a}}", STEPS),
    (DOUBLED + "{{printf `%v` $a}}", STEPS),
    (DOUBLED + "{{eq $a $a}}", STEPS),
    ("{{$d := dict}}{{set $d `x` $d}}", STEPS),
    ("{{$d := dict}}{{range 9999}}{{$x := set $d (print .) (repeat 4000000 `x`)}}{{end}}", STEPS),
    ("{{$d := dict}}{{range until 9999}}{{$x := set $d (print .) (until 90000)}}{{end}}", STEPS),
    ("{{replace `x` (repeat 4000000 `y`) (repeat 4000000 `x`)}}", LONG),
    ("{{replace `` (repeat 4000000 `y`) (repeat 4000000 `x`)}}", LONG),
    ("{{join (repeat 4000000 `y`) (until 9000)}}", LONG),
    ("{{indent 4000000 (repeat 4000000 `\\n`)}}".replace("`\\n`", '"\\n"'), LONG),
    ("{{printf `%1000000v` (until 9000)}}", "no more than"),
    ("{{printf `%s` (printf `" + "%1000000d" * 900 + "`" + " 1" * 900 + ")}}", "no more than"),
    ("{{without (until 9900)" + " 1" * 1200 + "}}", "comparisons"),
)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that gets little more memory than it has."""
    monkeypatch.setattr(limits, "STEPS_MAX", STEPS_MAX)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + GIGABYTE, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def laid(folder: Path, template: str = "x", form: str = "") -> Path:
    (folder / "scaffold").mkdir(parents=True)
    (folder / "bundle.yaml").write_text("description: a demo\n")
    (folder / "scaffold.json").write_text("{}")
    (folder / "scaffold" / "x").write_text(template)
    if form:
        (folder / "form.yaml").write_text(form)
    return folder


@pytest.mark.parametrize(("template", "told"), ENDLESS)
def test_a_template_that_does_not_end_is_ended(
    cli: Run, tmp_path: Path, narrow: None, template: str, told: str
) -> None:
    source = laid(tmp_path / "bundle", template)
    done = cli(*shlex.split(f"server generate {tmp_path}/made --source {source} --defaults"))
    assert (done.code, told in done.err) == (1, True), done.err
    assert len(done.err) < 600
    assert not (tmp_path / "made").exists()


@pytest.mark.slow
def test_a_template_that_takes_too_long_is_ended(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jsctl.commands.server.bundles.scaffold.RENDER_S", 1)
    source = laid(tmp_path / "bundle", "{{range until 90000}}{{bcrypt `x`}}{{end}}")
    done = cli(*shlex.split(f"server generate {tmp_path}/made --source {source} --defaults"))
    assert (done.code, "works for more than 1 s" in done.err) == (1, True), done.err
    assert not (tmp_path / "made").exists()


@pytest.mark.slow
def test_a_text_of_a_form_that_does_not_end_is_ended() -> None:
    with pytest.raises(JsctlError, match="more than"):
        rendered("{{range 9000000}}{{end}}", {}, "property")
    marks = "{a}" * 20_000 + "{/a}" * 20_000
    with pytest.raises(JsctlError, match="works for more than"):
        rendered(marks, {}, "property")


@pytest.mark.slow
@pytest.mark.parametrize(
    "form",
    [
        {"name": "x", "default": "a" * 40 + "!", "validation": 'value matches "^(a+)+$"'},
        {"name": "x", "conditional": f'"{"a" * 40}!" matches "^(a+)+$"'},
    ],
)
def test_a_pattern_of_a_form_that_does_not_end_is_ended(
    cli: Run, tmp_path: Path, form: dict[str, str]
) -> None:
    source = laid(tmp_path / "bundle", form=json.dumps({"properties": [form]}))
    words = f"server generate {tmp_path}/made --source {source} --defaults"
    done = cli(*shlex.split(words))
    assert (done.code, "works for more than 2 s" in done.err) == (1, True), done.err


def test_what_takes_too_long_is_ended_and_an_alarm_of_before_is_kept() -> None:
    with pytest.raises(JsctlError, match=r"more than 0\.2 s"), within(0.2):
        while True:
            pass
    with within(60):
        assert sum(range(10)) == 45
