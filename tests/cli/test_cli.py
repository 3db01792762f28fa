"""The command line, from its words to its files, messages and exit codes."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gcb.cli.main import main
from gcb.data import open_dataset

SMALL = ["--image-size", "16", "--transitions", "60", "--seed", "3"]


def say(capsys, *words: object) -> tuple[int, str, str]:
    """Run one command: its exit code, what it printed, and what it complained of. Lines are joined as wrapped."""
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


def test_collect_makes_what_was_asked_for(dataset, capsys):
    data = open_dataset(dataset)
    assert data.transitions == 60
    assert data.frames.shape[1:] == (16, 16, 3)
    assert data.config["env"] == "gcb/Drawer-v0"
    assert data.config["seed"] == 3
    code, printed, _ = say(capsys, "collect", "--env", "gcb/Drawer-v0", "--out", dataset, *SMALL)
    assert code == 0
    assert "already complete" in printed


def test_collect_with_video_behind(tmp_path, capsys):
    code, printed, complained = say(capsys, "collect", "--out", tmp_path / "data", "--video", *SMALL)
    assert code == 0
    assert "video builtin" in printed
    assert "collecting 100 % 60/60 transitions" in " ".join(complained.split())


def test_collect_leaves_another_dataset_alone(dataset, capsys):
    before = {path.name: path.read_bytes() for path in dataset.iterdir()}
    code, _, complained = say(capsys, "collect", "--env", "gcb/ButtonDrawer-v0", "--out", dataset, *SMALL)
    assert code == 2
    assert "holds another dataset: env is 'gcb/Drawer-v0' there and 'gcb/ButtonDrawer-v0' here" in complained
    assert {path.name: path.read_bytes() for path in dataset.iterdir()} == before


def test_data_show_and_its_contact_sheet(dataset, capsys, tmp_path):
    code, printed, _ = say(capsys, "data", "show", dataset, "--sheet", tmp_path / "sheet.png", "--episodes", 2)
    assert code == 0
    assert "transitions 60" in printed
    assert "environment gcb/Drawer-v0 (image_size 16)" in printed
    assert Image.open(tmp_path / "sheet.png").size[0] > 200


def test_data_check_finds_one_altered_byte(dataset, capsys, tmp_path):
    code, printed, _ = say(capsys, "data", "check", dataset)
    assert code == 0
    assert "60 transitions" in printed
    altered = tmp_path / "altered"
    altered.mkdir()
    for path in dataset.iterdir():
        (altered / path.name).write_bytes(path.read_bytes())
    content = bytearray((altered / "actions.npy").read_bytes())
    content[-1] ^= 1
    (altered / "actions.npy").write_bytes(content)
    code, _, complained = say(capsys, "data", "check", altered)
    assert code == 2
    assert "actions.npy differs from the SHA-256" in complained


def test_expert_measures_and_draws(capsys, tmp_path):
    sheet, video = tmp_path / "sheet.png", tmp_path / "expert.gif"
    words = ["expert", "--env", "gcb/Drawer-v0", "--episodes", 2, "--sheet-out", sheet, "--video-out", video]
    code, printed, _ = say(capsys, *words)
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
        (["collect", "--out", "x", "--transitions", "0"], "transitions is 0; it must be at least 1"),
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
def test_a_mistake_is_a_message_and_exit_code_2(capsys, monkeypatch, tmp_path, words, message):
    monkeypatch.chdir(tmp_path)
    code, _, complained = say(capsys, *words)
    assert code == 2
    assert complained.startswith("gcb: ")
    assert message in complained
    assert "Traceback" not in complained
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["collect", "--out", "x"], "gcb: stopped; the same command goes on where it was\n"),
        (["expert"], "gcb: stopped\n"),
    ],
)
def test_stopped_it_promises_only_what_it_keeps(capsys, monkeypatch, words, said):
    def stop(self):
        raise KeyboardInterrupt

    for command in ("Collect", "Expert"):
        monkeypatch.setattr(f"gcb.cli.main.{command}.run", stop)
    code, _, complained = say(capsys, *words)
    assert code == 130
    assert complained == said


def test_unknown_words_are_refused(capsys):
    code, _, complained = say(capsys, "collect", "--out", "x", "--colour", "red")
    assert code == 2
    assert "--colour" in complained
