"""Bad input from users and in untrusted files: every command answers with one line that names it, and exit code 2."""

import io
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from helpers.faults import run_forked
from helpers.small_runs import train_small, write_slide_dataset
from helpers.tiny import tiny_dataset

import gcb
from gcb.cli.main import main
from gcb.data import Dataset, write_dataset
from gcb.runs.run_dir import RECORD
from gcb.utils.text_files import read_json

ROOT = Path(gcb.__file__).parents[1]
NOBODY = 65534
SMOKE = ("--preset", "smoke", "--steps", "1", "--warmup-steps", "0", "--device", "cpu", "--quiet")


class Answer(NamedTuple):
    """How a command ended and what it printed."""

    code: Any
    out: str
    err: str


def gcb_command(*words: object) -> Answer:
    """Run a command in this process; an exception that the user would see as a traceback is raised."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(word) for word in words])
            code: Any = 0
        except SystemExit as ended:
            code = ended.code
    return Answer(code, out.getvalue(), err.getvalue())


def refused(*words: object) -> str:
    """Run a command that must be refused with one line; return the line."""
    answer = gcb_command(*words)
    assert answer.code == 2, (words, answer)
    line = answer.err.strip()
    assert line.startswith("gcb: "), (words, answer)
    assert "\n" not in line, (words, answer)
    assert len(line) < 700, (words, line)
    return line.removeprefix("gcb: ")


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_small(tmp_path_factory.mktemp("inputs") / "run", data, steps=1)


def reading_and_writing(path: Path, run: Path, data: Path) -> Iterator[tuple[object, ...]]:
    """Yield every command with a path that it reads or writes."""
    yield ("train", "--data", path, "--out", "x", *SMOKE)
    yield ("train", "--data", data, "--out", path, *SMOKE)
    yield ("train", "--data", data, "--out", "x", "--settings", path)
    yield ("eval", path)
    yield ("held-out", path, data)
    yield ("held-out", run, path)
    yield ("export", path, "--out", "x")
    yield ("export", run, "--out", path)
    yield ("report", path)
    yield ("report", run, "--out", path)
    yield ("analyse", path)
    yield ("explore", path)
    yield ("compare", path)
    yield ("table", path)
    yield ("reconstruct", path, "--data", data, "--out", "x.png")
    yield ("data", "show", path)
    yield ("data", "show", data, "--sheet", path)
    yield ("data", "check", path)
    yield ("data", "import", path, "--out", "x")
    yield ("data", "export", data, "--out", path / "x.npz")
    yield ("sweep", path / "grid.yaml", "--dry-run")
    yield ("sweep", "comparison", "--out", path)
    yield ("collect", "--out", path, "--transitions", 5)


@pytest.mark.parametrize("kind", ["a name of 300 characters", "a file as a directory", "a loop of links"])
def test_paths_that_the_system_refuses(
    kind: str, run: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_input: Callable
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    paths = {
        "a name of 300 characters": Path("x" * 300) / "y",
        "a file as a directory": Path("file") / "y",
        "a loop of links": Path("loop") / "y",
    }
    commands = list(reading_and_writing(paths[kind], run, data))
    messages = [refused(*words) for words in commands]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "loop"]
    record_input("path", kind, len(commands), f"“{messages[1]}” and the like")


def test_directories_without_permission(run: Path, data: Path, tmp_path: Path, record_input: Callable) -> None:
    closed = tmp_path / "closed"
    shutil.copytree(run, closed / "run")
    shutil.copytree(data, closed / "data")
    commands = list(reading_and_writing(closed / "run", closed / "run", closed / "data"))
    closed.chmod(0)
    answers = []
    for words in commands:

        def job(words: tuple[object, ...] = words) -> None:
            if os.geteuid() == 0:
                os.setuid(NOBODY)  # root may read everything
            main([str(word) for word in words])

        answers.append(run_forked(job))
        assert answers[-1].message, (words, answers[-1].output)
    closed.chmod(0o700)
    record_input(
        "path", "a directory without permission", len(commands), f"“{answers[0].message.replace(str(tmp_path), '…')}”"
    )


LARGE: dict[str, tuple[tuple[object, ...], str]] = {
    "--threads 100000": (("train", "--threads", 100_000), "threads is 100000; it must be in [1, 1024]"),
    "--threads 1000": (("train", "--threads", 1000), "threads is 1000; it must be in [1, "),
    "--seed 10^30": (("train", "--seed", 10**30), "it must be in [0, 4294967295]"),
    "--batch-size 10^9": (("train", "--batch-size", 10**9), "batch_size is 1000000000; it must be in [2, 65536]"),
    "--random-shift 10^6": (("train", "--random-shift", 10**6), "random_shift is 1000000; it must be in [0, 256]"),
    "--method-config.size 10^8": (
        ("train", "--method-config.size", 10**8),
        "size is 100000000; it must be in [1, 8192]",
    ),
    "--steps 10^30": (("train", "--steps", 10**30), "it must be in [1, 1000000000]"),
    "eval --seed 10^30": (("eval", "RUN", "--seed", 10**30), "it must be in [0, 4294967295]"),
    "eval --workers 10^6": (
        ("eval", "RUN", "--workers", 10**6, "--modes", "goal"),
        "workers is 1000000; it must be in",
    ),
    "eval --batch 10^9": (("eval", "RUN", "--batch", 10**9, "--modes", "goal"), "batch is 1000000000; it must be in"),
    "eval --episodes 10^12": (("eval", "RUN", "--episodes", 10**12), "episodes is 1000000000000; it must be in"),
    "collect --seed 10^30": (("collect", "--out", "x", "--seed", 10**30), "it must be in [0, 4294967295]"),
    "collect --image-size 10^8": (("collect", "--out", "x", "--image-size", 10**8), "image_size is 100000000"),
    "collect --workers 10^6": (("collect", "--out", "x", "--workers", 10**6), "workers is 1000000; it must be in"),
    "held-out --transitions 10^15": (("held-out", "RUN", "DATA", "--transitions", 10**15), "transitions is 1000000"),
    "analyse --samples 10^15": (("analyse", "RUN", "--samples", 10**15), "samples is 1000000000000000; it must be in"),
    "show --episodes 10^9": (("data", "show", "DATA", "--episodes", 10**9), "episodes is 1000000000; it must be in"),
    "sweep --seeds 0-99999999999": (("sweep", "comparison", "--seeds", "0-99999999999"), "at most 10,000"),
    "sweep --seeds 10^9": (("sweep", "comparison", "--seeds", 10**9), "seeds is 1000000000; it must be in [1, 10000]"),
    "sweep --workers 10^6": (("sweep", "comparison", "--workers", 10**6), "workers is 1000000; it must be in"),
}


def test_large_values(
    run: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_input: Callable
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, message in LARGE.values():
        given = tuple({"RUN": run, "DATA": data}.get(str(word), word) for word in words)
        required = ("--data", data, "--out", "new", "--device", "cpu") if words[0] == "train" else ()
        assert message in refused(*given, *required)
    assert list(tmp_path.iterdir()) == []
    record_input("large value", ", ".join(LARGE), len(LARGE), "one line with what is accepted; nothing written")


def bomb(levels: int = 9, width: int = 9) -> str:
    """Return a YAML text of a few lines that stands for width ** levels values."""
    lines = ["a0: &a0 [x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)]
    return "\n".join([*lines, f"method: *a{levels - 1}", ""])


def test_yaml_bombs(
    run: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_input: Callable
) -> None:
    monkeypatch.chdir(tmp_path)
    texts = {
        "aliases": bomb(),
        "merge keys": bomb() + "b: {<<: [{c: *a8}, {c: *a8}]}\n",
        "a recursive alias": "method: &a [*a]\n",
        "nesting": "[" * 5000 + "]" * 5000,
        "10 MB": "method: gcb # " + "x" * 10_000_000,
        "a number of 10,000 digits": "method: gcb\nseed: " + "9" * 10_000,
        "!!timestamp x": "method: gcb\nseed: !!timestamp x\n",
    }
    slowest, messages = 0.0, []
    for text in texts.values():
        (tmp_path / "bomb.yaml").write_text(text)
        copy = shutil.copytree(run, tmp_path / "run", dirs_exist_ok=True)
        (copy / "config.yaml").write_text(text)
        start = time.process_time()
        messages.append(refused("train", "--data", data, "--out", "x", "--settings", "bomb.yaml"))
        refused("sweep", "bomb.yaml", "--dry-run")
        refused("eval", copy)
        slowest = max(slowest, time.process_time() - start)
    assert slowest < 5
    outcome = f"“{messages[0]}” and the like, in at most {slowest:.1f} s"
    record_input("YAML", f"{', '.join(texts)}, as settings, grid and config.yaml", 3 * len(texts), outcome)


COMMAND_WITH_A_WORKER = """
import sys
sys.path.remove("")  # the script `gcb` has its own directory there
sys.argv = ["gcb", "--version"]
from gcb.cli.main import main
from gcb.utils.workers import CONTEXT
main()
worker = CONTEXT.Process(target=print)
worker.start()
worker.join()
sys.exit(worker.exitcode)
"""


def test_a_downloaded_agent_imports_nothing(run: Path, tmp_path: Path, record_input: Callable) -> None:
    """The module lies in the agent's directory, which is the current one; as an attacker would arrange."""
    agent, trace = shutil.copytree(run, tmp_path / "agent"), tmp_path / "executed"
    for name in ("helper_env", "torch", "wandb", "numpy", "gymnasium", "socket"):
        (agent / f"{name}.py").write_text(f"open({str(trace)!r}, 'w').write({name!r})\n")
    content = read_json(agent / RECORD)
    content["data"]["config"]["env"] = "helper_env:X-v0"
    (agent / RECORD).write_text(json.dumps(content))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def evaluate(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gcb", "eval", ".", "--episodes", "1", *words]
        return subprocess.run(command, cwd=agent, env=environment, capture_output=True, text=True, check=False)

    ended = evaluate()
    assert (ended.returncode, trace.exists()) == (2, False), ended.stderr
    assert "a module that a file names is not imported" in ended.stderr
    assert "Traceback" not in ended.stderr
    named = evaluate("--env", "helper_env:X-v0")  # now the user names it, but it is not installed
    assert (named.returncode, trace.exists()) == (2, False), named.stderr
    assert "No module named 'helper_env'" in named.stderr
    if sys.version_info >= (3, 11):  # which can keep the current directory off the path of a worker process
        command = [sys.executable, "-c", COMMAND_WITH_A_WORKER]
        subprocess.run(command, cwd=agent, env=environment, capture_output=True, check=True)
        assert not trace.exists()
    record_input(
        "untrusted file",
        "a run that names a module beside it, as its environment",
        2,
        "not imported: the user must name it, and it must be installed",
    )


def test_brackets_and_control_characters_in_paths(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_input: Callable
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("d[bold]x", "c[/b]", "[link=x]y", "e\x1b[31mf", "g\\[h", "i\udcffj")
    for name in names:
        shown = name.replace("\x1b", "\\x1b").replace("\udcff", "\\udcff")
        shutil.copytree(data, name)
        assert shown in gcb_command("data", "show", name).out
        assert f"{shown} is intact" in gcb_command("data", "check", name).out
        trained = gcb_command("train", "--data", name, "--out", f"run {name}", "--method", "goal_agnostic_bc", *SMOKE)
        assert f"run {shown} is finished" in trained.out
        assert f"report {shown}.html (" in gcb_command("report", f"run {name}", "--out", f"report {name}.html").out
        assert shown in refused("eval", f"none {name}")
    record_input(
        "path",
        "brackets, escape codes, bytes that are not UTF-8",
        5 * len(names),
        "printed as they are, escape codes as \\x1b",
    )


def test_numbers_that_cannot_be_learned_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_input: Callable
) -> None:
    monkeypatch.chdir(tmp_path)
    arrays = tiny_dataset(episodes=4).arrays()
    rng = np.random.default_rng(0)
    holes = rng.random(arrays["actions"].shape) < 0.05
    changes = {
        "5 % of actions NaN": ({"actions": np.where(holes, np.nan, arrays["actions"])}, "actions is nan at ["),
        "actions × 50": ({"actions": 50 * arrays["actions"]}, "accepted: finite numbers from -1 to 1"),
        "5 % of rewards NaN": ({"rewards": np.where(holes[:, 0], np.nan, arrays["rewards"])}, "rewards is nan at ["),
        "rewards of -1": ({"rewards": arrays["rewards"] - 1}, "rewards is -1 at [0]"),
    }
    for number, (change, message) in enumerate(changes.values()):
        write_dataset(Dataset.from_arrays(**{**arrays, **change}), tmp_path / str(number))
        assert message in refused("data", "check", number)
        assert message in refused("train", "--data", number, "--out", "x", *SMOKE)
    assert not Path("x").exists()
    path = write_slide_dataset(tmp_path / "counts")
    manifest = read_json(path / "manifest.json")
    manifest["counts"] = {name: -count for name, count in manifest["counts"].items()}
    (path / "manifest.json").write_text(json.dumps(manifest))
    assert "the manifest counts {'episodes': -4" in refused("data", "check", path)
    names = f"{', '.join(changes)}, negative counts"
    record_input("dataset", names, 2 * len(changes) + 1, "the first such number is named before anything is written")
