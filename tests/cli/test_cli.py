"""The command line: arguments, files, messages and exit codes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gcb.cli.main import COMMANDS, main
from gcb.data import open_dataset
from gcb.envs.spec import MODES
from gcb.utils.statistics import CRITERIA

SMALL = ["--image-size", "16", "--transitions", "60", "--seed", "3"]


def run(capsys, *words: object) -> tuple[int, str, str]:
    """Run a command; return its exit code, its output with wrapped lines joined, and its error output."""
    code = 0
    try:
        main([str(word) for word in words])
    except SystemExit as ended:
        code = int(ended.code or 0)
    captured = capsys.readouterr()
    return code, " ".join(captured.out.split()), captured.err


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("cli") / "data"
    main(["collect", "--env", "gcb/Drawer-v0", "--out", str(out), *SMALL])
    return out


def test_collect_writes_the_dataset(dataset, capsys):
    data = open_dataset(dataset)
    assert data.transitions == 60
    assert data.frames.shape[1:] == (16, 16, 3)
    assert data.config["env"] == "gcb/Drawer-v0"
    assert data.config["seed"] == 3
    code, printed, _ = run(capsys, "collect", "--env", "gcb/Drawer-v0", "--out", dataset, *SMALL)
    assert code == 0
    assert "already complete" in printed


def test_collect_with_video_distractors(tmp_path, capsys):
    code, printed, errors = run(capsys, "collect", "--out", tmp_path / "data", "--video", *SMALL)
    assert code == 0
    assert "video builtin" in printed
    assert "collecting 100 % 60/60 transitions" in " ".join(errors.split())


def test_collect_leaves_another_dataset_alone(dataset, capsys):
    before = {path.name: path.read_bytes() for path in dataset.iterdir()}
    code, _, errors = run(capsys, "collect", "--env", "gcb/ButtonDrawer-v0", "--out", dataset, *SMALL)
    assert code == 2
    assert "holds another dataset: env is 'gcb/Drawer-v0' there and 'gcb/ButtonDrawer-v0' here" in errors
    assert {path.name: path.read_bytes() for path in dataset.iterdir()} == before


def test_data_show_and_its_contact_sheet(dataset, capsys, tmp_path):
    code, printed, _ = run(capsys, "data", "show", dataset, "--sheet", tmp_path / "sheet.png", "--episodes", 2)
    assert code == 0
    assert "transitions 60" in printed
    assert "environment gcb/Drawer-v0 (image_size 16)" in printed
    assert Image.open(tmp_path / "sheet.png").size[0] > 200


def test_data_check_finds_one_altered_byte(dataset, capsys, tmp_path):
    code, printed, _ = run(capsys, "data", "check", dataset)
    assert code == 0
    assert "60 transitions" in printed
    altered = tmp_path / "altered"
    altered.mkdir()
    for path in dataset.iterdir():
        (altered / path.name).write_bytes(path.read_bytes())
    content = bytearray((altered / "actions.npy").read_bytes())
    content[-1] ^= 1
    (altered / "actions.npy").write_bytes(content)
    code, _, errors = run(capsys, "data", "check", altered)
    assert code == 2
    assert "actions.npy differs from the SHA-256" in errors


def test_expert_measures_and_writes_media(capsys, tmp_path):
    sheet, video = tmp_path / "sheet.png", tmp_path / "expert.gif"
    words = ["expert", "--env", "gcb/Drawer-v0", "--episodes", 2, "--sheet-out", sheet, "--video-out", video]
    code, printed, _ = run(capsys, *words)
    assert code == 0
    assert "expert in gcb/Drawer-v0" in printed
    assert "noise-free" in printed
    assert "noise 0.3" in printed
    assert np.asarray(Image.open(sheet)).shape[1] == 4 * (128 + 2) - 2
    assert video.stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["collect", "--out", "x", "--env", "gcb/Kitchen-v0"],
            "there is no environment 'gcb/Kitchen-v0'; gcb has gcb/Drawer",
        ),
        (["collect", "--out", "x", "--transitions", "0"], "transitions is 0; it must be in [1, 1000000000]"),
        (["collect", "--out", "x", "--workers", "0"], "workers is 0"),
        (["collect", "--out", "x", "--noise", "nan"], "noise is nan"),
        (["collect", "--out", "x", "--image-size", "3"], "image_size is 3"),
        (["collect", "--out", "x", "--clips", "nowhere"], "'nowhere' does not exist"),
        (["data", "show", "x"], "x is not a directory"),
        (["data", "check", "x"], "x is not a directory"),
        (["expert", "--episodes", "0"], "episodes is 0"),
        (["expert", "--env", "Drawer"], "there is no environment 'Drawer'"),
    ],
)
def test_a_user_error_is_a_message_and_exit_code_2(capsys, monkeypatch, tmp_path, words, message):
    monkeypatch.chdir(tmp_path)
    code, _, errors = run(capsys, *words)
    assert code == 2
    assert errors.startswith("gcb: ")
    assert message in errors
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["collect", "--out", "x"], "gcb: stopped; run the same command again to resume\n"),
        (["expert"], "gcb: stopped\n"),
    ],
)
def test_an_interrupted_command_says_whether_it_can_be_resumed(capsys, monkeypatch, words, message):
    def stop(self):
        raise KeyboardInterrupt

    for command in ("Collect", "Expert"):
        monkeypatch.setattr(f"gcb.cli.collect.{command}.run", stop)
    code, _, errors = run(capsys, *words)
    assert code == 130
    assert errors == message


def test_unknown_options_are_refused(capsys):
    code, _, errors = run(capsys, "collect", "--out", "x", "--colour", "red")
    assert code == 2
    assert "--colour" in errors


def test_help_lists_every_command_without_importing_torch():
    code = (
        "import sys; from gcb.cli.main import main\ntry: main(['--help'])\nfinally: assert 'torch' not in sys.modules"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    assert all(f"• {name} " in printed.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(capsys, name):
    code, printed, _ = run(capsys, name, "--help")
    assert code == 0
    assert f"usage: gcb {name}" in printed


@pytest.mark.parametrize(
    ("command", "choices"),
    [("eval", MODES), ("sweep", MODES), ("table", tuple(CRITERIA)), ("compare", MODES), ("compare", tuple(CRITERIA))],
    ids=["eval", "sweep", "table", "compare by mode", "compare by criterion"],
)
def test_help_names_every_mode_and_criterion(capsys, command, choices):
    assert f"{{{','.join(choices)}}}" in run(capsys, command, "--help")[1]
