"""Random command lines, and random wrong values in every JSON file: a result or one line, never a traceback."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.corruption import entries_of
from helpers.fault_table import in_words
from helpers.small_runs import analyse_small, train_small, write_slide_dataset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_bad_inputs import SMOKE, gcb_command

from gcb.evaluation.evaluate import evaluate_run

SETTINGS: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
}
WRONG = (None, True, -1, 1e300, 10**30, "text", "a\0b", "", "x" * 300, [], {}, [[1]], {"a": 1}, ["x"])
NUMBERS = ("0", "-1", "nan", "inf", "-inf", "1e400", "1.5", str(10**30), "9" * 5000, "0x10", "1_0", "٣", "none", "null")
TEXTS = (
    "",
    " ",
    "[/b]",
    "{}",
    "--",
    "-",
    "x" * 300,
    "a\0b",
    "\x1b[31m",
    "\udcff",
    "no/such",
    "/dev/null/x",
    "file",
    "é=ü",
)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset, another one, and a run with an evaluation and an analysis."""
    path = tmp_path_factory.mktemp("random")
    write_slide_dataset(path / "other", seed=3)
    run = train_small(path / "run", write_slide_dataset(path / "data"), steps=2)
    evaluate_run(run, ["goal"], episodes=2, batch=2, videos=False, quiet=True)
    analyse_small(run)
    return path


def ended_well(words: list[str]) -> str:
    """Return how a command ended; raise if it ended with a traceback or without a word."""
    answer = gcb_command(*words)
    if answer.code in (0, None):
        return "result"
    assert answer.code == 2, (words, answer)
    assert answer.out + answer.err, words
    return "message"


COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    f"train {' '.join(SMOKE)}": (["--data", "data", "--out", "new", "--method", "goal_agnostic_bc"], []),
    "eval": (
        ["run", "--episodes", "1", "--modes", "goal", "--no-videos"],
        ["--clips", "--env", "--adapter", "--batch"],
    ),
    "held-out": (["run", "other", "--transitions", "9"], ["--seed", "--device"]),
    "export": (["run", "--out", "agent"], ["--format"]),
    "report": (["run", "--out", "report.html"], ["--title"]),
    "compare": (["run"], ["--reference", "--modes", "--criterion", "--out"]),
    "table": (["file"], ["--criterion", "--task", "--out"]),
    "methods": ([], ["--json"]),
    "ablate --list": ([], ["--preset", "--seed"]),
    "data show": (["data"], ["--sheet", "--episodes", "--seed"]),
    "data check": (["data"], []),
    "data import": (["data", "--out", "imported"], ["--format", "--action-bound", "--env", "--adapter"]),
    "data export": (["data", "--out", "exported.npz"], ["--format", "--val-episodes"]),
    "sweep --dry-run": (["comparison"], ["--seeds", "--methods", "--overrides", "--vary", "--preset", "--envs"]),
    "collect --transitions 9": (["--out", "file"], ["--env", "--noise", "--image-size", "--workers"]),
    "explore nowhere": ([], ["--port", "--host", "--data"]),  # `gcb explore` alone would serve a bundled agent
}
"""Words that stay, without which a command could start a long job; arguments that change; and options to add."""
TRAIN_OPTIONS = ("--seed", "--iql.discount", "--minutes", "--goals.p-future", "--random-overlay", "--lr-schedule")


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """A command with values replaced, options added, and words dropped, doubled or misspelt."""
    name = draw(st.sampled_from(sorted(COMMANDS)))
    base, further = COMMANDS[name]
    words, values = list(base), st.sampled_from(NUMBERS + TEXTS) | st.text(max_size=8)
    for option in draw(st.lists(st.sampled_from(further or list(TRAIN_OPTIONS)), max_size=2)):
        words += [option, draw(values)]
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(words)))
        change = draw(st.sampled_from(["replace", "drop", "double", "insert", "misspell"]))
        if change == "insert" or not words:
            words.insert(place, draw(values))
            continue
        place = min(place, len(words) - 1)
        if change == "drop":
            del words[place]
        else:
            word = words[place]
            words[place] = {"replace": draw(values), "double": word, "misspell": word[:-1] + "q"}[change]
            words[place:place] = [word] if change == "double" else []
    # No number is both valid and large.
    return [*name.split(), *words]


def test_command_lines(
    originals: Path, tmp_path: Path, full: bool, monkeypatch: pytest.MonkeyPatch, record_input: Callable
) -> None:
    (tmp_path / "file").write_text("")
    for name in ("data", "other", "run"):
        (tmp_path / name).symlink_to(originals / name)
    monkeypatch.chdir(tmp_path)
    outcomes: Counter[str] = Counter()

    @settings(max_examples=500 if full else 50, **SETTINGS)
    @given(command_lines())
    def check(words: list[str]) -> None:
        outcomes[ended_well(words)] += 1

    check()
    record_input("command line", "random arguments of every quick command", sum(outcomes.values()), in_words(outcomes))


USES = {
    "data": (
        ("data", "show", "{copy}/data"),
        ("data", "check", "{copy}/data"),
        ("data", "export", "{copy}/data", "--out", "{copy}/exported.npz"),
        ("held-out", "{copy}/run", "{copy}/data", "--transitions", "9"),
        ("train", "--data", "{copy}/data", "--out", "{copy}/new", "--method", "goal_agnostic_bc", *SMOKE),
    ),
    "run": (
        ("eval", "{copy}/run", "--episodes", "1", "--modes", "goal", "--no-videos", "--json"),
        ("export", "{copy}/run", "--out", "{copy}/agent"),
        ("held-out", "{copy}/run", "{copy}/other", "--transitions", "9"),
        ("compare", "{copy}/run", "{copy}/run"),
        ("report", "{copy}/run", "--out", "{copy}/report.html"),
    ),
}


def test_wrong_types(originals: Path, tmp_path: Path, full: bool, record_input: Callable) -> None:
    """Replace one entry of a JSON file by a value of another type, and use the directory."""
    files = {name: [path for path in sorted((originals / name).rglob("*.json*"))] for name in USES}
    outcomes: Counter[str] = Counter()

    @settings(max_examples=1000 if full else 200, **SETTINGS)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        target = data.draw(st.sampled_from(sorted(USES)))
        path = data.draw(st.sampled_from(files[target]))
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.suffix == ".jsonl" else None
        content = rows if rows is not None else json.loads(path.read_text())
        container, key = data.draw(st.sampled_from(list(entries_of(content))))
        wrong = [value for value in WRONG if type(value) is not type(container[key])]
        container[key] = data.draw(st.sampled_from(wrong))
        copy = shutil.copytree(originals, tmp_path / "copy")
        text = "".join(f"{json.dumps(row)}\n" for row in (content if rows is not None else [content]))
        (copy / path.relative_to(originals)).write_text(text)
        words = data.draw(st.sampled_from(USES[target]))
        try:
            outcomes[ended_well([word.format(copy=copy) for word in words])] += 1
        finally:
            shutil.rmtree(copy)

    check()
    record_input(
        "wrong type", "one entry of a JSON file of a dataset or a run", sum(outcomes.values()), in_words(outcomes)
    )
