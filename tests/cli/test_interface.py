"""What a newcomer meets first: the first steps, versions, misspelt commands, how None is written, JSON, and speed."""

import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from helpers.small_runs import train_small, write_slide_dataset

import gcb
from gcb.cli.main import COMMANDS, FIRST_STEPS, main, parse
from gcb.errors import GCBError
from gcb.runs.config import read_config


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run a command; return its exit code, its output and its error output."""
    code = 0
    try:
        main([str(word) for word in words])
    except SystemExit as ended:
        code = int(ended.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_slide_dataset(tmp_path_factory.mktemp("interface") / "data")


@pytest.fixture(scope="module")
def trained(data: Path) -> Path:
    return train_small(data.with_name("run"), data, steps=1)


def test_gcb_alone_shows_five_commands(capsys: pytest.CaptureFixture[str]) -> None:
    code, printed, _ = run(capsys)
    assert code == 0
    assert len(FIRST_STEPS) == 5
    for command in FIRST_STEPS:
        assert command in printed
        assert command.split()[1] in COMMANDS
    assert run(capsys, "--version") == (0, f"gcb {gcb.__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trian"], "there is no command `gcb trian`; did you mean train?"),
        (["evaluate"], "did you mean eval?"),
        (["data", "exprot", "x"], "there is no command `gcb data exprot`; did you mean export?"),
        (["frobnicate"], "accepted: demo, collect, data, "),
        (["train", "--data", "d", "--out", "r", "--method", "gbc"], "did you mean gcbc?"),
        (["train", "--data", "d", "--out", "r", "--preset", "laptp"], "did you mean laptop?"),
        (["sweep", "comparision"], "did you mean comparison?"),
    ],
)
def test_misspelt_words_are_corrected(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    code, _, errors = run(capsys, *words)
    assert code == 2
    assert message in errors
    assert errors.count("\n") == 1


def test_aliases(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert type(parse(["analyze", "run"])) is type(parse(["analyse", "run"]))
    assert run(capsys, "data", "info", data)[1] == run(capsys, "data", "show", data)[1]


@pytest.mark.parametrize("word", ["none", "None", "null"])
def test_none_has_one_name_and_three_spellings(word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["train", "--data", "d", "--out", "r"]
    assert parse([*common, "--minutes", word, "--settings", word]).config.minutes is None
    (tmp_path / "settings.yaml").write_text(f"method: gcb\nminutes: {word}\nthreads: {word}\n")
    assert read_config(tmp_path / "settings.yaml").threads is None
    printed = " ".join(run(capsys, "train", "--help")[1].split())
    assert "--minutes none|FLOAT" in printed
    assert "(default: none)" in printed
    assert "None" not in printed
    assert "null" not in printed


def test_json_is_all_that_is_printed(data: Path, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def output(*words: object) -> Any:
        code, printed, errors = run(capsys, *words, "--json")
        assert code == 0, errors
        return json.loads(printed)

    assert "transitions" in output("data", "show", data)
    methods = {method["name"]: method["supports_analogy"] for method in output("methods")}
    assert methods["gcb"]
    assert not methods["gcbc"]
    assert "no_phi_loss" in [ablation["name"] for ablation in output("ablate", "--list")]
    assert output("eval", trained, "--episodes", 2, "--modes", "goal", "--no-videos")["goal"]["episodes"] == 2
    other = write_slide_dataset(data.with_name("other"), seed=3)
    error = output("held-out", trained, other, "--transitions", 20)
    assert error["true_goal"]["samples"] == error["episodes"]
    jobs = output("sweep", "comparison", "--dry-run", "--out", data.with_name("sweep"))
    assert jobs["button_drawer-gcb-s0"]["status"] == "new"


def test_completion_knows_commands_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    code, script, _ = run(capsys, "--completion", "bash")
    assert code == 0
    assert "--iql.discount" in script
    assert "--sheet" in script
    assert run(capsys, "--completion", "powershell")[0] == 2
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_warnings_are_one_line_without_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def warn(self: object) -> None:  # what Python prints; pytest records warnings themselves
        print(warnings.formatwarning("φ has\ncollapsed", UserWarning, "file.py", 3), end="")

    monkeypatch.setattr("gcb.cli.methods.Methods.run", warn)
    before = warnings.formatwarning
    assert run(capsys, "methods")[1] == "gcb: warning: φ has collapsed\n"
    assert warnings.formatwarning is before


def test_an_error_of_the_system_and_a_lack_of_memory_are_messages(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = {
        "runs/x: Permission denied": PermissionError(13, "Permission denied", "runs/x"),
        "there is not enough memory (Unable to allocate 9 TiB)": MemoryError("Unable to allocate 9 TiB"),
        "there is not enough memory (DefaultCPUAllocator: can't allocate memory: 9)": RuntimeError(
            "DefaultCPUAllocator: can't allocate memory: 9"
        ),
        f"{'x' * 1000} … {'y' * 500}": GCBError("x" * 5000 + "y" * 5000),
        "\\x1b[31m": GCBError("\x1b[31m"),
    }
    for message, error in errors.items():

        def fail(self: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr("gcb.cli.methods.Methods.run", fail)
        assert run(capsys, "methods") == (2, "", f"gcb: {message}\n")
    monkeypatch.setattr("gcb.cli.methods.Methods.run", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["methods"])


def test_empty_modes_are_refused(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed, errors = run(capsys, "eval", trained, "--modes")
    assert (code, printed) == (2, "")
    assert "no mode is given; accepted: one or more of goal, strict, loose, free." in errors


def test_an_unwritable_run_is_noticed_before_the_first_episode(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = shutil.copytree(trained, tmp_path / "run")
    (run_dir / ".eval.json.lock").mkdir()  # where a file has to be
    monkeypatch.setattr("gcb.evaluation.evaluate.evaluate", lambda *_, **__: pytest.fail("an episode was played"))
    code, _, errors = run(capsys, "eval", run_dir, "--modes", "goal")
    assert code == 2
    assert "eval.json could not be written: Is a directory" in errors


def test_an_export_makes_its_directory(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "data", "export", data, "--out", tmp_path / "new" / "x.npz")[0] == 0
    assert (tmp_path / "new" / "x.npz").is_file()


def test_training_goes_on_without_stderr(data: Path, tmp_path: Path) -> None:
    words = (
        f"train --data {data} --out {tmp_path}/run --method goal_agnostic_bc --preset smoke --steps 2 --warmup-steps 0"
    )
    command = f"exec {sys.executable} -m gcb {words} --device cpu 2>&-"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert "is finished: 2 steps" in ended.stdout


def test_commands_do_without_stdout() -> None:
    command = f"exec {sys.executable} -m gcb methods >&-"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_help_needs_no_heavy_package() -> None:
    """PyTorch and its like take seconds to load: neither `import gcb` nor the options of any command may need them."""
    code = """
import sys, io, contextlib
import gcb
from gcb.cli.main import COMMANDS, main
for words in ([], ['--version'], ['--help'], *([name, '--help'] for name in COMMANDS)):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main(words)
    heavy = {'torch', 'av', 'sklearn', 'scipy', 'matplotlib', 'pybullet', 'minari', 'pyarrow'}
    assert not heavy & set(sys.modules), (words, heavy & set(sys.modules))
print(len(sys.modules))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) < 1200
