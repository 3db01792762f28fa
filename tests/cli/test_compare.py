"""`gcb compare`: its table, its files and its messages."""

import shlex
from pathlib import Path

import pytest
from helpers.evaluated_runs import result, write_run

from gcb.cli.main import main
from gcb.utils.files import write_json


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two methods as in a sweep, and in another directory a third one, evaluated in other episodes."""
    monkeypatch.chdir(tmp_path)
    directory = Path("sweep/runs")
    for method, goal, strict in (("gcb", "11de", "1111"), ("rad", "0100", "0111")):
        results = {"goal": result(goal), "strict": result(strict, "strict")}
        write_run(directory / f"drawer-{method}-s0", method, results=results)
    write_run(Path("other/drawer-cta-s0"), "cta", results={"goal": result("0000", seed=1000)})
    return directory


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run `gcb compare`; return its exit code, its output with wrapped lines joined, and its error output."""
    code = 0
    try:
        main(["compare", *map(str, words)])
    except SystemExit as ended:
        code = int(ended.code or 0)
    captured = capsys.readouterr()
    return code, " ".join(captured.out.split()), captured.err


def test_the_table_is_printed(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed, _ = run(capsys, runs, "other")
    assert code == 0
    # The differences are 1, 0, 1, 1: mean .75; the sum of squares 3 - 4 · .75² = .75, over 3 is .25, and
    # 1.96 · √(.25 / 4) = .48999.
    assert "drawer │ goal image │ rad │ 0.250 │ 1.000 │ +0.750 [+0.260, +1.000] │ 1 × 4 │ ahead" in printed
    assert "drawer │ strict analogy │ rad │ 0.750 │ 1.000 │ +0.250 [-0.240, +0.740] │ 1 × 4 │ tie" in printed
    assert "Success at any step, and the success of gcb minus that of the method" in printed
    assert "Made by: gcb compare sweep/runs other" in printed
    assert "note: cta in drawer by goal image: not compared, as gcb was not evaluated in the same" in printed


def test_the_options_and_the_command_in_the_caption(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(runs), "--reference", "rad", "--modes", "goal", "--criterion", "at_end", "--out", "made/table.md"]
    code, printed, _ = run(capsys, *words)
    assert code == 0
    assert printed == "table: made/table.md"
    text = Path("made/table.md").read_text()
    # At the end gcb succeeds in the last two episodes, rad in none: mean -.5; the variance is 4 · .25 / 3 = .33333, and
    # 1.96 · √(.33333 / 4) = .56579.
    assert "| drawer | goal image | gcb | 0.500 | 0.000 | -0.500 [-1.000, +0.066] | 1 × 4 | tie |" in text
    assert "strict" not in text
    command = text.rpartition("Made by `")[2].removesuffix("`.\n")
    assert shlex.split(command) == ["gcb", "compare", *words]


def test_a_csv_file(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, runs, "--out", "table.csv")[:2] == (0, "table: table.csv")
    lines = Path("table.csv").read_text().splitlines()
    assert lines[0].startswith("env,video,trained_on,mode,method,variant,reference,criterion,success,")
    assert lines[1] == "drawer,false,,goal,rad,,gcb,any_step,0.2500,1.0000,0.7500,0.2600,1.0000,ahead,1,1,4,0,0.5"
    assert len(lines) == 3


def test_a_run_that_was_trained_further_is_noted(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = {"name": "weights", "bytes": 1, "sha256": ""}
    checkpoint = {"method": "rad", "step": 20, "seconds": 1.0, "finished": True, "weights": weights}
    write_json(runs / "drawer-rad-s0" / "checkpoint.json", checkpoint)
    printed = run(capsys, runs)[1]
    assert printed.endswith("note: drawer-rad-s0 was evaluated at step 12, but is now at step 20")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no run is given; accepted: runs, or directories of runs"),
        (["nowhere"], "nowhere is not a directory, nor an agent that comes with gcb"),
        (["other"], "there is no run of the reference 'gcb'; accepted: cta."),
        (["sweep/runs", "--reference", "rat"], "there is no run of the reference 'rat'; did you mean rad?"),
        (
            ["sweep/runs/drawer-gcb-s0"],
            "nothing can be compared with gcb: no other run was evaluated in the same mode.",
        ),
        (["sweep/runs/drawer-gcb-s0", "other"], "nothing can be compared with gcb: cta in drawer by goal image: not"),
        (["sweep/runs", "--modes", "free"], "nothing can be compared with gcb: no other run was evaluated"),
        (["sweep/runs", "--out", "table.txt"], "out is 'table.txt'; accepted: a file that ends in .md or .csv."),
        (["damaged", "sweep/runs"], "damaged/eval.json is not readable JSON"),
    ],
)
def test_errors_are_one_line(runs: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    damaged = write_run(Path("damaged"), "gcbc", results={})
    (damaged / "eval.json").write_text("{")
    code, printed, errors = run(capsys, *words)
    assert (code, printed) == (2, "")
    assert errors.startswith(f"gcb: {message}")
    assert errors.count("\n") == 1
    assert not list(Path().glob("table.*"))
